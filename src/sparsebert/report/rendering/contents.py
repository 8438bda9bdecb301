"""What a report holds: every table, and every figure of the paper with those that its words ask for, in order."""

from sparsebert.report.rendering import layers, loss_table, run_tables, score_tables
from sparsebert.report.rendering.figures import charts, pictures
from sparsebert.report.rendering.figures.shapes import Figure
from sparsebert.report.rendering.tables import Table
from sparsebert.studies.results import Study


def all_tables(study: Study) -> list[Table]:
    return [
        score_tables.importance_table(study),
        loss_table.losses_table(study),
        score_tables.glue_table(study),
        score_tables.swag_table(study),
        score_tables.patterns_table(study),
        score_tables.ablation_table(study),
        *([layers.layers_table(study)] if layers.searches_by_layer(study) else []),
        run_tables.settings_table(study),
        run_tables.stages_table(study),
        run_tables.runs_table(study),
    ]


def all_figures(study: Study) -> list[Figure]:
    return [
        pictures.handmade_gallery(),
        pictures.heat_gallery(study),
        charts.importance_chart(study),
        charts.pruning_chart(study),
        charts.pruning_loss_chart(study),
        charts.frontier_chart(study),
        charts.patterns_chart(study),
        charts.penalty_chart(study),
        pictures.learned_gallery(study, "unstructured", "5"),
        pictures.learned_gallery(study, "structured", "6"),
        charts.stages_chart(study),
        *([layers.layers_chart(study)] if layers.searches_by_layer(study) else []),
    ]
