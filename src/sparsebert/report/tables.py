"""Tables as data: cells with our value, the paper's, and the runs behind it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from sparsebert.importance.categories import NAMES
from sparsebert.importance.saved import Method
from sparsebert.report import paper
from sparsebert.report.importance import importances
from sparsebert.report.matching import Condition, conditions, describe
from sparsebert.report.statistics import interval_of_mean
from sparsebert.report.study import Run, Study, number


@dataclass(frozen=True)
class Cell:
    """One figure: ours, its interval over seeds, the paper's, and the runs that ours comes from."""

    value: float | str | None = None
    paper: float | str | None = None
    interval: tuple[float, float] | None = None
    runs: tuple[str, ...] = ()
    digits: int = 1


@dataclass(frozen=True)
class Row:
    label: str
    cells: tuple[Cell, ...]
    group: str = ""  # rows of one group stand together under its name


@dataclass(frozen=True)
class Table:
    key: str
    title: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    has_paper: bool = True
    notes: tuple[str, ...] = field(default=())


_VARIANTS = {
    "dense": "BERT, dense",
    "random-drop": "as many entries dropped at random",
    "no-diagonal": "without the diagonal",
}
_GLUE_COLUMNS = tuple(paper.TITLES[column] for column in paper.GLUE)


def value_of(run: Run, column: str) -> float | None:
    """Of MNLI's two sections the metric of that section; of SQuAD's two columns exact match or F1."""
    if column in ("mnli-m", "mnli-mm"):
        section = "matched" if column == "mnli-m" else "mismatched"
        return number(run.metrics.get(f"accuracy_{section}"))
    if column.endswith("/exact"):
        return number(run.metrics.get("exact"))
    return run.score


def task_of(column: str) -> str:
    return "mnli" if column.startswith("mnli") else column.split("/")[0]


def cell(runs: Iterable[Run], column: str, in_paper: float | None = None) -> Cell:
    """The mean over seeds of what those runs scored in that column."""
    found = [(run, value_of(run, column)) for run in runs if run.task == task_of(column)]
    values = [(run, value) for run, value in found if value is not None]
    if not values:
        return Cell(paper=in_paper)
    by_seed = _by_seed(values)
    return Cell(fmean(by_seed), in_paper, interval_of_mean(by_seed), tuple(run.id for run, _ in values))


def _by_seed(values: Sequence[tuple[Run, float]]) -> list[float]:
    seeds = sorted({run.seed for run, _ in values})
    return [fmean(value for run, value in values if run.seed == seed) for seed in seeds]


def average(cells: Sequence[Cell], in_paper: float | None = None) -> Cell:
    """The mean of the columns that are filled; with a star in the caption's sense when some are not."""
    filled = [one for one in cells if isinstance(one.value, float)]
    if not filled:
        return Cell(paper=in_paper)
    mean = fmean(one.value for one in filled if isinstance(one.value, float))
    return Cell(mean, in_paper, None, tuple(dict.fromkeys(id_ for one in filled for id_ in one.runs)))


def glue_table(study: Study) -> Table:
    """The paper's first table."""
    rows = []
    for family, title in _VARIANTS.items():
        runs = Condition(family).scored(study, "diagonal")
        printed = paper.GLUE_DEV[family]
        cells = [cell(runs, column, printed[place]) for place, column in enumerate(paper.GLUE)]
        rows.append(Row(title, (*cells, average(cells, printed[-1])), "Development set"))
    titles = {"devlin": "BERT, as published by Devlin et al.", **_VARIANTS}
    for name, test_row in paper.GLUE_TEST.items():
        rows.append(Row(titles[name], tuple(Cell(paper=value) for value in test_row), "Test set"))
    return Table(
        "glue",
        "GLUE with and without the diagonal",
        "Scores in points; random drops are averaged over their draws.",
        (*_GLUE_COLUMNS, "Average"),
        tuple(rows),
        notes=("Test labels are held by the GLUE server, so those rows are the paper's alone.",),
    )


def swag_table(study: Study) -> Table:
    """The paper's second table."""
    columns = ("swag", "squad1/exact", "squad1", "squad2/exact", "squad2")
    rows = [Row("BERT, as published by Devlin et al.", tuple(Cell(paper=v) for v in paper.SWAG_SQUAD["devlin"]))]
    for family, title in _VARIANTS.items():
        runs = Condition(family).scored(study, "diagonal")
        printed = paper.SWAG_SQUAD[family]
        rows.append(Row(title, tuple(cell(runs, column, printed[place]) for place, column in enumerate(columns))))
    return Table(
        "swag",
        "SWAG and SQuAD with and without the diagonal",
        "Development sets, in points.",
        ("SWAG acc", "SQuAD 1.1 EM", "SQuAD 1.1 F1", "SQuAD 2.0 EM", "SQuAD 2.0 F1"),
        tuple(rows),
    )


def patterns_table(study: Study) -> Table:
    """The paper's main table."""
    rows = []
    for name in paper.HANDMADE:
        condition = Condition("handmade", pattern=name, diagonal=True)
        rows.append(_pattern_row(study, condition, paper.PATTERNS[name], "Hand-made"))
    for learned in conditions.learned(study):
        printed = paper.LEARNED.get((str(learned.kind), float(learned.penalty or 0)), (None,) * 11)
        rows.append(_pattern_row(study, learned, printed, f"Learned, {learned.kind}"))
    for learned in conditions.learned_to_targets(study, "patterns"):
        if learned.scored(study, "patterns"):
            rows.append(_pattern_row(study, learned, (None,) * 11, "Learned to a sparsity"))
    return Table(
        "patterns",
        "Patterns on the GLUE development set",
        "Hand-made patterns, and learned ones at four penalties λ or, where those were scored, at a sparsity.",
        ("Sparsity %", *_GLUE_COLUMNS, "Average"),
        tuple(rows),
    )


def _pattern_row(study: Study, condition: Condition, printed: Sequence[float | None], group: str) -> Row:
    runs = condition.scored(study, "patterns")
    cells = [cell(runs, column, printed[1 + place]) for place, column in enumerate(paper.GLUE)]
    return Row(
        describe(condition), (sparsity_cell(study, condition, printed[0]), *cells, average(cells, printed[-1])), group
    )


def sparsity_cell(study: Study, condition: Condition, printed: float | None) -> Cell:
    runs = condition.adapted(study) or condition.scored(study)
    found = [(run, 100 * run.sparsity) for run in runs if run.sparsity is not None]
    if not found:
        return Cell(paper=printed)
    return Cell(fmean(value for _, value in found), printed, None, tuple(run.id for run, _ in found))


def ablation_table(study: Study) -> Table:
    """The paper's last table, turned on its side: a pattern a row."""
    printed: dict[str, tuple[float, ...]] = {paper.HANDMADE_TITLES[name]: row for name, row in paper.ABLATION.items()}
    for (kind, penalty), row in paper.ABLATION_LEARNED.items():
        printed[describe(Condition("learned", kind=kind, penalty=penalty))] = row
    ours = {describe(with_): (with_, without) for with_, without in conditions.pairs_by_diagonal(study)}
    rows = []
    for title in (*printed, *(name for name in ours if name not in printed)):
        printed_row = printed.get(title)
        cells = []
        for side in range(2):
            of_paper = (None, None) if printed_row is None else printed_row[2 * side : 2 * side + 2]
            condition = ours[title][side] if title in ours else None
            cells += _ablation_cells(study, condition, of_paper)
        rows.append(Row(title, tuple(cells), "Learned" if title.startswith("DAM") else "Hand-made"))
    return Table(
        "ablation",
        "Every pattern with and without its diagonal",
        "Sparsity in per cent and the GLUE average in points.",
        ("Sparsity with", "GLUE with", "Sparsity without", "GLUE without"),
        tuple(rows),
    )


def _ablation_cells(study: Study, condition: Condition | None, of_paper: Sequence[float | None]) -> list[Cell]:
    if condition is None:
        return [Cell(paper=value) for value in of_paper]
    runs = condition.scored(study, "ablation")
    mean = average([cell(runs, column) for column in paper.GLUE], of_paper[1])
    return [sparsity_cell(study, condition, of_paper[0]), mean]


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


TABLES: tuple[Callable[[Study], Table], ...] = (glue_table, swag_table, patterns_table, ablation_table)
