"""Tests of the pure parts of the bamboo connector."""
