"""Margins of the findings, fixed before the studies ran (docs/decisions/margins.md)."""

SCORE = 1.0  # points of a task's score
LOSS = 0.02  # nats of held-out MLM loss
IMPORTANCE = 0.005  # of P, between 0 and 1
RELATIVE = 0.01  # of the mean of a trained attention map
SPARSITY = 0.1  # points a decade of the penalty
HEADS = 0.1  # share of kept entries that differ between heads
