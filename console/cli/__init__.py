"""The command line: every verb goes through the same gate and audit as the keys."""
