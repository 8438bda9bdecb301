"""Rows as the model sees them: token sequences, windows of long contexts, labels, and the order of batches."""
