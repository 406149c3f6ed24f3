"""Tests against the real servers of foreign systems, where they are installed."""
