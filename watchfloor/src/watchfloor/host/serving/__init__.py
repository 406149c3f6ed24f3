"""A host on an event loop: its server, its connections, and processes that join it."""
