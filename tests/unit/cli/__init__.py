"""The command line without a network: what it understands, what it prints, how it ends."""
