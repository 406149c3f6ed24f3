"""HTTP, server-sent events and WebSockets as connectors of foreign systems need them.

Every failure is one of `watchfloor.errors.ConnectionFailed`, in one line that says what happened and what to do.
No message holds a token. Redirects are not followed and proxies of the environment are not used: a token goes to the
address that the operator wrote, and nowhere else.
"""
