"""The state of all sessions as the console knows it: pure, no I/O, no clock of its own."""
