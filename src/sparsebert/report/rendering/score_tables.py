"""The paper's tables, filled with ours: its rows by name, and below them what only the study has."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import TypeVar

from sparsebert.importance.categories import NAMES
from sparsebert.importance.saved import Method
from sparsebert.report import paper
from sparsebert.report.judging import rows
from sparsebert.report.judging.importance import importances
from sparsebert.report.rendering.tables import Cell, Row, Table, by_seed, ids, mean_cell
from sparsebert.studies.results import Study, StudyRun, finite
from sparsebert.studies.runs import Condition
from sparsebert.tasks import TASKS

_VARIANTS = {
    "published": "as published, dense, not adapted",
    "devlin": "BERT, as published by Devlin et al.",
    "dense": "BERT, dense",
    "random-drop": "as many entries dropped at random",
    "no-diagonal": "without the diagonal",
}
_GLUE_TITLES = tuple(
    f"MNLI-{column.split('-')[1]}" if column.startswith("mnli") else TASKS[column].title
    for column in paper.GLUE_COLUMNS
)
Ours = TypeVar("Ours")


def _filled(
    printed: paper.PrintedTable,
    ours: Mapping[tuple[str, str], Ours],
    cells: Callable[[Ours | None, paper.PrintedRow], Iterable[Cell]],
) -> tuple[Row, ...]:
    """The paper's rows, and in each group after them those that only the study has; ours: by group and name."""
    keys = dict.fromkeys([*((group, name) for group, of_group in printed.items() for name in of_group), *ours])
    groups = list(dict.fromkeys(group for group, _ in keys))
    return tuple(
        Row(
            _VARIANTS.get(name, name),
            tuple(cells(ours.get((group, name)), printed.get(group, {}).get(name, {}))),
            group,
        )
        for group, name in sorted(keys, key=lambda key: groups.index(key[0]))
    )


def _value(run: StudyRun, column: str) -> float | None:
    """Of MNLI's two sections the metric of that section; of SQuAD's two columns exact match or F1."""
    if column in ("mnli-m", "mnli-mm"):
        section = "matched" if column == "mnli-m" else "mismatched"
        return finite(run.metrics.get(f"accuracy_{section}"))
    return finite(run.metrics.get("exact")) if column.endswith("/exact") else run.score


def _score_cell(runs: Iterable[StudyRun], column: str, printed: paper.PrintedRow) -> Cell:
    """The mean over seeds of what those runs scored in that column."""
    task = "mnli" if column.startswith("mnli") else column.split("/")[0]
    found = [(run, value) for run in runs if run.task == task and (value := _value(run, column)) is not None]
    return mean_cell(by_seed(found), ids(run for run, _ in found), printed.get(column))


def _glue_cells(runs: Sequence[StudyRun], printed: paper.PrintedRow) -> list[Cell]:
    """The nine columns, and the mean of those that are filled."""
    cells = [_score_cell(runs, column, printed) for column in paper.GLUE_COLUMNS]
    values = [one.value for one in cells if isinstance(one.value, float)]
    used = tuple(dict.fromkeys(id_ for one in cells for id_ in one.runs))
    return [*cells, Cell(fmean(values) if values else None, printed.get("average"), None, used)]


def _sparsity_cell(study: Study, row: Condition | None, printed: paper.PrintedRow) -> Cell:
    runs = rows.adapted(study, row) or rows.scored(study, row)
    found = [(run, 100 * run.sparsity) for run in runs if run.sparsity is not None]
    mean = fmean(value for _, value in found) if found else None
    return Cell(mean, printed.get("sparsity"), None, ids(run for run, _ in found))


def glue_table(study: Study) -> Table:
    """The paper's first table."""
    ours = {("Development set", rows.name_of(row)): row for row in rows.all_rows(study, "diagonal")}
    return Table(
        "glue",
        "GLUE with and without the diagonal",
        "Scores in points; random drops are averaged over their draws.",
        (*_GLUE_TITLES, "Average"),
        _filled(paper.GLUE, ours, lambda row, printed: _glue_cells(rows.scored(study, row, "diagonal"), printed)),
        notes=("Test labels are held by the GLUE server, so those rows are the paper's alone.",),
    )


def swag_table(study: Study) -> Table:
    """The paper's second table."""

    def cells(row: Condition | None, printed: paper.PrintedRow) -> Iterable[Cell]:
        return (_score_cell(rows.scored(study, row, "diagonal"), column, printed) for column in paper.SWAG_COLUMNS)

    of_squad = (f"{TASKS[task].title} {metric}" for task in ("squad1", "squad2") for metric in ("EM", "F1"))
    return Table(
        "swag",
        "SWAG and SQuAD with and without the diagonal",
        "Development sets, in points.",
        ("SWAG acc", *of_squad),
        _filled(paper.SWAG, {("", rows.name_of(row)): row for row in rows.all_rows(study, "diagonal")}, cells),
    )


def patterns_table(study: Study) -> Table:
    """The paper's main table."""

    def cells(row: Condition | None, printed: paper.PrintedRow) -> list[Cell]:
        return [_sparsity_cell(study, row, printed), *_glue_cells(rows.scored(study, row, "patterns"), printed)]

    ours = {("Hand-made", rows.name_of(row)): row for row in rows.handmade(study)}
    ours |= {(f"Learned, {row.kind}", rows.name_of(row)): row for row in rows.learned_at_penalties(study)}
    to_targets = [row for row in rows.learned_to_targets(study) if rows.scored(study, row, "patterns")]
    ours |= {("Learned to a sparsity", rows.name_of(row)): row for row in to_targets}
    ours |= {("Fine-tuned with the dense teacher", rows.name_of(row)): row for row in rows.taught(study, "patterns")}
    return Table(
        "patterns",
        "Patterns on the GLUE development set",
        "Hand-made patterns, and learned ones at four penalties λ or, where those were scored, at a sparsity.",
        ("Sparsity %", *_GLUE_TITLES, "Average"),
        _filled(paper.PATTERNS, ours, cells),
    )


def ablation_table(study: Study) -> Table:
    """The paper's last table, turned on its side: a pattern a row."""

    def cells(pair: tuple[Condition, Condition] | None, printed: paper.PrintedRow) -> Iterable[Cell]:
        for row, side in zip(pair or (None, None), ("with", "without"), strict=True):
            of_side = {name.split()[0]: value for name, value in printed.items() if name.endswith(f" {side}")}
            yield _sparsity_cell(study, row, of_side)
            yield _glue_cells(rows.scored(study, row, "ablation"), of_side)[-1]

    ours = {
        ("Hand-made" if pair[0].family == "handmade" else "Learned", rows.name_of(pair[0])): pair
        for pair in rows.pairs_by_diagonal(study)
    }
    return Table(
        "ablation",
        "Every pattern with and without its diagonal",
        "Sparsity in per cent and the GLUE average in points.",
        ("Sparsity with", "GLUE with", "Sparsity without", "GLUE without"),
        _filled(paper.ABLATION, ours, cells),
    )


def importance_table(study: Study) -> Table:
    """Mean importance by category, of the learned P and of trained attention maps."""

    def cell(name: str, method: Method, digits: int) -> Cell:
        found = [(run, one.categories[name]) for run, one in importances(study, method) if name in one.categories]
        return mean_cell([fmean(heads) for _, heads in found], ids(run for run, _ in found), digits=digits)

    return Table(
        "importance",
        "Importance by kind of position",
        "Mean over entries, heads and seeds. [CLS] and [SEP] are the first and last row and column.",
        ("Learned P", "Trained attention maps"),
        tuple(Row(name, (cell(name, "soft", 4), cell(name, "attention", 5))) for name in NAMES),
        has_paper=False,
    )
