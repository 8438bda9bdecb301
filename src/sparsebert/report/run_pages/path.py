"""How a run got there, as a section: what its metrics say step by step."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sparsebert.report.rendering.figures.shapes import Chart, Panel, Point, Series
from sparsebert.report.run_pages.sections import Section
from sparsebert.runs.search import read_metrics

_MOST_POINTS = 300  # of a curve
# What a run may log, and how a reader calls it; the loss itself only where it is not the sum of what is shown.
_CURVES = {
    "sparsity": "expected sparsity",
    "hidden_error": "error of hidden states",
    "embedding_distance": "distance of embeddings",
}


def path_section(run: Path) -> Section:
    lines = read_metrics(run)
    shown = {key: words for key, words in _CURVES.items() if key in lines[-1]}
    if "hidden_error" not in shown:
        shown["loss"] = "loss"
    panels = tuple(
        Panel("", "step", words, (Series(words, _points(lines, key), place),))
        for place, (key, words) in enumerate(shown.items())
    )
    caption = "On training text, step by step, before anything is frozen; the figures above are of held-out text."
    chart = Chart("path", "How it was learned", caption, panels)
    return Section(
        "path", "Path", "The path there", "What the run was led by, from its first step to its last.", (chart,)
    )


def _points(lines: Sequence[dict[str, Any]], key: str) -> tuple[Point, ...]:
    every = -(-len(lines) // _MOST_POINTS)
    return tuple(Point(line["step"], line[key]) for line in lines[::every] if line.get(key) is not None)
