"""R3, R10: several ranks, and one of them lost."""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from scorecard import commands
from scorecard.commands import difference, must_run, outcome, start
from scorecard.row import Figures, Row, Trial, require
from sparsebert.errors import RunInterruptedError
from sparsebert.files import sha256
from sparsebert.text import TokenStore
from sparsebert.training import FitConfig, Losses, fit
from sparsebert.training.pretraining import PretrainingObjective, corpus_parts
from sparsebert.training.starting_points import load_for_corpus
from tests.faults.processes import ended, forked_ranks

_MOST_SECONDS = 10.0  # from the loss of a rank to the end of the other
_BY_TORCHRUN = 10  # every so manieth trial is started by torchrun itself
TOLERANCE = 1e-4  # of a loss, between one rank and four: sums are taken in another order


def set_up(shared: Path) -> None:
    corpus = commands.make_corpus(shared)
    must_run(commands.search(corpus, shared / "search"), shared / "log")


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _start_ranks(arguments: list[object], folder: Path) -> list[int]:
    """Two processes that find each other as those of torchrun do."""
    names = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(_free_port())}

    def environment(rank: int) -> Callable[[], None]:
        return lambda: os.environ.update(names, RANK=str(rank), LOCAL_RANK=str(rank))

    return [start(arguments, folder / f"log.{rank}", environment(rank)) for rank in range(2)]


def _steps(out: Path) -> int:
    path = out / "metrics.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def rank_lost(trial: Trial) -> Figures:
    if trial.number % _BY_TORCHRUN == _BY_TORCHRUN - 1:
        return _lost_under_torchrun(trial)
    draw = random.Random(trial.number)
    out = trial.folder / "run"
    arguments = commands.search(trial.shared / "corpus", out)
    children, victim, wanted = _start_ranks(arguments, trial.folder), draw.randrange(2), draw.randint(1, 8)
    _wait_for_step(out, wanted)
    os.kill(children[victim], signal.SIGKILL)
    began = time.monotonic()
    require(ended(children[victim]) == -signal.SIGKILL, "the rank ended before it was killed")
    code = ended(children[1 - victim])
    seconds = time.monotonic() - began
    require(
        code in (2, 3), f"the other rank ended with {code}: {(trial.folder / f'log.{1 - victim}').read_text()[-500:]}"
    )
    require(seconds < _MOST_SECONDS, f"the other rank ended after {seconds:.1f} s")
    codes = [ended(child) for child in _start_ranks(arguments, trial.folder)]
    require(codes == [0, 0], f"the resumed ranks ended with {codes}: {(trial.folder / 'log.0').read_text()[-500:]}")
    _compare(out, trial.shared / "search")
    return {"seconds": seconds}


def _wait_for_step(out: Path, wanted: int) -> None:
    deadline = time.monotonic() + 300
    while _steps(out) < wanted:
        require(time.monotonic() < deadline, f"no step {wanted} within five minutes")
        time.sleep(0.002)


def _compare(out: Path, undisturbed: Path) -> None:
    """Everything but run.json, which says how many ranks there were."""
    found, expected = outcome(out), outcome(undisturbed)
    odd = difference(found | {"run.json": ""}, expected | {"run.json": ""})
    require(not odd, f"{odd} differ from the run of one process")


def _lost_under_torchrun(trial: Trial) -> Figures:
    out = trial.folder / "run"
    words = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", str(_free_port())]
    program = "from sparsebert.cli import main; main()"
    script = trial.folder / "command.py"
    script.write_text(program)
    command = [*words, str(script), *map(str, commands.search(trial.shared / "corpus", out))]
    with (trial.folder / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as agent:
        _wait_for_step(out, 3)
        victim = random.Random(trial.number).choice(list(_children(agent.pid)))
        began = time.monotonic()
        os.kill(victim, signal.SIGKILL)
        agent.wait(timeout=60)
        seconds = time.monotonic() - began
    require(agent.returncode != 0, "torchrun ended as if nothing had been")
    require(seconds < _MOST_SECONDS, f"torchrun ended after {seconds:.1f} s")
    with (trial.folder / "log").open("ab") as log:
        done = subprocess.run(command, stdout=log, stderr=log, check=False)
    require(
        done.returncode == 0,
        f"the resumed run ended with {done.returncode}: {(trial.folder / 'log').read_text()[-500:]}",
    )
    _compare(out, trial.shared / "search")
    return {"seconds": seconds}


def _children(parent: int) -> Iterator[int]:
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            yield int(path.parent.name)


class _Noted(PretrainingObjective):
    """Notes which samples each part of each step has seen, and may end a run early."""

    notes: Path
    stop_at: int = -1

    def forward(self, step: int, micro: int) -> Losses:
        if step == self.stop_at:
            os.kill(os.getpid(), signal.SIGTERM)
        batch, _ = self.part(step, micro)
        line = f"{step} {micro} {sha256(batch.input_ids.numpy().tobytes())}\n"
        with (self.notes / os.environ.get("RANK", "0")).open("a") as stream:
            stream.write(line)
        return super().forward(step, micro)


def _train(corpus: Path, out: Path, stop_at: int) -> None:
    store = TokenStore.open(corpus)
    batches: Any = corpus_parts(store, batch_size=8, length=24, seed=0)
    objective = _Noted(
        load_for_corpus("scratch:tiny", store, 24, seed=0, dropout=None),
        batches,
        batches(0, 1),
        num_held_out=1,
        learning_rate=1e-3,
    )
    objective.notes, objective.stop_at = out / "notes", stop_at
    (out / "notes").mkdir(parents=True, exist_ok=True)
    fit(objective, FitConfig(12, micro_batches=4, checkpoint_every=100), out)


def _on_ranks(corpus: Path, out: Path, count: int, stop_at: int = -1) -> None:
    def work() -> None:
        torch.set_num_threads(1)
        try:
            _train(corpus, out, stop_at)
        except RunInterruptedError:
            require(stop_at >= 0, "the run was interrupted")

    codes = [ended(child) for child in forked_ranks(work, count, out.with_suffix(".log"))]
    said = "".join(path.read_text() for path in out.parent.glob(f"{out.name}.*") if path.is_file())
    require(codes == [0] * count, f"{count} ranks ended with {codes}: {said[-600:]}")


def _samples(out: Path) -> list[str]:
    return sorted({line for path in (out / "notes").iterdir() for line in path.read_text().splitlines()})


def _losses(out: Path) -> list[float]:
    return [json.loads(line)["loss"] for line in (out / "metrics.jsonl").read_text().splitlines()]


def more_ranks(trial: Trial) -> Figures:
    """1, 2 and 4 ranks apart, then one run that is handed from 1 to 2 to 4."""
    corpus = trial.shared / "corpus"
    for count in (1, 2, 4):
        _on_ranks(corpus, trial.folder / f"ranks-{count}", count)
    handed = trial.folder / "handed-on"
    for count, stop_at in ((1, 3), (2, 7), (4, -1)):
        _on_ranks(corpus, handed, count, stop_at)
    expected, worst = trial.folder / "ranks-1", 0.0
    for out in (trial.folder / "ranks-2", trial.folder / "ranks-4", handed):
        require(_samples(out) == _samples(expected), f"{out.name} saw other samples")
        require(len(_losses(out)) == 12, f"{out.name} has {len(_losses(out))} steps")
        worst = max(worst, *(abs(a - b) for a, b in zip(_losses(out), _losses(expected), strict=True)))
    require(worst <= TOLERANCE, f"losses differ by {worst:.2g}")
    return {"difference": worst}


def _slowest(figures: Sequence[Figures]) -> str:
    return f"the slowest ended after {max(one['seconds'] for one in figures):.1f} s"


ROWS = [
    Row(
        "R3",
        "2 ranks, one of them killed (every tenth time under torchrun itself)",
        "20/20 end within 10 s, resume identical",
        20,
        rank_lost,
        set_up,
        words=_slowest,
    ),
    Row(
        "R10",
        "1, 2 and 4 ranks; one run handed from 1 to 2 to 4",
        f"same sample order; losses within {TOLERANCE:g}",
        3,
        more_ranks,
        set_up,
        words=lambda figures: f"largest difference of a loss {max(one['difference'] for one in figures):.1e}",
    ),
]
