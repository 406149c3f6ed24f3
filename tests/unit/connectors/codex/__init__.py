"""Tests of the Codex connector that need no server."""
