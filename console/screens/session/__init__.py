"""The screen of one session: its transcript, and the keys of the fleet screen."""
