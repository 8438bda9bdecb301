"""fit(): the one training loop. A run that was killed and started again ends with the same bits.

    objective(step, micro) -> Updater (gradients, ranks, AdamW) -> metrics.jsonl -> checkpoint -> ... -> finish

Nothing that moves along is left out of a checkpoint: batches, dropout and noise are drawn by step number, learning
rates are functions of it, and weights and the optimiser's moments are saved to the bit.
"""

import contextlib
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from sparsebert.errors import RunInterruptedError, TrainingError
from sparsebert.files import synced_together, write_json
from sparsebert.layers.bfloat16 import require_bfloat16
from sparsebert.layers.float32 import full_speed_products
from sparsebert.progress import Watcher
from sparsebert.training import signals
from sparsebert.training.checkpoints import Checkpoints, RunState
from sparsebert.training.config import FitConfig
from sparsebert.training.events import event_writer
from sparsebert.training.launch import Ranks, joined
from sparsebert.training.objective import Objective
from sparsebert.training.run_folder import RunFolder
from sparsebert.training.update import StepReport, Updater

_SHOWN = ("loss", "sparsity")  # of a line of metrics, while a run goes on


@dataclass(frozen=True)
class Result:
    """A finished run."""

    folder: Path
    fields: Mapping[str, Any]  # of result.json
    resumed_from: int = 0  # steps that were done already when fit() was called
    was_finished: bool = False  # nothing was left to do


@full_speed_products()
def fit(
    objective: Objective,
    config: FitConfig,
    folder: Path,
    *,
    settings: Mapping[str, Any] | None = None,
    progress: Watcher | None = None,
    leave_checkpoint: bool = True,
) -> Result:
    """Train the objective in a run folder; called again on the same folder it resumes, or finds that all is done.

    settings: what else defines the run (model, data, pattern ...), JSON values; saved in run.json, and a change is
    refused by name, except within settings["where"]. leave_checkpoint: the last step has one too; False where no one
    would read it once the run is finished. Under torchrun every rank calls this; rank 0 alone writes, to a folder that
    all ranks can read.
    """
    run = RunFolder(Path(folder))
    with joined(config.peer_timeout) as ranks, _claim(run, ranks), _own_draws(ranks), signals.remembered() as got:
        config = config.for_ranks(ranks.count)
        if config.precision == "bfloat16" and ranks.device.type == "cpu":
            require_bfloat16()
        threads = run.begin(config, settings or {}, ranks.count) if ranks.is_main else None
        torch.set_num_threads(ranks.agree(threads))
        fields = ranks.agree(run.result() if ranks.is_main else None)
        if fields is not None:
            return Result(run.folder, fields, config.num_steps, was_finished=True)
        loop = _Loop(objective.to(ranks.device), config, run, ranks, got, progress or Watcher(), leave_checkpoint)
        resumed_from = loop.restore()
        with loop.recording():
            loop.train()
        return Result(run.folder, ranks.agree(loop.finish() if ranks.is_main else None), resumed_from)


def _claim(run: RunFolder, ranks: Ranks) -> contextlib.AbstractContextManager[object]:
    return run.claimed() if ranks.is_main else contextlib.nullcontext()


def _own_draws(ranks: Ranks) -> contextlib.AbstractContextManager[None]:
    """The caller's random numbers go on afterwards as if nothing had been drawn here."""
    return torch.random.fork_rng(devices=[ranks.device] if ranks.device.type == "cuda" else [])


@dataclass
class _Session:
    """This call's share of timing.json."""

    first_step: int
    tokens: int = 0
    started: float = field(default_factory=time.perf_counter)
    earlier: list[Any] = field(default_factory=list)

    def as_json(self, last_step: int) -> dict[str, float]:
        seconds = time.perf_counter() - self.started
        figures = {"tokens": self.tokens, "seconds": seconds, "tokens_per_second": self.tokens / max(seconds, 1e-9)}
        return {"first_step": self.first_step, "last_step": last_step, **figures}

    def shown(self, line: Mapping[str, Any], num_steps: int) -> tuple[str, float]:
        """A few words about a step, and the seconds left after it."""
        step, seconds = line["step"], time.perf_counter() - self.started
        words = [f"{name} {line[name]:.4g}" for name in _SHOWN if line.get(name) is not None]
        words.append(f"{self.tokens / max(seconds, 1e-9):,.0f} tokens/s")
        return ", ".join(words), seconds / (step - self.first_step) * (num_steps - step)


class _Loop:
    """What the steps of one call share."""

    def __init__(
        self,
        objective: Objective,
        config: FitConfig,
        run: RunFolder,
        ranks: Ranks,
        received: signals.Received,
        watcher: Watcher,
        leave_checkpoint: bool,
    ) -> None:
        objective.micro_batches = config.micro_batches
        self.objective, self.config, self.run, self.ranks = objective, config, run, ranks
        self.received, self.watcher, self.leave_checkpoint = received, watcher, leave_checkpoint
        self.updater = Updater(objective, config, ranks)
        self.checkpoints = Checkpoints(run.checkpoints, config.keep_checkpoints)
        self.state = RunState()

    def restore(self) -> int:
        """Go back to the newest good checkpoint, and take back the metrics of later steps."""
        step: int = self.ranks.agree(self.checkpoints.newest() if self.ranks.is_main else None)
        if step:
            self.state = self.checkpoints.load(step, self.objective, self.updater.optimiser)
        else:
            self.ranks.copy_from_main(self.objective)
        if self.ranks.is_main:
            self.run.rewind_metrics(step)
        return step

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        """Rank 0 keeps the records; on other ranks there is nothing to open."""
        if not self.ranks.is_main:
            yield
            return
        self.session = _Session(self.state.step, earlier=self.run.earlier_sessions())
        with self.run.metrics_writer() as self.metrics, event_writer(self.run.folder, self.config) as self.events:
            self.watcher.start(self.state.step, self.config.num_steps)
            try:
                yield
            finally:
                self.watcher.stop()

    def train(self) -> None:
        self.objective.train()
        for step in range(self.state.step, self.config.num_steps):
            report = self.updater.step(step, self.received)
            self._advance(report)
            if self.ranks.is_main:
                self._record(report)
            self._stop_if_lost()
            if report.signal:
                raise RunInterruptedError(
                    f"signal {report.signal} ended the run after step {self.state.step}; its checkpoint is written, "
                    "the same command goes on from there",
                    report.signal,
                )

    def _advance(self, report: StepReport) -> None:
        before, step = self.state, self.state.step + 1
        is_due = self._is_due(step, self.config.evaluate_every)
        self.state = RunState(
            step=step,
            tokens=before.tokens + report.tokens,
            skipped=before.skipped + report.skipped,
            skipped_in_a_row=before.skipped_in_a_row + 1 if report.skipped else 0,
            evaluation=self._evaluate(step) if is_due and self.ranks.is_main else before.evaluation,
        )

    def _evaluate(self, step: int) -> dict[str, float | None]:
        """Figures of the objective; None, which JSON can hold, where one is not finite."""
        self.objective.eval()
        with torch.no_grad():
            figures = self.objective.evaluate(step)
        self.objective.train()
        return {name: value if math.isfinite(value) else None for name, value in figures.items()}

    def _record(self, report: StepReport) -> None:
        step = self.state.step
        line = report.as_line(step)
        self.run.record()
        if self._is_due(step, self.config.evaluate_every):
            line["evaluation"] = dict(self.state.evaluation)
        self.metrics(line)
        self.events(line)
        self.session.tokens += report.tokens
        self.watcher.step(step, *self.session.shown(line, self.config.num_steps))
        is_left = step < self.config.num_steps or self.leave_checkpoint
        is_due = self._is_due(step, self.config.checkpoint_every) and is_left
        if (is_due or report.signal) and not self._is_lost():
            # What a checkpoint counts as done is on the disk before it.
            self._record_session()
            self.checkpoints.save(self.state, self.objective, self.updater.optimiser)

    def _record_session(self) -> None:
        """Bring what this call has done so far to the disk: the metrics of its steps, and its time."""
        with synced_together() as together:
            together.add(self.run.metrics)
            self.run.add_timing(self.session.as_json(self.state.step), self.session.earlier)

    def _is_due(self, step: int, every: int) -> bool:
        return step == self.config.num_steps or (every > 0 and step % every == 0)

    def _is_lost(self) -> bool:
        return self.state.skipped_in_a_row >= self.config.max_skipped

    def _stop_if_lost(self) -> None:
        if self._is_lost():
            raise TrainingError(
                f"loss or gradient was not finite in {self.config.max_skipped} steps in a row, the last of them step "
                f"{self.state.step}; lower the learning rate or look at the batches of these steps"
            )

    def finish(self) -> dict[str, Any]:
        """Write what the run was for, then result.json, whose presence says that all of it is there and on the disk."""
        self.objective.eval()
        figures = {"steps": self.state.step, "tokens": self.state.tokens, "skipped_steps": self.state.skipped}
        common: dict[str, Any] = {"seed": self.config.seed, "metrics": dict(self.state.evaluation), **figures}
        with synced_together():
            self._record_session()
            fields = common | self.objective.finish(self.run.folder)
        if fields.get("metric") in fields["metrics"]:
            fields.setdefault("score", fields["metrics"][fields["metric"]])
        self.checkpoints.rotate(1)
        write_json(self.run.folder / "result.json", fields)
        return fields
