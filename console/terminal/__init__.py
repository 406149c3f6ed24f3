"""What the console is drawn on: the terminal or browser, what it sends, and what happens when it is lost.

Only the drivers know the toolkit.
"""
