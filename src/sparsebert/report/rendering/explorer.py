"""What the explorer shows: values of every entry packed small, or kept entries, of a few telling runs."""

from base64 import b64encode
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from sparsebert.importance.saved import find_importance
from sparsebert.patterns import Pattern, named
from sparsebert.report import paper
from sparsebert.studies.results import Study, StudyRun

BUDGET = 4_500_000  # characters of packed values; the page must stay under 8 MB
_STEPS = 65535  # levels of a packed value: fine enough that entries of one head hardly tie
_LENGTH = 128  # of the hand-made patterns where no run says otherwise


def explorer_data(study: Study) -> dict[str, Any]:
    """Sources in the order in which they are offered, as many as the page has room for."""
    data = within_budget(_learned(study))
    sources = data["sources"]
    return {**data, "sources": [*sources, *_handmade(sources[0]["n"] if sources else _LENGTH)]}


def within_budget(sources: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The first sources that a page has room for, and how many it has not."""
    kept, used, left_out = [], 0, 0
    for source in sources:
        size = len(source["packed"])
        if used + size > BUDGET:
            left_out += 1
            continue
        used += size
        kept.append(source)
    return {"sources": kept, "left_out": left_out}


def _learned(study: Study) -> Iterator[dict[str, Any]]:
    for run in _chosen(study):
        values, path = find_importance(run.path), run.file("pattern.safetensors")
        pattern = None if path is None else Pattern.load(path)
        if values is not None:
            yield pack_values(_title(run), values, run.id, pattern)
        elif pattern is not None:
            # A record leaves out what a large search learned; what it kept can still be looked at.
            yield pack_pattern(_title(run), pattern, run.id)


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
    title: str,
    values: Float[np.ndarray, "all_heads n n"],
    run: str | None = None,
    frozen: Pattern | None = None,
    *,
    as_values: bool = False,
) -> dict[str, Any]:
    """Sixteen bits a value, the upper half alone where a value and its mirror image are equal; and what was frozen.

    as_values: colours of the values are what is shown first, not what stays of them.
    """
    rows, n, _ = values.shape
    low, high = float(values.min()), float(values.max())
    levels = np.round((values - low) / ((high - low) or 1.0) * _STEPS).astype("<u2")
    halved = bool((levels == levels.transpose(0, 2, 1)).all())
    packed = levels[:, *np.triu_indices(n)] if halved else levels.reshape(rows, -1)
    fits = frozen is not None and (len(frozen.row_starts), frozen.length) == (rows, n)
    return {
        "title": title,
        "kind": "values",
        "n": n,
        "layers": frozen.layers if fits and frozen else 1,
        "heads": frozen.heads if fits and frozen else rows,
        "low": low,
        "high": high,
        "halved": halved,
        "frozen": _bits(_all_heads(frozen)) if fits and frozen else None,
        "as_values": as_values,
        "run": run,
        "packed": b64encode(packed.tobytes()).decode(),
    }


def _handmade(length: int) -> Iterator[dict[str, Any]]:
    for name, title in paper.HANDMADE.items():
        yield pack_pattern(title, named(name, length))


def pack_pattern(title: str, pattern: Pattern, run: str | None = None, said: str | None = None) -> dict[str, Any]:
    """One bit an entry. said: in place of a sparsity to choose, why there is none."""
    why = "stated, not learned" if run is None else "as it was frozen; the values were not kept"
    return {
        "title": title,
        "kind": "kept",
        "n": pattern.length,
        "layers": pattern.layers,
        "heads": pattern.heads,
        "run": run,
        "said": said or why,
        "packed": _bits(_all_heads(pattern)),
    }


def _all_heads(pattern: Pattern) -> Bool[np.ndarray, "all_heads n n"]:
    """Those of the first layer, then those of the second ..."""
    return pattern.keep().numpy().reshape(-1, pattern.length, pattern.length)


def _bits(keep: Bool[np.ndarray, "all_heads n n"]) -> str:
    bits = np.packbits(keep.reshape(len(keep), -1), axis=1, bitorder="little")
    return b64encode(bits.tobytes()).decode()
