"""What a person sees of a whole study: runs done, what was made last, time left."""

import sys
import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from sparsebert.studies.runs import Run

_SECONDS_BETWEEN_LINES = 15.0


class Bar:
    """A bar on a terminal."""

    def __init__(self, title: str) -> None:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[words]}"),
        )
        self.title, self.bar = title, Progress(*columns, console=Console(stderr=True))

    def start(self, total: int, left: float) -> None:
        self.task = self.bar.add_task(self.title, total=total, words=f"about {duration(left)}")
        self.bar.start()

    def done(self, run: Run, left: float) -> None:
        self.bar.update(
            self.task, advance=1, words=f"{duration(left)} left; {run.stage} {run.condition.label(run.stage)}"
        )

    def stop(self) -> None:
        self.bar.stop()


class Lines:
    """A quiet line now and then."""

    def __init__(self, title: str) -> None:
        self.title, self.count, self.total, self.last = title, 0, 0, 0.0

    def start(self, total: int, left: float) -> None:
        self.total, self.last = total, time.monotonic()
        self._write(f"{total} runs to make, about {duration(left)}")

    def done(self, run: Run, left: float) -> None:
        self.count += 1
        now = time.monotonic()
        if self.count < self.total and now - self.last < _SECONDS_BETWEEN_LINES:
            return
        self.last = now
        words = f"{run.stage} {run.condition.label(run.stage)}"
        self._write(f"{self.count} of {self.total} runs, {duration(left)} left; last: {words}")

    def stop(self) -> None:
        pass

    def _write(self, words: str) -> None:
        sys.stderr.write(f"{self.title}: {words}\n")
        sys.stderr.flush()


def for_this_terminal(title: str) -> Bar | Lines:
    """A bar where one can be drawn, lines elsewhere."""
    return Bar(title) if sys.stderr.isatty() else Lines(title)


def duration(seconds: float) -> str:
    """Seconds as people say them."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    hours = seconds / 3600
    return f"{hours:.1f} h" if hours < 100 else f"{hours / 24:,.0f} days"
