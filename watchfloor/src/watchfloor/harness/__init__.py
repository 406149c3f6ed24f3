"""Harnesses that turn a function or a program into a session of a host."""
