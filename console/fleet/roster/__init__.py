"""How sessions stand in the roster: filtered, sorted, grouped, as a tree, counted, found."""
