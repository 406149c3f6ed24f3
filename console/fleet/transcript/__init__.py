"""A session as it is read: its events as blocks, in prose, and looked through."""
