"""The screens of the console, each with its style sheet beside it."""
