"""Tests that need no socket and no terminal."""
