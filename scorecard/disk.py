"""R6: a disk that fills up during prepare, a search, a fine-tuning."""

import json
import random
import shutil
from pathlib import Path

from scorecard import commands, shim
from scorecard.commands import difference, must_run, outcome, run
from scorecard.row import Figures, Row, Trial, require

KINDS = ("prepare", "search", "finetune")
_WORDS = ("No space left on device", "MiB free")


def _command(kind: str, shared: Path, out: Path) -> list[object]:
    if kind == "prepare":
        options = ["--model", "scratch:tiny", "--train-vocab", 150, "--held-out", 0.2, "--workers", 1]
        return ["prepare", shared / "text.txt", *options, "--out", out]
    return commands.search(shared / "corpus", out) if kind == "search" else commands.finetune(out)


def set_up(shared: Path) -> None:
    commands.make_corpus(shared)
    for kind in KINDS:
        shim.watch(shared / kind)
        must_run(_command(kind, shared, shared / kind), shared / "log")
        (shared / f"{kind}.json").write_text(json.dumps(shim.written()))


def disk_full(trial: Trial) -> Figures:
    kind, draw = KINDS[trial.number % len(KINDS)], random.Random(trial.number)
    total = int(json.loads((trial.shared / f"{kind}.json").read_text()))
    quota = draw.randrange(total)
    out, log, what = trial.folder / "out", trial.folder / "log", f"{kind} with {quota:,} of {total:,} bytes"
    arguments = _command(kind, trial.shared, out)
    code = run(arguments, log, lambda: shim.watch(out, quota=quota))
    said = log.read_text()
    require(code == 2, f"{what}: exit code {code}: {said[-700:]}")
    errors = [line for line in said.splitlines() if line.startswith("error: ")]
    require(len(errors) == 1 and any(words in errors[0] for words in _WORDS), f"{what}: {said[-700:]}")
    require("Traceback" not in said, f"{what}: a traceback")
    if kind != "prepare":
        _require_good_checkpoint(out, what)
    must_run(arguments, log)
    odd = difference(outcome(out), outcome(trial.shared / kind))
    require(not odd, f"{what}: {odd} differ afterwards")
    return {"share": quota / total}


def _require_good_checkpoint(out: Path, what: str) -> None:
    """What was published before the disk was full is all there still."""
    from sparsebert.training.checkpoints import Checkpoints

    published = sorted((out / "checkpoints").glob("step-*"))
    if published:
        shutil.copytree(out / "checkpoints", out.with_name("copy"))
        newest = Checkpoints(out.with_name("copy"), keep=2).newest()
        require(newest == int(published[-1].name[5:]), f"{what}: checkpoint {published[-1].name} does not verify")


ROWS = [
    Row(
        "R6",
        "the disk is full (a quota below the C library) after so many bytes of prepare, search or finetune: 30 sizes",
        "30/30 clear error, last good kept, resumes",
        30,
        disk_full,
        set_up,
        fast=(0, 1, 2),
    )
]
