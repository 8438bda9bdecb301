"""From the scores of a head to labels, answers and metrics."""
