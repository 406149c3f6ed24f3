"""Telling the operator, away from the screen, that agents wait: what is told and when (pure), and how it gets out."""
