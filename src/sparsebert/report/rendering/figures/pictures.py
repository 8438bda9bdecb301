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
        pictures.append(Picture(f"{paper.HANDMADE[name]} {pattern.sparsity:.0%}", pattern.keep()[0].numpy()))
    caption = (
        f"At {SKETCH} positions; a query is a row, a key a column, kept entries are filled. Sparsity behind the name."
    )
    return Gallery("handmade", "The six hand-made patterns", caption, tuple(pictures), "kept", "1")


def heat_gallery(study: Study) -> Gallery:
    """The paper's second figure: P after normalisation and its sketch, and trained maps beside it."""
    pictures = []
    titles: dict[Method, str] = {"soft": "Learned P", "attention": "Trained maps"}
    for method, title in titles.items():
        found = [(run, one.heat) for run, one in importances(study, method) if one.heat is not None]
        if len({heat.shape for _, heat in found}) == 1:
            mean = np.mean([heat for _, heat in found], axis=0)
            runs = tuple(run.id for run, _ in found)
            pictures += [Picture(title, small(mean), runs), Picture(f"{title}, sketch", sketch(mean), runs)]
    caption = (
        "Mean over heads and seeds after each row was divided by its mean, so 1 is average; dark is least, bright is "
        f"most. The sketch keeps distances and the border, and shows {SKETCH} positions."
    )
    return Gallery("heat", "Importance of every position", caption, tuple(pictures), "heat", "2")


def small(square: np.ndarray) -> np.ndarray:
    """At most _LARGEST a side: the mean of blocks, or whether anything of a block is kept."""
    block = -(-len(square) // _LARGEST)
    size = len(square) // block
    blocks = square[: size * block, : size * block].reshape(size, block, size, block)
    return np.asarray(blocks.any((1, 3)) if square.dtype == bool else blocks.mean((1, 3)))


def learned_gallery(study: Study, kind: str, number: str) -> Gallery:
    """Every head of the sparsest learned pattern of that kind: the paper's fifth and sixth figures."""
    key, title = f"learned-{kind}", f"What each head learned: {KINDS[kind]}"
    searches = [run for run in study.finished("search", family="learned", kind=kind) if run.file("pattern.safetensors")]
    if not searches:
        return Gallery(key, title, "No finished search.", (), "kept", number)
    run = max(searches, key=_strength)
    pattern = Pattern.load(run.path / "pattern.safetensors")
    pictures = []
    for layer in range(pattern.layers):
        for head, square in enumerate(pattern.layer(layer).keep().numpy(), 1):
            name = f"Head {head}" if pattern.layers == 1 else f"Layer {layer + 1}, head {head}"
            pictures.append(Picture(name, small(square), (run.id,)))
    caption = f"{run.label}: {pattern.length} positions, {pattern.sparsity:.1%} sparse. Kept entries are filled."
    return Gallery(key, title, caption, tuple(pictures), "kept", number)


def _strength(run: StudyRun) -> tuple[float, float, int]:
    """The first seed of the largest penalty, as the paper shows; else the largest target."""
    return run.condition.penalty or 0.0, run.condition.sparsity_target or 0.0, -run.seed
