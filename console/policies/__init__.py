"""Policies: rules of the operator's own by which this console decides some requests by itself. None by default."""
