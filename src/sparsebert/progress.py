"""What a person sees of long work: a bar on a terminal, a quiet line now and then elsewhere."""

import sys
import time

_SECONDS_BETWEEN_LINES = 30.0


class Watcher:
    """Told how the work goes; this one shows nothing."""

    def start(self, done: int, total: int) -> None:
        pass

    def step(self, done: int, words: str, left: float) -> None:
        """So many are done; words: about the last one; left: seconds."""

    def stop(self) -> None:
        pass


class Bar(Watcher):
    """A bar with a few words and the time left."""

    def __init__(self, title: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        words = TextColumn("{task.description}"), TextColumn("{task.fields[words]}")
        self.bar = Progress(words[0], BarColumn(), MofNCompleteColumn(), words[1], console=Console(stderr=True))
        self.title = title

    def start(self, done: int, total: int) -> None:
        self.task = self.bar.add_task(self.title, total=total, completed=done, words="")
        self.bar.start()

    def step(self, done: int, words: str, left: float) -> None:
        self.bar.update(self.task, completed=done, words=f"{words}, {duration(left)} left")

    def stop(self) -> None:
        self.bar.stop()


class Lines(Watcher):
    """A line for the first and the last step, and at most one in half a minute between them."""

    def __init__(self, title: str, what: str = "step") -> None:
        self.title, self.what = title, what

    def start(self, done: int, total: int) -> None:
        self.total, self.last = total, -_SECONDS_BETWEEN_LINES
        if done:
            self._write(f"resumed after {self.what} {done} of {total}")

    def step(self, done: int, words: str, left: float) -> None:
        now = time.monotonic()
        if done == self.total or now - self.last >= _SECONDS_BETWEEN_LINES:
            self.last = now
            self._write(f"{self.what} {done} of {self.total}, {words}, {duration(left)} left")

    def _write(self, words: str) -> None:
        sys.stderr.write(f"{self.title}: {words}\n")
        sys.stderr.flush()


def for_this_terminal(title: str, what: str = "step") -> Watcher:
    """A bar where one can be drawn, lines elsewhere; what: one of the things that are counted."""
    return Bar(title) if sys.stderr.isatty() else Lines(title, what)


def duration(seconds: float) -> str:
    """Seconds as people say them."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    hours = seconds / 3600
    return f"{hours:.1f} h" if hours < 100 else f"{hours / 24:,.0f} days"
