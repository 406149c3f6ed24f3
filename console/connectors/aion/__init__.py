"""An aion server as a source: the attempts of its activities as sessions, their workflows above them."""
