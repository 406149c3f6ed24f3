"""Agents of a Dagger engine: long-lived, with a mailbox, found through the session's telemetry."""
