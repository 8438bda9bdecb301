"""Several runs of one setting (seeds), and several settings (the appendix's grid): each a run folder that resumes."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from sparsebert.errors import ConfigError
from sparsebert.files import write_json
from sparsebert.runs.finetune import FinetuneRun
from sparsebert.tasks.table import LEARNING_RATES, WEIGHT_DECAYS, find_task

# Makes one run in a folder; gives the fields of its result.json.
Make = Callable[[FinetuneRun, Path], Mapping[str, Any]]


@dataclass(frozen=True)
class Scores:
    """Scores of several seeds."""

    scores: tuple[float, ...]

    @property
    def mean(self) -> float:
        return fmean(self.scores)

    @property
    def deviation(self) -> float:
        """Sample standard deviation; 0 for a single run, which says nothing of it."""
        return stdev(self.scores) if len(self.scores) > 1 else 0.0

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 % interval of the mean, by Student's t; None for a single run."""
        if len(self.scores) < 2:
            return None
        from scipy.stats import t

        reach = float(t.ppf(0.975, len(self.scores) - 1)) * self.deviation / math.sqrt(len(self.scores))
        return self.mean - reach, self.mean + reach

    def as_json(self) -> dict[str, Any]:
        interval = None if self.interval is None else list(self.interval)
        return {"score": self.mean, "scores": list(self.scores), "deviation": self.deviation, "interval": interval}


def repeated(run: FinetuneRun, seeds: Sequence[int], out: Path, make: Make, *, grid: bool) -> Mapping[str, Any]:
    """The run itself, or with several seeds, or first over the grid."""
    if grid:
        return run_grid(run, seeds, out, make)
    return make(run, out) if len(seeds) == 1 else run_seeds(run, seeds, out, make)


def run_seeds(run: FinetuneRun, seeds: Sequence[int], out: Path, make: Make) -> dict[str, Any]:
    """One run a seed, in out/seed-N; their summary in out/result.json."""
    if not seeds or len(set(seeds)) != len(seeds):
        raise ConfigError(f"seeds are {list(seeds)}; expected at least one, each once")
    if (out / "run.json").exists():
        raise ConfigError(f"{out} is the folder of one run; choose another for the runs of several seeds")
    results = [make(replace(run, seed=seed), out / f"seed-{seed}") for seed in seeds]
    summary = Scores(tuple(float(result["score"]) for result in results))
    names = results[0]["metrics"]
    fields = {
        "task": run.task,
        "metric": results[0]["metric"],
        "metrics": {name: fmean(float(result["metrics"][name]) for result in results) for name in names},
        "seed": list(seeds),
        **summary.as_json(),
    }
    write_json(out / "result.json", fields)
    return fields


def run_grid(
    run: FinetuneRun,
    seeds: Sequence[int],
    out: Path,
    make: Make,
    *,
    learning_rates: Sequence[float] = LEARNING_RATES,
    weight_decays: Sequence[float] = WEIGHT_DECAYS,
) -> dict[str, Any]:
    """Every learning rate with every weight decay, the first seed each; the best on dev then runs with all seeds.

    The dev rows that choose are those that score: as in the paper, whose own test figures come from the server.
    """
    find_task(run.task)
    tried = []
    for rate in learning_rates:
        for decay in weight_decays:
            setting = replace(run, learning_rate=rate, weight_decay=decay, seed=seeds[0])
            result = make(setting, out / "grid" / f"lr={rate:g},decay={decay:g}")
            tried.append({"learning_rate": rate, "weight_decay": decay, "score": float(result["score"])})
    best = max(tried, key=lambda one: one["score"])
    chosen = replace(run, learning_rate=best["learning_rate"], weight_decay=best["weight_decay"])
    write_json(out / "grid.json", {"tried": tried, "best": best})
    return run_seeds(chosen, seeds, out, make) | {"best": best}
