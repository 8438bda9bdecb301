"""What a person sees of a run: a bar on a terminal, a quiet line now and then elsewhere."""

import sys
import time
from collections.abc import Mapping
from typing import Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

_SECONDS_BETWEEN_LINES = 30.0
_SHOWN = ("loss", "sparsity")


class Watcher(Protocol):
    """Told of every step."""

    def start(self, done: int, total: int) -> None: ...

    def step(self, line: Mapping[str, Any], tokens_per_second: float) -> None: ...

    def stop(self) -> None: ...


class Silent:
    """Shows nothing."""

    def start(self, done: int, total: int) -> None:
        pass

    def step(self, line: Mapping[str, Any], tokens_per_second: float) -> None:
        pass

    def stop(self) -> None:
        pass


class Bar:
    """A bar with loss, sparsity, tokens a second and the time left."""

    def __init__(self, title: str) -> None:
        words = [
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[words]}"),
        ]
        self.bar = Progress(*words, TimeRemainingColumn(), console=Console(stderr=True))
        self.title = title

    def start(self, done: int, total: int) -> None:
        self.task = self.bar.add_task(self.title, total=total, completed=done, words="")
        self.bar.start()

    def step(self, line: Mapping[str, Any], tokens_per_second: float) -> None:
        self.bar.update(self.task, completed=line["step"], words=_words(line, tokens_per_second))

    def stop(self) -> None:
        self.bar.stop()


class Lines:
    """A line for the first and the last step, and at most one in half a minute between them."""

    def __init__(self, title: str) -> None:
        self.title = title

    def start(self, done: int, total: int) -> None:
        self.total, self.first, self.started, self.last = total, done, time.monotonic(), 0.0
        if done:
            sys.stderr.write(f"{self.title}: resumed after step {done} of {total}\n")

    def step(self, line: Mapping[str, Any], tokens_per_second: float) -> None:
        now, step = time.monotonic(), int(line["step"])
        if step < self.total and self.last and now - self.last < _SECONDS_BETWEEN_LINES:
            return
        self.last = now
        left = (now - self.started) / (step - self.first) * (self.total - step)
        words = _words(line, tokens_per_second)
        sys.stderr.write(f"{self.title}: step {step} of {self.total}, {words}, {left:.0f} s left\n")
        sys.stderr.flush()

    def stop(self) -> None:
        pass


def for_this_terminal(title: str) -> Watcher:
    """A bar where one can be drawn, lines elsewhere."""
    return Bar(title) if sys.stderr.isatty() else Lines(title)


def _words(line: Mapping[str, Any], tokens_per_second: float) -> str:
    shown = [f"{name} {line[name]:.4g}" for name in _SHOWN if line.get(name) is not None]
    return ", ".join([*shown, f"{tokens_per_second:,.0f} tokens/s"])
