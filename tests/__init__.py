"""The tests of Watchfloor."""
