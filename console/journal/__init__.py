"""The journal: what sources sent, as it came, in a file that outlives the console."""
