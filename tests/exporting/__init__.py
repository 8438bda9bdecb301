"""Models as files: what is written, and what other programs make of it."""
