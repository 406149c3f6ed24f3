"""Tests of the connectors of foreign systems."""
