"""Recordings: what a source sent over time, in a file that can be played again."""
