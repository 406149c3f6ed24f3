"""Reusable Textual widgets; each one reads a small view protocol that it declares.

Views are read while painting, so their methods must be cheap (no I/O, no sorting). Every string in
a view is `Clean`; widgets draw text as it is and never as markup.
"""
