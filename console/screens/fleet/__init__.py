"""The fleet screen: roster, log and card, and where the operator looks."""
