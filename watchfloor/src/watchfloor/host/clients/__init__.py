"""What clients are told and what they ask for: greeting, history, commands, presence. Without I/O."""
