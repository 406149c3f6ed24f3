"""The operations console: watch agents, decide requests, intervene."""
