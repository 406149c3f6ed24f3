"""Reusable Textual widgets; each one reads a small view protocol that it declares."""
