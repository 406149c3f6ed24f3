"""Tests of the host's pure parts."""
