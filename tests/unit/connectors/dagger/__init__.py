"""Tests of the pure parts of the Dagger connector."""
