"""Connectors: each one turns a source into watchfloor.v1 host frames."""
