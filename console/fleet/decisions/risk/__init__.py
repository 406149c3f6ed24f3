"""What is risky about an action: rules over its exact text, each finding with its reason and the place it points at."""
