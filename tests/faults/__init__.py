"""Runs that are killed, cut off or starved end with the bits of undisturbed ones."""
