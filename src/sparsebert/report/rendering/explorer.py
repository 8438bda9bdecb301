"""What the explorer shows: values of every entry packed small, or kept entries, of a few telling runs."""

from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from sparsebert.importance.saved import find_importance
from sparsebert.patterns import Pattern, named
from sparsebert.report import paper
from sparsebert.studies.results import Study, StudyRun

_BUDGET = 4_500_000  # characters of packed values; the page must stay under 8 MB
_STEPS = 65535  # levels of a packed value: fine enough that entries of one head hardly tie
_LENGTH = 128  # of the hand-made patterns where no run says otherwise


def explorer_data(study: Study) -> dict[str, Any]:
    """Sources in the order in which they are offered, as many as the page has room for."""
    sources, used, left_out = [], 0, 0
    lengths = []
    for source in _learned(study):
        size = len(source["packed"])
        if used + size > _BUDGET:
            left_out += 1
            continue
        used += size
        lengths.append(source["n"])
        sources.append(source)
    sources += _handmade(lengths[0] if lengths else _LENGTH)
    return {"sources": sources, "left_out": left_out}


def _learned(study: Study) -> Iterator[dict[str, Any]]:
    for run in _chosen(study):
        values, path = find_importance(run.path), run.file("pattern.safetensors")
        pattern = None if path is None else Pattern.load(path)
        if values is not None:
            yield pack_values(_title(run), values, run.id, pattern)
        elif pattern is not None:
            # A record leaves out what a large search learned; what it kept can still be looked at, layer by layer.
            for layer in range(pattern.layers):
                which = "" if pattern.layers == 1 else f", layer {layer + 1}"
                yield pack_kept(_title(run) + which, pattern.layer(layer).keep().numpy(), run.id)


def _chosen(study: Study) -> list[StudyRun]:
    """One seed of each importance method, and of each search."""
    first: dict[tuple[Any, ...], StudyRun] = {}
    for run in (*study.finished("importance"), *study.finished("search")):
        one = run.condition
        key = (run.stage, one.method, one.kind, one.penalty, one.sparsity_target)
        if key not in first or run.seed < first[key].seed:
            first[key] = run
    return list(first.values())


def _title(run: StudyRun) -> str:
    if run.stage != "importance":
        return run.label
    return "Trained attention maps" if run.condition.method == "attention" else "Learned importance P"


def pack_values(
    title: str, values: Float[np.ndarray, "heads n n"], run: str | None, frozen: Pattern | None
) -> dict[str, Any]:
    """Sixteen bits a value, the upper half alone where a value and its mirror image are equal; and what was frozen."""
    heads, n, _ = values.shape
    low, high = float(values.min()), float(values.max())
    levels = np.round((values - low) / ((high - low) or 1.0) * _STEPS).astype("<u2")
    halved = bool((levels == levels.transpose(0, 2, 1)).all())
    packed = levels[:, *np.triu_indices(n)] if halved else levels.reshape(heads, -1)
    fits = frozen is not None and (frozen.layers, frozen.heads, frozen.length) == (1, heads, n)
    return {
        "title": title,
        "kind": "values",
        "n": n,
        "heads": heads,
        "low": low,
        "high": high,
        "halved": halved,
        "frozen": _bits(frozen.keep().numpy()) if fits and frozen else None,
        "run": run,
        "packed": b64encode(packed.tobytes()).decode(),
    }


def _handmade(length: int) -> Iterator[dict[str, Any]]:
    for name, title in paper.HANDMADE.items():
        yield pack_kept(title, named(name, length).keep().numpy())


def pack_kept(title: str, keep: Bool[np.ndarray, "heads n n"], run: str | None = None) -> dict[str, Any]:
    """One bit an entry."""
    heads, n, _ = keep.shape
    return {"title": title, "kind": "kept", "n": n, "heads": heads, "run": run, "packed": _bits(keep)}


def _bits(keep: Bool[np.ndarray, "heads n n"]) -> str:
    bits = np.packbits(keep.reshape(len(keep), -1), axis=1, bitorder="little")
    return b64encode(bits.tobytes()).decode()
