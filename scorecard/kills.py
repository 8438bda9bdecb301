"""R1, R2, R4, R5: processes that are killed, or asked to end, at any moment."""

import json
import os
import random
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from scorecard import commands, shim
from scorecard.commands import KINDS, difference, kill_after, must_run, outcome, run, start
from scorecard.row import FailedTrialError, Figures, Row, Trial, require
from sparsebert.tasks.builtin import write_builtin
from tests.faults.processes import ended

_LEFTOVERS = (".part", ".old")


def command(kind: str, shared: Path, out: Path) -> list[object]:
    """The command of a kind of run; R5 has one of its own, that saves at every step and ends soon."""
    short = (shared / "short").exists()
    saves = 1 if short else 3
    if kind == "search":
        return commands.search(shared / "corpus", out, steps=4 if short else 12, saves=saves)
    return commands.finetune(out, *(("--max-rows", 16, "--data", shared / "data") if short else ()), saves=saves)


def set_up_short(shared: Path) -> None:
    (shared / "short").touch()
    write_builtin(shared / "data", tasks=["sst2"])
    set_up(shared)


def set_up(shared: Path) -> None:
    """A corpus, and for each kind of run an undisturbed one: what it gives, how long it takes, what it writes."""
    commands.make_corpus(shared)
    for kind in KINDS:
        started = time.monotonic()
        must_run(command(kind, shared, shared / kind), shared / "log")
        seconds = time.monotonic() - started
        # Counts are shared with children that start afterwards, so this process can read what the run has counted.
        shim.watch(shared / f"{kind}-counted")
        must_run(command(kind, shared, shared / f"{kind}-counted"), shared / "log")
        (shared / f"{kind}.json").write_text(json.dumps({"seconds": seconds, "calls": shim.calls()}))
        odd = difference(outcome(shared / kind), outcome(shared / f"{kind}-counted"))
        require(not odd, f"two undisturbed runs differ in {odd}")


def about(shared: Path, kind: str) -> dict[str, float]:
    return dict(json.loads((shared / f"{kind}.json").read_text()))


def finish_and_compare(trial: Trial, kind: str, what: str) -> Figures:
    """Run the command to its end; every byte must be that of the undisturbed run, and nothing may be left over."""
    out, log = trial.folder / "run", trial.folder / "log"
    steps = _steps(out)
    must_run(command(kind, trial.shared, out), log)
    odd = difference(outcome(out), outcome(trial.shared / kind))
    require(not odd, f"{kind} {what}: {odd} differ from the undisturbed run")
    left = [path.name for path in out.rglob("*") if path.suffix in _LEFTOVERS]
    require(not left, f"{kind} {what}: left over {left}")
    return {"steps": steps}


def _steps(out: Path) -> int:
    """Steps in metrics.jsonl at this moment."""
    path = out / "metrics.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def killed_once(trial: Trial) -> Figures:
    """Every second trial inside a call that writes, the others at a moment of the clock."""
    kind, draw = KINDS[trial.number // 2 % 2], random.Random(trial.number)
    arguments, log, figures = (
        command(kind, trial.shared, trial.folder / "run"),
        trial.folder / "log",
        about(trial.shared, kind),
    )
    if trial.number % 2:
        at = draw.randint(1, int(figures["calls"]))
        code = run(arguments, log, lambda: shim.watch(trial.folder / "run", kill_at=at))
        what = f"killed at call {at}"
    else:
        seconds = draw.uniform(0.0, figures["seconds"])
        code = kill_after(arguments, seconds, log)
        what = f"killed after {seconds:.2f} s"
    require(code in (-signal.SIGKILL, 0), f"{kind} {what}: exit code {code}: {log.read_text()[-500:]}")
    return finish_and_compare(trial, kind, what)


def killed_three_times(trial: Trial) -> Figures:
    kind, draw = KINDS[trial.number % 2], random.Random(1000 + trial.number)
    arguments, log = command(kind, trial.shared, trial.folder / "run"), trial.folder / "log"
    for _ in range(3):
        at = draw.randint(1, int(about(trial.shared, kind)["calls"] * 0.8))
        code = run(arguments, log, lambda at=at: shim.watch(trial.folder / "run", kill_at=at))
        require(code in (-signal.SIGKILL, 0), f"{kind} killed at call {at}: exit code {code}")
    return finish_and_compare(trial, kind, "killed three times")


def asked_to_end(trial: Trial) -> Figures:
    """SIGTERM or SIGINT once some steps are done: a checkpoint of the step at hand, 143 or 130, nothing lost."""
    kind, draw = KINDS[trial.number // 2 % 2], random.Random(2000 + trial.number)
    number = (signal.SIGTERM, signal.SIGINT)[trial.number % 2]
    out, log, wanted = trial.folder / "run", trial.folder / "log", draw.randint(1, 9)
    child = start(command(kind, trial.shared, out), log)
    while _steps(out) < wanted and _is_running(child):
        time.sleep(0.002)
    before = _steps(out)
    os.kill(child, number)
    code = ended(child)
    if code == 0:
        raise FailedTrialError(f"{kind} ended before its signal came, after step {before}")
    require(code == 128 + number, f"{kind}: exit code {code}, expected {128 + number}: {log.read_text()[-500:]}")
    newest = max((int(path.name[5:]) for path in (out / "checkpoints").glob("step-*")), default=0)
    require(newest == _steps(out), f"{kind}: checkpoint of step {newest}, metrics of step {_steps(out)}")
    require(newest >= before, f"{kind}: {before} steps were done, the checkpoint is of step {newest}")
    finish_and_compare(trial, kind, "asked to end")
    return {"more_steps": newest - before}


def _is_running(child: int) -> bool:
    """Whether a child goes on; one that has ended is left to be waited for."""
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None


def _places(shared: Path) -> list[tuple[str, bool, int]]:
    """Every call of a run of each kind, with and without a power cut; shuffled, so that a part is a sample."""
    places = [
        (kind, power_cut, at)
        for kind in KINDS
        for power_cut in (False, True)
        for at in range(1, int(about(shared, kind)["calls"]) + 1)
    ]
    random.Random(0).shuffle(places)
    return places


def killed_at_a_call(trial: Trial) -> None:
    """Power cut: bytes that no fsync covered are lost."""
    kind, power_cut, at = _places(trial.shared)[trial.number]
    out, log = trial.folder / "run", trial.folder / "log"
    code = run(command(kind, trial.shared, out), log, lambda: shim.watch(out, kill_at=at, power_cut=power_cut))
    what = f"killed at call {at}{' with a power cut' if power_cut else ''}"
    require(code == -signal.SIGKILL, f"{kind} {what}: exit code {code}: {log.read_text()[-500:]}")
    finish_and_compare(trial, kind, what)


def _resumed(figures: Sequence[Figures]) -> str:
    begun = sum(one["steps"] > 0 for one in figures)
    return f"every file compared by sha256, metrics.jsonl with all losses among them; {begun} were killed after step 1"


ROWS = [
    Row(
        "R1",
        "kill -9 of search and finetune at random moments, half of them inside a write, rename or fsync; resume",
        "100/100 identical",
        100,
        killed_once,
        set_up,
        words=_resumed,
    ),
    Row("R2", "three kills in a row within one run", "30/30", 30, killed_three_times, set_up),
    Row(
        "R4",
        "SIGTERM and SIGINT during search and finetune",
        "50/50 checkpoint, right exit code, at most one step lost",
        50,
        asked_to_end,
        set_up,
        fast=(0, 3),
        words=lambda figures: (
            f"no step lost; at most {int(max(one['more_steps'] for one in figures))} more done before the end"
        ),
    ),
    Row(
        "R5",
        "killed at every write, fsync, rename, unlink and mkdir of a run, in its saves above all",
        "0 unresumable",
        1000,
        killed_at_a_call,
        set_up_short,
        count=lambda shared: len(_places(shared)),
        fast=range(4),
        words=lambda _: "one trial for each call, and one more in which unsynced bytes are lost",
    ),
]
