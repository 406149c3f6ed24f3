"""Tests of the harnesses against a port that records."""
