"""Benchmarks that are kept: what they record, how they go on, what they write."""
