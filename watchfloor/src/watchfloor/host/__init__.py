"""The native host: a pure core, and the server, log, mailbox and requests around it."""
