"""Faults, bad input, hostile input: a program that runs a hundred thousand trials and writes what became of them."""
