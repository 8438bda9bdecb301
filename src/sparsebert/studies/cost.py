"""What a study costs before it runs: operations from shapes, seconds from what this machine or earlier runs did."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from sparsebert.errors import FileError
from sparsebert.files import read_json
from sparsebert.studies.graph import Graph
from sparsebert.studies.jobs import StudyPaths
from sparsebert.studies.runs import Run
from sparsebert.studies.scales import OFFICIAL
from sparsebert.studies.sources import Sources
from sparsebert.training.operations import flops_per_token, product_speed
from sparsebert.training.starting_points import shape_of

# Of what matrix products sustain, the share to expect of training; benchmarks/study_cost.py measures 0.67.
EFFICIENCY = 0.6
_EVALUATION = 1 / 3  # a forward pass, of the three that a training step costs
_TAUGHT = 1 + _EVALUATION  # a teacher reads every row, too
_STS_TOKENS = 6e4, 3.2e5  # of STS-B's dev rows, and of STS12 to STS15 beside them
_SECONDS_A_RUN = 0.4  # loading, saving and checkpoints of the smallest model
_SECONDS_A_PARAMETER = 2e-7  # the same for each parameter of a larger one


@dataclass(frozen=True)
class Cost:
    """Of some runs."""

    runs: int
    flops: float  # floating-point operations; a multiply-add counts as two
    seconds: float  # of processor time on one slot

    @property
    def hours(self) -> float:
        return self.seconds / 3600


class Estimator:
    """Operations and seconds of a run, before it is made."""

    def __init__(self, sources: Sources, flops_per_second: float) -> None:
        self.sources, self.flops_per_second = sources, flops_per_second
        self.overhead = _SECONDS_A_RUN + _SECONDS_A_PARAMETER * parameters(sources)

    def flops(self, run: Run) -> float:
        shape, words = self.sources.shape, self.sources.vocab_size
        if run.stage == "prune":
            return 0.0
        if run.stage == "finetune":
            settings = run.config["settings"]
            train, dev, mean = OFFICIAL[settings["task"]]
            train, dev = min(train, settings["max_rows"] or train), min(dev, settings["max_dev_rows"] or dev)
            rows = train * float(settings["num_epochs"]) + dev * _EVALUATION
            sequences = 4 if settings["task"] == "swag" else 1
            tokens = min(float(settings["length"]), mean or math.inf)
            taught = _TAUGHT if "teacher" in run.config else 1
            return taught * rows * sequences * tokens * flops_per_token(shape, 0, int(tokens))
        config = run.config
        if "model" in config:
            shape = shape_of(config["model"])
        if "objective" in config:
            return self._distilled_flops(run)
        tokens = float(config["batch_size"]) * float(config["length"])
        looks = 2 if run.stage in ("base", "adapt") else 1  # at the held-out batches; these also look before they start
        steps = float(config["steps"]) + looks * float(config["num_held_out"]) * _EVALUATION
        return steps * tokens * flops_per_token(shape, words, int(config["length"]))

    def _distilled_flops(self, run: Run) -> float:
        """Without a head for words; a teacher reads along, and the embeddings of adapted weights are scored."""
        config, shape = run.config, self.sources.shape
        length = int(config["length"])
        looks = 2 if run.stage == "adapt" else 1
        steps = float(config["steps"]) + looks * float(config["num_held_out"]) * _EVALUATION
        flops = _TAUGHT * steps * float(config["batch_size"]) * length * flops_per_token(shape, 0, length)
        if run.stage != "adapt":
            return flops
        scored = _STS_TOKENS[0] + (_STS_TOKENS[1] if self.sources.sts is not None else 0)
        return flops + _EVALUATION * scored * flops_per_token(shape, 0, 20)

    def seconds(self, run: Run) -> float:
        if run.stage == "prune":
            return 0.05
        return self.overhead + self.flops(run) / self.flops_per_second

    def total(self, runs: Sequence[Run]) -> Cost:
        return Cost(len(runs), sum(map(self.flops, runs)), sum(map(self.seconds, runs)))


def estimator(graph: Graph, paths: StudyPaths, flops_per_second: float | None) -> Estimator:
    """By the given speed; else by the runs that are finished here; else by a short measurement."""
    if flops_per_second is not None:
        return Estimator(graph.sources, flops_per_second)
    seen = _speed_of_finished(graph, paths)
    return Estimator(graph.sources, seen or EFFICIENCY * product_speed(graph.threads))


def _speed_of_finished(graph: Graph, paths: StudyPaths) -> float | None:
    """Operations a second of the pre-training runs that are finished here, where they are long enough to tell."""
    plain = Estimator(graph.sources, 1.0)
    speeds = []
    for run in graph.runs.values():
        if run.stage in ("base", "importance", "search", "adapt"):
            seconds = run_seconds(paths.folder(run.id)) - plain.overhead
            if seconds > plain.overhead:
                speeds.append(plain.flops(run) / seconds)
    return median(speeds) if speeds else None


def run_seconds(folder: Path) -> float:
    """How long a finished run took; 0 where it is not known."""
    try:
        return float(read_json(folder / "timing.json")["run_seconds"])
    except (FileError, KeyError, TypeError, ValueError):
        return 0.0


def parameters(sources: Sources) -> float:
    """Weights of the model, about."""
    shape = sources.shape
    width, inner = int(shape["hidden_size"]), int(shape["intermediate_size"])
    return int(shape["num_hidden_layers"]) * (4 * width**2 + 2 * width * inner) + sources.vocab_size * width
