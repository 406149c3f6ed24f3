"""The fleet: pure, so tested by its properties."""
