"""The connector of bamboo servers: their sessions, what these ask, and what an operator does about it."""
