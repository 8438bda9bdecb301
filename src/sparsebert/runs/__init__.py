"""One way from settings to a run folder, for the command line, studies and benchmarks alike; a module for each kind.

settings by name -> RunSettings (frozen, typed) -> prepare(): objective and loop -> fit() -> run folder -> figures
"""

from sparsebert.runs.adapt import AdaptRun
from sparsebert.runs.finetune import FinetuneRun
from sparsebert.runs.pretrain import PretrainRun
from sparsebert.runs.prune import PruneRun
from sparsebert.runs.run import Prepared, RunSettings
from sparsebert.runs.task_gate import TaskSearchRun
from sparsebert.runs.text_gate import ImportanceRun, SearchRun

__all__ = [
    "AdaptRun",
    "FinetuneRun",
    "ImportanceRun",
    "Prepared",
    "PretrainRun",
    "PruneRun",
    "RunSettings",
    "SearchRun",
    "TaskSearchRun",
]
