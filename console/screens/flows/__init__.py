"""What is asked before an intervention, in which order, and the intent that comes of it."""
