"""Curves and frontiers of a study: pruning, patterns, stages, penalties, losses, importance by position."""

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from statistics import fmean

from sparsebert.importance.categories import NAMES
from sparsebert.importance.saved import Method
from sparsebert.report import paper
from sparsebert.report.judging import rows
from sparsebert.report.judging.endpoints import deciding
from sparsebert.report.judging.importance import importances
from sparsebert.report.judging.statistics import interval_of_mean
from sparsebert.report.rendering.figures.shapes import Chart, Panel, Point, Series
from sparsebert.report.rendering.tables import by_seed, ids
from sparsebert.studies.results import Study, StudyRun
from sparsebert.studies.runs import DENSE, KINDS, Condition
from sparsebert.tasks import GLUE, TASKS

# The palette's places, so that one thing has one colour in every figure.
LEARNED_U, LEARNED_S, HANDMADE, RANDOM, OTHER = 0, 1, 2, 3, 4
_SPARSITY = "sparsity, %"


def point(x: float, found: Iterable[tuple[StudyRun, float]], name: str = "") -> Point | None:
    """The mean over seeds of what was found."""
    values = list(found)
    if not values:
        return None
    each = by_seed(values)
    return Point(x, fmean(each), interval_of_mean(each), each, ids(run for run, _ in values), name)


def _colour(kind: str | None) -> int:
    return {"unstructured": LEARNED_U, "structured": LEARNED_S}.get(str(kind), OTHER)


def _series(
    name: str, points: Iterable[Point | None], colour: int, *, joined: bool = True, labelled: bool = False
) -> list[Series]:
    kept = tuple(sorted((one for one in points if one is not None), key=lambda one: one.x))
    return [Series(name, kept, colour, joined, labelled)] if kept else []


def pruning_chart(study: Study) -> Chart:
    """The paper's third figure: a task a panel, pruning by P against random pruning."""
    caption = "Entries of P removed from the least important up, against as many removed at random; at 0 nothing is."
    return Chart("pruning", "Progressive pruning, task by task", caption, _pruning_panels(study, GLUE), "3")


def pruning_loss_chart(study: Study) -> Chart:
    """The same by held-out loss, which tells small differences apart."""
    endpoint = deciding(study)
    caption = f"{endpoint.title} after adaptation under the pruned pattern."
    return Chart("pruning-loss", f"Progressive pruning by {endpoint.words}", caption, _pruning_panels(study, (None,)))


def _pruning_panels(study: Study, tasks: Iterable[str | None]) -> tuple[Panel, ...]:
    panels = []
    for task in tasks:
        dense = point(0.0, _values(study, DENSE, task, "pruning"), "dense")
        series = []
        for method, title, colour in (("p", "by P", LEARNED_U), ("random", "at random", RANDOM)):
            points = [
                point(100 * (row.sparsity_target or 0.0), _values(study, row, task, "pruning"))
                for row in rows.pruned(study, "pruning", method)
            ]
            series += _series(title, [dense, *points], colour)
        if any(len(one.points) > 1 for one in series):
            panels.append(_task_panel(study, task, series))
    return tuple(panels)


def _values(study: Study, row: Condition, task: str | None, used_by: str) -> list[tuple[StudyRun, float]]:
    """Scores of a task or of all that can be averaged, or held-out losses where the task is None."""
    if task is None:
        of = deciding(study).of
        return [(run, value) for run in rows.adapted(study, row, used_by) if (value := of(run)) is not None]
    tasks = _shared_tasks(study) if task == "average" else (task,)
    return [(run, run.score) for run in rows.scored(study, row, used_by) if run.task in tasks and run.score is not None]


def _task_panel(study: Study, task: str | None, series: list[Series]) -> Panel:
    endpoint = deciding(study)
    titles = {None: endpoint.title, "average": "Mean of the tasks"}
    title = TASKS[task].title if task in TASKS else titles.get(task, str(task))
    return Panel(title, _SPARSITY, endpoint.axis if task is None else "points", tuple(series))


def frontier_chart(study: Study) -> Chart:
    """Sparsity against the mean score and against the held-out loss."""
    caption = (
        "Hand-made patterns and learned ones, each at its own sparsity; better is up for scores, down for the loss. "
        "Joined: learned at four penalties. Single points: learned to the sparsity of a hand-made one. "
        "The mean is over the tasks on which every pattern was scored with every seed."
    )
    return Chart("frontier", "Sparsity against quality", caption, _frontier_panels(study, ("average", None)))


def patterns_chart(study: Study) -> Chart:
    """The paper's fourth figure: sparsity against score, a task a panel."""
    caption = "The same for each task, in points, with the 95 % interval where there are three seeds or more."
    panels = _frontier_panels(study, GLUE)
    return Chart("patterns", "Sparsity against quality, task by task", caption, panels, "4")


def _frontier_panels(study: Study, tasks: Iterable[str | None]) -> tuple[Panel, ...]:
    drawn = ((task, _frontier(study, task)) for task in tasks)
    return tuple(_task_panel(study, task, series) for task, series in drawn if series)


def _frontier(study: Study, task: str | None) -> list[Series]:
    points = [_at_own_sparsity(study, row, task, "patterns") for row in rows.handmade(study)]
    series = _series("hand-made", points, HANDMADE, joined=False, labelled=True)
    ways = {"at a penalty": rows.learned_at_penalties(study), "to a sparsity": rows.learned_to_targets(study)}
    for kind in _kinds(row for learned in ways.values() for row in learned):
        for way, learned in ways.items():
            points = [_at_own_sparsity(study, row, task, "patterns") for row in learned if row.kind == kind]
            series += _series(f"{KINDS.get(kind, kind)} ({way})", points, _colour(kind), joined=way == "at a penalty")
    return series


def _kinds(learned: Iterable[Condition]) -> list[str]:
    """The paper's, and others that the rows have."""
    return list(dict.fromkeys([*KINDS, *(str(row.kind) for row in learned)]))


def _at_own_sparsity(study: Study, row: Condition, task: str | None, used_by: str) -> Point | None:
    sparsity = rows.sparsity_of(study, row, used_by)
    return None if sparsity is None else point(100 * sparsity, _values(study, row, task, used_by), rows.name_of(row))


@lru_cache(maxsize=16)
def _shared_tasks(study: Study) -> frozenset[str]:
    """Means over other tasks in one seed, or for one pattern, than in the next cannot be compared."""
    tasks: dict[Condition, set[str]] = {}
    for run in study.scored("patterns"):
        if run.task in GLUE:
            tasks.setdefault(replace(run.condition, task=None), set()).add(run.task)
    return frozenset(set.intersection(*tasks.values())) if tasks else frozenset()


def stages_chart(study: Study) -> Chart:
    """The paper's seventh figure: one-stage patterns against P pruned afterwards."""
    panels, one_stage = [], rows.learned_for_stages(study)
    found = {run.task for run in study.scored("stages")}
    for task in (*(task for task in TASKS if task in found), None):
        series = []
        for kind in _kinds(one_stage):
            points = [_at_own_sparsity(study, row, task, "stages") for row in one_stage if row.kind == kind]
            series += _series(f"one-stage, {KINDS.get(kind, kind)}", points, _colour(kind))
        points = [_at_own_sparsity(study, row, task, "stages") for row in rows.pruned(study, "stages", "p")]
        series += _series("two-stage", points, RANDOM)
        if series:
            panels.append(_task_panel(study, task, series))
    caption = "Learning the pattern with the weights (one stage) against pruning the learned P (two stages)."
    return Chart("stages", "One stage or two", caption, tuple(panels), "7")


def penalty_chart(study: Study) -> Chart:
    """Sparsity that each penalty led to, beside the paper's."""
    found: dict[str, dict[float, list[tuple[StudyRun, float]]]] = {kind: {} for kind in KINDS}
    for run in study.finished("search", family="learned"):
        if run.condition.penalty and run.sparsity is not None:
            of_kind = found.setdefault(str(run.condition.kind), {})
            of_kind.setdefault(run.condition.penalty, []).append((run, 100 * run.sparsity))
    series: list[Series] = []
    for kind, by_penalty in found.items():
        title, colour = KINDS.get(kind, kind), _colour(kind)
        series += _series(title, [point(penalty, runs) for penalty, runs in by_penalty.items()], colour)
        of_paper = paper.PATTERNS.get(f"Learned, {kind}", {}).values()
        printed = tuple(Point(x, row["sparsity"]) for x, row in zip(paper.PENALTIES, of_paper, strict=False))
        series += [Series(f"{title}, paper", printed, colour, True, False, True)] if printed else []
    panel = Panel("", "penalty λ", _SPARSITY, tuple(series), log_x=True)
    caption = "The penalty leads the sparsity; where its scale starts depends on the loss it is weighed against."
    return Chart("penalty", "Penalty and sparsity", caption, (panel,))


def importance_chart(study: Study) -> Chart:
    """Importance by category and by distance, of the learned P and of trained attention maps."""
    panels = []
    methods: tuple[tuple[Method, str, int], ...] = (
        ("soft", "Learned P", LEARNED_U),
        ("attention", "Trained attention maps", RANDOM),
    )
    for method, title, colour in methods:
        found = importances(study, method)
        by_category = [
            point(place, [(run, fmean(one.categories[name])) for run, one in found if name in one.categories])
            for place, name in enumerate(NAMES)
        ]
        longest = max((len(one.profile) for _, one in found), default=0)
        by_distance = [
            point(distance, [(run, one.profile[distance]) for run, one in found if distance < len(one.profile)])
            for distance in range(max(1, round(0.9 * longest)))  # the last few distances have hardly any entries
        ]
        ticks = tuple((float(place), name) for place, name in enumerate(NAMES))
        for series in _series(title, by_category, colour, joined=False):
            panels.append(Panel(f"{title} by category", "", "mean", (series,), ticks))
        for series in _series(title, by_distance, colour):
            panels.append(Panel(f"{title} by distance", "|offset|", "mean", (series,)))
    caption = "Off the border. The diagonal is distance 0, neighbours are distance 1."
    return Chart("profile", "Importance by kind of position and by distance", caption, tuple(panels), "2")
