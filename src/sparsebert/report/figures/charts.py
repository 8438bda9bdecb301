"""Curves and frontiers of a study: pruning, patterns, stages, penalties, losses, importance by position."""

from collections.abc import Collection, Iterable
from functools import lru_cache
from statistics import fmean

from sparsebert.importance.categories import NAMES
from sparsebert.importance.saved import Method
from sparsebert.report import paper
from sparsebert.report.figures.shapes import Chart, Panel, Point, Series
from sparsebert.report.importance import importances
from sparsebert.report.matching import Condition, conditions, describe
from sparsebert.report.statistics import interval_of_mean
from sparsebert.report.study import Run, Study

# The palette's places, so that one thing has one colour in every figure.
LEARNED_U, LEARNED_S, HANDMADE, RANDOM, DENSE = 0, 1, 2, 3, 4
_SPARSITY = "sparsity, %"


def point(x: float, found: Iterable[tuple[Run, float]], name: str = "") -> Point | None:
    """The mean over seeds of what was found."""
    values = list(found)
    if not values:
        return None
    seeds = sorted({run.seed for run, _ in values})
    each = tuple(fmean(value for run, value in values if run.seed == seed) for seed in seeds)
    return Point(x, fmean(each), interval_of_mean(each), each, tuple(run.id for run, _ in values), name)


def _of_tasks(runs: Iterable[Run], tasks: Collection[str]) -> list[tuple[Run, float]]:
    return [(run, run.score) for run in runs if run.task in tasks and run.score is not None]


def _losses(runs: Iterable[Run]) -> list[tuple[Run, float]]:
    return [(run, run.loss) for run in runs if run.loss is not None]


def _series(
    name: str, points: Iterable[Point | None], colour: int, *, joined: bool = True, labelled: bool = False
) -> list[Series]:
    kept = tuple(sorted((one for one in points if one is not None), key=lambda one: one.x))
    return [Series(name, kept, colour, joined, labelled)] if kept else []


def pruning_chart(study: Study) -> Chart:
    """The paper's third figure: a task a panel, pruning by P against random pruning."""
    caption = "Entries of P removed from the least important up, against as many removed at random; at 0 nothing is."
    return Chart("pruning", "Progressive pruning, task by task", caption, _pruning_panels(study, paper.GLUE_TASKS), "3")


def pruning_loss_chart(study: Study) -> Chart:
    """The same by held-out loss, which tells small differences apart."""
    caption = "Held-out MLM loss after adaptation under the pruned pattern."
    return Chart("pruning-loss", "Progressive pruning by MLM loss", caption, _pruning_panels(study, (None,)))


def _pruning_panels(study: Study, tasks: Iterable[str | None]) -> tuple[Panel, ...]:
    targets = sorted(
        {
            float(run.condition["sparsity_target"])
            for run in study.finished("finetune", "score", "adapt", study="pruning", family="pruned")
            if isinstance(run.condition.get("sparsity_target"), int | float)
        }
    )
    panels = []
    for task in tasks:
        dense = point(0.0, _values(study, Condition("dense"), task), "dense")
        series = []
        for method, title, colour in (("p", "by P", LEARNED_U), ("random", "at random", RANDOM)):
            points = [
                point(100 * target, _values(study, Condition("pruned", method=method, sparsity_target=target), task))
                for target in targets
            ]
            series += _series(title, [dense, *points], colour)
        if any(len(one.points) > 1 for one in series):
            panels.append(_task_panel(task, series))
    return tuple(panels)


def _values(
    study: Study, condition: Condition, task: str | None, used_by: str | None = "pruning"
) -> list[tuple[Run, float]]:
    """Scores of a task or of all that can be averaged, or held-out losses where the task is None."""
    if task is None:
        return _losses(condition.adapted(study, used_by))
    return _of_tasks(condition.scored(study, used_by), _shared_tasks(study) if task == "average" else (task,))


def _task_panel(task: str | None, series: list[Series]) -> Panel:
    title = "Held-out MLM loss" if task is None else {"average": "Mean of the tasks", **paper.TITLES}.get(task, task)
    return Panel(title, _SPARSITY, "nats, lower is better" if task is None else "points", tuple(series))


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
    panels = _frontier_panels(study, paper.GLUE_TASKS)
    return Chart("patterns", "Sparsity against quality, task by task", caption, panels, "4")


def _frontier_panels(study: Study, tasks: Iterable[str | None]) -> tuple[Panel, ...]:
    drawn = ((task, _frontier(study, task)) for task in tasks)
    return tuple(_task_panel(task, series) for task, series in drawn if series)


def _frontier(study: Study, task: str | None) -> list[Series]:
    handmade = [
        _at_own_sparsity(study, Condition("handmade", pattern=name, diagonal=True), task) for name in paper.HANDMADE
    ]
    series = _series("hand-made", handmade, HANDMADE, joined=False, labelled=True)
    for kind, colour in (("unstructured", LEARNED_U), ("structured", LEARNED_S)):
        ways = {
            "at a penalty": conditions.learned(study),
            "to a sparsity": conditions.learned_to_targets(study, "patterns"),
        }
        for way, learned in ways.items():
            points = [_at_own_sparsity(study, one, task) for one in learned if one.kind == kind]
            series += _series(f"{paper.KINDS[kind]} ({way})", points, colour, joined=way == "at a penalty")
    return series


def _at_own_sparsity(study: Study, condition: Condition, task: str | None) -> Point | None:
    sparsity = condition.sparsity(study, "patterns")
    if sparsity is None:
        return None
    return point(100 * sparsity, _values(study, condition, task, "patterns"), describe(condition))


@lru_cache(maxsize=16)
def _shared_tasks(study: Study) -> frozenset[str]:
    """Means over other tasks in one seed, or for one pattern, than in the next cannot be compared."""
    tasks: dict[tuple[object, ...], set[str]] = {}
    for run in study.scored("patterns"):
        if run.task in paper.GLUE_TASKS:
            named = sorted((name, str(value)) for name, value in run.condition.items() if name != "task")
            tasks.setdefault(tuple(named), set()).add(run.task)
    return frozenset(set.intersection(*tasks.values())) if tasks else frozenset()


def stages_chart(study: Study) -> Chart:
    """The paper's seventh figure: one-stage patterns against P pruned afterwards."""
    panels = []
    tasks = sorted({run.task for run in study.scored("stages") if run.task}, key=_task_order)
    for task in (*tasks, None):
        one = conditions.learned_for_stages(study)
        series = []
        for kind, colour in (("unstructured", LEARNED_U), ("structured", LEARNED_S)):
            points = [_for_stages(study, learned, task) for learned in one if learned.kind == kind]
            series += _series(f"one-stage, {paper.KINDS[kind]}", points, colour)
        targets = sorted(
            {
                float(run.condition["sparsity_target"])
                for run in study.finished(study="stages", family="pruned", method="p")
                if isinstance(run.condition.get("sparsity_target"), int | float)
            }
        )
        two = [_for_stages(study, Condition("pruned", method="p", sparsity_target=target), task) for target in targets]
        series += _series("two-stage", two, RANDOM)
        if series:
            panels.append(_task_panel(task, series))
    caption = "Learning the pattern with the weights (one stage) against pruning the learned P (two stages)."
    return Chart("stages", "One stage or two", caption, tuple(panels), "7")


def _for_stages(study: Study, condition: Condition, task: str | None) -> Point | None:
    sparsity = condition.sparsity(study, "stages")
    if sparsity is None:
        return None
    return point(100 * sparsity, _values(study, condition, task, "stages"), describe(condition))


def _task_order(task: str) -> int:
    return list(paper.TITLES).index(task) if task in paper.TITLES else len(paper.TITLES)


def penalty_chart(study: Study) -> Chart:
    """Sparsity that each penalty led to, beside the paper's."""
    series: list[Series] = []
    for kind, colour in (("unstructured", LEARNED_U), ("structured", LEARNED_S)):
        title = paper.KINDS[kind]
        searches = [run for run in study.finished("search", family="learned", kind=kind) if run.sparsity is not None]
        penalties = sorted({float(run.condition["penalty"]) for run in searches if run.condition.get("penalty")})
        points = [
            point(
                penalty,
                [(run, 100 * (run.sparsity or 0)) for run in searches if run.condition.get("penalty") == penalty],
            )
            for penalty in penalties
        ]
        series += _series(title, points, colour)
        printed = tuple(Point(penalty, paper.LEARNED[kind, penalty][0]) for penalty in paper.PENALTIES)
        series.append(Series(f"{title}, paper", printed, colour, True, False, True))
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
        points = [
            point(place, [(run, fmean(one.categories[name])) for run, one in found if name in one.categories])
            for place, name in enumerate(NAMES)
        ]
        series = _series(title, points, colour, joined=False)
        ticks = tuple((float(place), name) for place, name in enumerate(NAMES))
        if series:
            panels.append(Panel(f"{title} by category", "", "mean", tuple(series), ticks))
        longest = max((len(one.profile) for _, one in found), default=0)
        line = [
            point(distance, [(run, one.profile[distance]) for run, one in found if distance < len(one.profile)])
            for distance in range(max(1, round(0.9 * longest)))  # the last few distances have hardly any entries
        ]
        series = _series(title, line, colour)
        if series:
            panels.append(Panel(f"{title} by distance", "|offset|", "mean", tuple(series)))
    caption = "Off the border. The diagonal is distance 0, neighbours are distance 1."
    return Chart("profile", "Importance by kind of position and by distance", caption, tuple(panels), "2")
