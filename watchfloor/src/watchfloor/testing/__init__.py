"""What authors of harnesses and connectors test their work with."""
