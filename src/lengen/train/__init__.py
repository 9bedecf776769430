"""Training: the loop, its schedule, checkpoints, and what a run shows and records."""
