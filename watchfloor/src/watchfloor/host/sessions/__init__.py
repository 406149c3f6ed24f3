"""One session each: its lifecycle, requests, mailbox and record; or the mirror of one that runs elsewhere. No I/O."""
