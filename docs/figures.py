"""Draws the figures of the docs: hand-made patterns, the base run, what the recorded importance runs learned."""

import json
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from sparsebert.importance.figures import importance_figure
from sparsebert.importance.saved import load_importance
from sparsebert.patterns.figures import paper_patterns, save_figure
from sparsebert.studies.record_store import unpacked
from sparsebert.studies.results import load_study

RESULTS = Path(__file__).resolve().parent / "results"


def recorded_importance() -> list[np.ndarray]:
    """P of every importance run of the recorded study, one array a seed."""
    with unpacked(RESULTS / "runs.jsonl.zst") as study:
        return [load_importance(run.path) for run in load_study(study).finished("importance", method="soft")]


def base_curve() -> Figure:
    """How the weights that every run of the laptop study starts from got their loss."""
    base = json.loads((RESULTS / "base.json").read_text(encoding="utf-8"))
    figure = Figure(figsize=(7, 3), layout="constrained")
    axes = figure.subplots()
    places = [point["tokens"] / 1e6 for point in base["curve"]]
    axes.plot(places, [point["mlm_loss"] for point in base["curve"]], label="training, mean of 100 steps")
    axes.plot(places[-1], base["held_out"]["mlm_loss"], "o", label="held out, at the end")
    axes.set(xlabel="million tokens", ylabel="MLM loss, nats")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    return figure


if __name__ == "__main__":
    save_figure(paper_patterns(), RESULTS / "patterns.svg")
    save_figure(base_curve(), RESULTS / "base.svg")
    learned = recorded_importance()
    title = f"learned importance P, mean over {len(learned)} seeds and their heads after normalisation"
    save_figure(importance_figure(np.concatenate(learned), title), RESULTS / "importance.svg")
