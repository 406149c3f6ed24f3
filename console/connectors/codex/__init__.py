"""Codex threads on the roster, over the WebSocket of `codex app-server`."""
