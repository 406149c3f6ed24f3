"""Measurements in a real terminal, for `make bench`. No test runs them: their figures hang on the machine."""
