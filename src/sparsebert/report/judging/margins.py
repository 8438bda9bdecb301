"""Margins of the findings, by unit, fixed before the studies ran (docs/decisions/margins.md)."""

OF_UNIT = {
    "points": 1.0,  # of a task's score
    "nats": 0.02,  # of held-out MLM loss
    "distance": 0.005,  # of held-out embeddings, 1 - cosine
    "STS points": 0.5,  # of the mean of the sets
    "P": 0.005,  # of 0 to 1
    "of the mean": 0.01,  # of a trained attention map
    "points a decade": 0.1,  # of sparsity, with the penalty
    "share": 0.1,  # of kept entries that differ between heads
}
