"""Stand-ins for foreign systems, that serve what those serve over real sockets."""
