"""The embedded fleet: agents that really run, in a process of their own."""
