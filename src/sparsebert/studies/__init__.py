"""The paper's experiments as grids of runs: declared, addressed by what determines them, made once.

scales + sources -> grids (which runs) -> graph -> folder (what is finished) -> scheduler -> engine -> make_run (fit)
"""

from sparsebert.studies.grids import STUDIES, make_graph
from sparsebert.studies.runs import RECIPES, Condition, Run
from sparsebert.studies.scales import SCALES, Scale, find_scale

__all__ = ["RECIPES", "SCALES", "STUDIES", "Condition", "Run", "Scale", "find_scale", "make_graph"]
