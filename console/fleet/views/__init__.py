"""What the widgets are told: rows, cards, lines and words, made of the fleet and of nothing else."""
