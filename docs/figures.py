"""Draws the figures of the docs: the hand-made patterns, and what the recorded importance runs learned."""

from pathlib import Path

import numpy as np

from sparsebert.patterns.figures import paper_patterns, save_figure
from sparsebert.studies.records import unpacked
from sparsebert.training.figures import importance_figure
from sparsebert.training.importance import load_importance

RESULTS = Path(__file__).resolve().parent / "results"


def recorded_importance() -> list[np.ndarray]:
    """P of every importance run in results/runs, one array a seed."""
    with unpacked(RESULTS / "runs") as study:
        # A search has a gate too, but no importance.json; attention maps have no gate.
        runs = sorted(path.parent for path in study.glob("runs/*/importance.json"))
        return [load_importance(run) for run in runs if (run / "gate.safetensors").is_file()]


if __name__ == "__main__":
    save_figure(paper_patterns(), RESULTS / "patterns.svg")
    learned = recorded_importance()
    title = f"learned importance P, mean over {len(learned)} seeds and their heads after normalisation"
    save_figure(importance_figure(np.concatenate(learned), title), RESULTS / "importance.svg")
