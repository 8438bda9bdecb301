"""Every figure of the paper, and those that its words ask for, in order."""

from sparsebert.report.rendering.figures.charts import (
    frontier_chart,
    importance_chart,
    patterns_chart,
    penalty_chart,
    pruning_chart,
    pruning_loss_chart,
    stages_chart,
)
from sparsebert.report.rendering.figures.pictures import handmade_gallery, heat_gallery, learned_gallery
from sparsebert.report.rendering.figures.shapes import Figure
from sparsebert.studies.results import Study


def all_figures(study: Study) -> list[Figure]:
    return [
        handmade_gallery(),
        heat_gallery(study),
        importance_chart(study),
        pruning_chart(study),
        pruning_loss_chart(study),
        frontier_chart(study),
        patterns_chart(study),
        penalty_chart(study),
        learned_gallery(study, "unstructured", "5"),
        learned_gallery(study, "structured", "6"),
        stages_chart(study),
    ]
