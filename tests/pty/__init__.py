"""Tests of the program in a real pseudo terminal."""
