"""Draws the figures of the docs: the hand-made patterns, and what the recorded importance runs learned."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from sparsebert.patterns.figures import paper_patterns, save_figure
from sparsebert.studies.records import recorded_files, restore
from sparsebert.training.figures import importance_figure
from sparsebert.training.importance import load_importance

RESULTS = Path(__file__).resolve().parent / "results"


def recorded_importance() -> list[np.ndarray]:
    """P of every importance run in results/runs, one array a seed."""
    learned = []
    for record in sorted((RESULTS / "runs").glob("*.json")):
        # The record of a search has a gate too, but no importance.json.
        if {"gate.safetensors", "importance.json"} <= recorded_files(record.parent, record.stem):
            with TemporaryDirectory() as folder:
                restore(record.parent, record.stem, Path(folder))
                learned.append(load_importance(Path(folder)))
    return learned


if __name__ == "__main__":
    save_figure(paper_patterns(), RESULTS / "patterns.svg")
    learned = recorded_importance()
    title = f"learned importance P, mean over {len(learned)} seeds and their heads after normalisation"
    save_figure(importance_figure(np.concatenate(learned), title), RESULTS / "importance.svg")
