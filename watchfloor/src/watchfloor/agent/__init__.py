"""Agents for their authors: the recipe (`Agent`), what is stored of a conversation (`Session`), and what runs."""
