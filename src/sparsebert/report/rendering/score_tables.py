"""The paper's tables, filled with ours: its rows by name, and below them what only the study has."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import fmean

from sparsebert.importance.categories import NAMES
from sparsebert.importance.saved import Method
from sparsebert.report import paper
from sparsebert.report.judging.importance import importances
from sparsebert.report.judging.rows import (
    adapted,
    all_rows,
    handmade,
    learned_at_penalties,
    learned_to_targets,
    name_of,
    pairs_by_diagonal,
    scored,
)
from sparsebert.report.judging.statistics import interval_of_mean
from sparsebert.report.rendering.tables import Cell, Row, Table, by_seed
from sparsebert.studies.results import Study, StudyRun, finite
from sparsebert.studies.runs import Condition
from sparsebert.tasks import TASKS

_VARIANTS = {
    "devlin": "BERT, as published by Devlin et al.",
    "dense": "BERT, dense",
    "random-drop": "as many entries dropped at random",
    "no-diagonal": "without the diagonal",
}
_GLUE_TITLES = tuple(
    f"MNLI-{column.split('-')[1]}" if column.startswith("mnli") else TASKS[column].title
    for column in paper.GLUE_COLUMNS
)


def value_of(run: StudyRun, column: str) -> float | None:
    """Of MNLI's two sections the metric of that section; of SQuAD's two columns exact match or F1."""
    if column in ("mnli-m", "mnli-mm"):
        section = "matched" if column == "mnli-m" else "mismatched"
        return finite(run.metrics.get(f"accuracy_{section}"))
    return finite(run.metrics.get("exact")) if column.endswith("/exact") else run.score


def cell(runs: Iterable[StudyRun], column: str, printed: paper.PrintedRow) -> Cell:
    """The mean over seeds of what those runs scored in that column."""
    task = "mnli" if column.startswith("mnli") else column.split("/")[0]
    found = [(run, value_of(run, column)) for run in runs if run.task == task]
    values = [(run, value) for run, value in found if value is not None]
    if not values:
        return Cell(paper=printed.get(column))
    means = by_seed(values)
    return Cell(fmean(means), printed.get(column), interval_of_mean(means), tuple(run.id for run, _ in values))


def _glue_cells(runs: Sequence[StudyRun], printed: paper.PrintedRow) -> list[Cell]:
    """The nine columns, and the mean of those that are filled."""
    cells = [cell(runs, column, printed) for column in paper.GLUE_COLUMNS]
    filled = [one for one in cells if one.value is not None]
    used = tuple(dict.fromkeys(id_ for one in filled for id_ in one.runs))
    mean = fmean(one.value for one in filled if isinstance(one.value, float)) if filled else None
    return [*cells, Cell(mean, printed.get("average"), None, used)]


def _sparsity_cell(study: Study, row: Condition | None, printed: float | None) -> Cell:
    runs = () if row is None else adapted(study, row) or scored(study, row)
    found = [(run.id, 100 * run.sparsity) for run in runs if run.sparsity is not None]
    if not found:
        return Cell(paper=printed)
    return Cell(fmean(value for _, value in found), printed, None, tuple(id_ for id_, _ in found))


Key = tuple[str, str]  # group and name of a row


def _keys(printed: paper.PrintedTable, ours: Iterable[Key]) -> list[Key]:
    """The paper's rows, and in each group after them those that only the study has."""
    keys = dict.fromkeys([*((group, name) for group, rows in printed.items() for name in rows), *ours])
    groups = list(dict.fromkeys(group for group, _ in keys))
    return sorted(keys, key=lambda key: groups.index(key[0]))


def _printed(table: paper.PrintedTable, key: Key) -> paper.PrintedRow:
    return table.get(key[0], {}).get(key[1], {})


def _runs(study: Study, row: Condition | None, used_by: str) -> Sequence[StudyRun]:
    return () if row is None else scored(study, row, used_by)


def glue_table(study: Study) -> Table:
    """The paper's first table."""
    ours = {("Development set", name_of(row)): row for row in all_rows(study, "diagonal")}
    rows = []
    for key in _keys(paper.GLUE, ours):
        cells = _glue_cells(_runs(study, ours.get(key), "diagonal"), _printed(paper.GLUE, key))
        rows.append(Row(_VARIANTS.get(key[1], key[1]), tuple(cells), key[0]))
    return Table(
        "glue",
        "GLUE with and without the diagonal",
        "Scores in points; random drops are averaged over their draws.",
        (*_GLUE_TITLES, "Average"),
        tuple(rows),
        notes=("Test labels are held by the GLUE server, so those rows are the paper's alone.",),
    )


def swag_table(study: Study) -> Table:
    """The paper's second table."""
    ours = {("", name_of(row)): row for row in all_rows(study, "diagonal")}
    rows = []
    for key in _keys(paper.SWAG, ours):
        runs, printed = _runs(study, ours.get(key), "diagonal"), _printed(paper.SWAG, key)
        cells = tuple(cell(runs, column, printed) for column in paper.SWAG_COLUMNS)
        rows.append(Row(_VARIANTS.get(key[1], key[1]), cells))
    of_squad = (f"{TASKS[task].title} {metric}" for task in ("squad1", "squad2") for metric in ("EM", "F1"))
    return Table(
        "swag",
        "SWAG and SQuAD with and without the diagonal",
        "Development sets, in points.",
        ("SWAG acc", *of_squad),
        tuple(rows),
    )


def patterns_table(study: Study) -> Table:
    """The paper's main table."""
    ours = {("Hand-made", name_of(row)): row for row in handmade(study)}
    ours |= {(f"Learned, {row.kind}", name_of(row)): row for row in learned_at_penalties(study)}
    to_targets = [row for row in learned_to_targets(study) if scored(study, row, "patterns")]
    ours |= {("Learned to a sparsity", name_of(row)): row for row in to_targets}
    rows = []
    for key in _keys(paper.PATTERNS, ours):
        row, printed = ours.get(key), _printed(paper.PATTERNS, key)
        cells = _glue_cells(_runs(study, row, "patterns"), printed)
        rows.append(Row(key[1], (_sparsity_cell(study, row, printed.get("sparsity")), *cells), key[0]))
    return Table(
        "patterns",
        "Patterns on the GLUE development set",
        "Hand-made patterns, and learned ones at four penalties λ or, where those were scored, at a sparsity.",
        ("Sparsity %", *_GLUE_TITLES, "Average"),
        tuple(rows),
    )


def ablation_table(study: Study) -> Table:
    """The paper's last table, turned on its side: a pattern a row."""
    ours = {
        ("Hand-made" if pair[0].family == "handmade" else "Learned", name_of(pair[0])): pair
        for pair in pairs_by_diagonal(study)
    }
    rows = []
    for key in _keys(paper.ABLATION, ours):
        cells, printed = [], _printed(paper.ABLATION, key)
        for row, side in zip(ours.get(key, (None, None)), ("with", "without"), strict=True):
            mean = _glue_cells(_runs(study, row, "ablation"), {})[-1]
            cells.append(_sparsity_cell(study, row, printed.get(f"sparsity {side}")))
            cells.append(replace(mean, paper=printed.get(f"average {side}")))
        rows.append(Row(key[1], tuple(cells), key[0]))
    return Table(
        "ablation",
        "Every pattern with and without its diagonal",
        "Sparsity in per cent and the GLUE average in points.",
        ("Sparsity with", "GLUE with", "Sparsity without", "GLUE without"),
        tuple(rows),
    )


def importance_table(study: Study) -> Table:
    """Mean importance by category, of the learned P and of trained attention maps."""
    rows = []
    methods: dict[Method, int] = {"soft": 4, "attention": 5}  # and the digits of each
    for name in NAMES:
        cells = []
        for method, digits in methods.items():
            found = [(run, one.categories[name]) for run, one in importances(study, method) if name in one.categories]
            means, runs = [fmean(heads) for _, heads in found], tuple(run.id for run, _ in found)
            cells.append(Cell(fmean(means), None, interval_of_mean(means), runs, digits) if means else Cell())
        rows.append(Row(name, tuple(cells)))
    return Table(
        "importance",
        "Importance by kind of position",
        "Mean over entries, heads and seeds. [CLS] and [SEP] are the first and last row and column.",
        ("Learned P", "Trained attention maps"),
        tuple(rows),
        has_paper=False,
    )
