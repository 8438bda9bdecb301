"""`python -m sparsebert`, which is what torchrun starts."""

from sparsebert.cli import main

main()
