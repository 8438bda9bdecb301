"""S6: the sparse operator under the sanitizers, called rightly and wrongly, through torch and past it."""

from collections.abc import Sequence
from pathlib import Path

from scorecard.row import FailedTrialError, Figures, Row, Trial
from tests.attention.operator_fuzz import CHUNK, build, fuzz


def _setup(shared: Path) -> None:
    build(shared)


def _run(trial: Trial) -> Figures:
    try:
        became = fuzz(trial.shared / "_sparse_kernel.so", CHUNK, trial.number)
    except RuntimeError as error:
        raise FailedTrialError(str(error)) from error
    return {word: float(count) for word, count in became.items()}


def _words(figures: Sequence[Figures]) -> str:
    right, refused = (int(sum(each.get(word, 0.0) for each in figures)) for word in ("right", "refused"))
    return f"{right:,} gave the oracle's answer, {refused:,} were refused; fresh memory held NaN"


ROWS = [
    Row(
        "S6",
        "the sparse operator under ASan and UBSan: sizes, strides, types, devices, indices of another length, "
        "torch.func, checkpoints, threads, and structures with wrong numbers",
        "20,000 calls: 0 crashes, 0 uninitialised reads",
        40,
        _run,
        setup=_setup,
        unit="calls",
        each=CHUNK,
        words=_words,
    )
]
