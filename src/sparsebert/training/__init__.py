"""One loop for everything that is trained: fit(), what it takes (Objective) and how (FitConfig).

objective(step, micro) -> update (gradients, ranks, AdamW) -> run_folder (metrics) -> checkpoints -> finish
"""

from sparsebert.training.config import FitConfig
from sparsebert.training.fit import Result, fit
from sparsebert.training.launch import is_main
from sparsebert.training.objective import Losses, Objective
from sparsebert.training.schedules import weight_groups

__all__ = [
    "FitConfig",
    "Losses",
    "Objective",
    "Result",
    "fit",
    "is_main",
    "weight_groups",
]
