"""Draws the figures of the docs that need no training."""

from pathlib import Path

from sparsebert.patterns.figures import paper_patterns, save_figure

RESULTS = Path(__file__).resolve().parent / "results"

if __name__ == "__main__":
    save_figure(paper_patterns(), RESULTS / "patterns.svg")
