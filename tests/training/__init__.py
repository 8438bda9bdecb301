"""fit(), checkpoints, objectives, recipes."""
