"""Several runs of one setting (seeds), and several settings (the appendix's grid): each a run folder that resumes."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from sparsebert.errors import ConfigError
from sparsebert.files import write_json
from sparsebert.tasks.config import FinetuneConfig
from sparsebert.tasks.table import LEARNING_RATES, WEIGHT_DECAYS, find_task

# Runs one configuration in a folder; gives the fields of its result.json.
Run = Callable[[FinetuneConfig, Path], Mapping[str, Any]]


@dataclass(frozen=True)
class Summary:
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


def run_seeds(config: FinetuneConfig, seeds: Sequence[int], out: Path, run: Run) -> dict[str, Any]:
    """One run a seed, in out/seed-N; their summary in out/result.json."""
    if not seeds or len(set(seeds)) != len(seeds):
        raise ConfigError(f"seeds are {list(seeds)}; expected at least one, each once")
    results = [run(replace(config, seed=seed), out / f"seed-{seed}") for seed in seeds]
    summary = Summary(tuple(float(result["score"]) for result in results))
    names = results[0]["metrics"]
    fields = {
        "task": config.task,
        "metric": results[0]["metric"],
        "metrics": {name: fmean(float(result["metrics"][name]) for result in results) for name in names},
        "seed": list(seeds),
        **summary.as_json(),
    }
    write_json(out / "result.json", fields)
    return fields


def run_grid(
    config: FinetuneConfig,
    seeds: Sequence[int],
    out: Path,
    run: Run,
    *,
    learning_rates: Sequence[float] = LEARNING_RATES,
    weight_decays: Sequence[float] = WEIGHT_DECAYS,
) -> dict[str, Any]:
    """Every learning rate with every weight decay, the first seed each; the best on dev then runs with all seeds.

    The dev rows that choose are those that score: as in the paper, whose own test figures come from the server.
    """
    find_task(config.task)
    tried = []
    for rate in learning_rates:
        for decay in weight_decays:
            setting = replace(config, learning_rate=rate, weight_decay=decay, seed=seeds[0])
            result = run(setting, out / "grid" / f"lr={rate:g},decay={decay:g}")
            tried.append({"learning_rate": rate, "weight_decay": decay, "score": float(result["score"])})
    best = max(tried, key=lambda one: one["score"])
    chosen = replace(config, learning_rate=best["learning_rate"], weight_decay=best["weight_decay"])
    write_json(out / "grid.json", {"tried": tried, "best": best})
    return run_seeds(chosen, seeds, out, run) | {"best": best}
