"""What was run."""

from sparsebert.report.rendering.run_tables import facts, runs_table, settings_table
from sparsebert.studies.results import Study


def test_settings_are_read_from_run_json(study: Study) -> None:
    table = settings_table(study)
    assert {row.label: row.cells[0].value for row in table.rows}["Batch size"] == "8"
    assert all(row.cells[0].value for row in table.rows)


def test_every_run_has_a_row(study: Study) -> None:
    assert len(runs_table(study).rows) == len(study.runs)
    assert dict(facts(study))["Runs"] == f"{len(study.runs)} of {len(study.runs)} finished"
