"""What numbers the events of a host and keeps them: in memory, or in a file."""
