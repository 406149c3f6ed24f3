"""What the aion connector reads, without a server."""
