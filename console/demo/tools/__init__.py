"""Small programs that the demo puts into its workspace and runs there."""
