"""What runs attempts with their harness, and what an attempt reports through."""
