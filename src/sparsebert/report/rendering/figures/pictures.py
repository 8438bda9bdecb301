"""Pictures of a study: the hand-made patterns, the heat map of P, and what each head learned."""

import numpy as np

from sparsebert.importance.averages import SKETCH, sketch
from sparsebert.importance.saved import Method
from sparsebert.patterns import Pattern, named
from sparsebert.report import paper
from sparsebert.report.judging.importance import importances
from sparsebert.report.rendering.figures.shapes import Gallery, Picture
from sparsebert.studies.results import Study, StudyRun
from sparsebert.studies.runs import KINDS

_LARGEST = 256  # positions a side that are still drawn one by one


def handmade_gallery() -> Gallery:
    """The paper's first figure."""
    pictures = []
    for name in ("star", "log_sparse", "strided", "fixed", "longformer", "big_bird"):
        settings = {"reading": "text", "seed": 1} if name == "longformer" else {}
        pattern = named(name, SKETCH, 1, **settings)
        pictures.append(Picture(f"{paper.HANDMADE[name]} {pattern.sparsity:.0%}", kept(pattern)))
    caption = (
        f"At {SKETCH} positions; a query is a row, a key a column, kept entries are filled. Sparsity behind the name."
    )
    return Gallery("handmade", "The six hand-made patterns", caption, tuple(pictures), "kept", "1")


def kept(pattern: Pattern, head: int = 0, layer: int = 0) -> np.ndarray:
    """What a head keeps, as a square of True and False."""
    square = np.zeros(pattern.length**2, dtype=bool)
    square[pattern.entries(head, layer)] = True
    return square.reshape(pattern.length, pattern.length)


def heat_gallery(study: Study) -> Gallery:
    """The paper's second figure: P after normalisation and its sketch, and trained maps beside it."""
    pictures = []
    titles: dict[Method, str] = {"soft": "Learned P", "attention": "Trained maps"}
    for method, title in titles.items():
        found = [(run, one.heat) for run, one in importances(study, method) if one.heat is not None]
        if len({heat.shape for _, heat in found}) == 1:
            mean = np.mean([heat for _, heat in found], axis=0)
            runs = tuple(run.id for run, _ in found)
            pictures += [Picture(title, _small(mean), runs), Picture(f"{title}, sketch", sketch(mean), runs)]
    caption = (
        "Mean over heads and seeds after each row was divided by its mean, so 1 is average; dark is least, bright is "
        f"most. The sketch keeps distances and the border, and shows {SKETCH} positions."
    )
    return Gallery("heat", "Importance of every position", caption, tuple(pictures), "heat", "2")


def _small(square: np.ndarray) -> np.ndarray:
    """At most _LARGEST a side: the mean of blocks."""
    block = -(-len(square) // _LARGEST)
    if block == 1:
        return square
    size = len(square) // block * block
    return np.asarray(square[:size, :size].reshape(size // block, block, size // block, block).mean((1, 3)))


def learned_gallery(study: Study, kind: str, number: str) -> Gallery:
    """Every head of the sparsest learned pattern of that kind: the paper's fifth and sixth figures."""
    run = sparsest_search(study, kind)
    title = f"What each head learned: {KINDS[kind]}"
    if run is None:
        return Gallery(f"learned-{kind}", title, "No finished search.", (), "kept", number)
    pattern = Pattern.load(run.path / "pattern.safetensors")
    pictures = tuple(
        Picture(_head_title(pattern, head, layer), _kept_small(pattern, head, layer), (run.id,))
        for layer in range(pattern.layers)
        for head in range(pattern.heads)
    )
    caption = f"{run.label}: {pattern.length} positions, {pattern.sparsity:.1%} sparse. Kept entries are filled."
    return Gallery(f"learned-{kind}", title, caption, pictures, "kept", number)


def _head_title(pattern: Pattern, head: int, layer: int) -> str:
    return f"Head {head + 1}" if pattern.layers == 1 else f"Layer {layer + 1}, head {head + 1}"


def _kept_small(pattern: Pattern, head: int, layer: int) -> np.ndarray:
    square = kept(pattern, head, layer)
    return square if pattern.length <= _LARGEST else _small(square.astype(float)) > 0


def sparsest_search(study: Study, kind: str) -> StudyRun | None:
    """The first seed of the largest penalty, as the paper shows; else the largest target."""
    searches = study.finished("search", family="learned", kind=kind)
    return max((run for run in searches if run.file("pattern.safetensors")), key=_strength, default=None)


def _strength(run: StudyRun) -> tuple[float, float, int]:
    return run.condition.penalty or 0.0, run.condition.sparsity_target or 0.0, -run.seed
