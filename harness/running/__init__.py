"""One run: the arena that faults and targets see, its twelve steps, and its manifest."""
