"""Themes and glyph sets as data, and the loader for them."""
