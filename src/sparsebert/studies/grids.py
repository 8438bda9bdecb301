"""The paper's experiments, each a list of conditions and the tasks they are scored on."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from sparsebert.errors import ConfigError
from sparsebert.patterns import named
from sparsebert.studies.graph import Graph
from sparsebert.studies.runs import DENSE, KINDS, NO_DIAGONAL, RANDOM_DROP, Condition, Run
from sparsebert.studies.scales import Scale
from sparsebert.studies.sources import Sources

# Whose conditions are fine-tuned with a teacher too, where the scale asks for it.
_TAUGHT = ("diagonal", "patterns")
HANDMADE = ("strided", "fixed", "longformer", "log_sparse", "big_bird", "star")


def importance(graph: Graph) -> None:
    """The second figure: P by category, beside what trained attention maps show."""
    for seed in _seeds(graph):
        graph.importance("soft", seed)
        graph.importance("attention", seed)


def diagonal(graph: Graph) -> None:
    """The GLUE, SWAG and SQuAD tables: dense, as many entries dropped at random, and no diagonal."""
    for seed in _seeds(graph):
        adapted = [
            *([graph.published(seed)] if graph.scale.is_distilled else []),
            graph.adapt_stated(None, replace(DENSE, seed=seed)),
            graph.adapt_stated(_stated("full", diagonal=False), replace(NO_DIAGONAL, seed=seed)),
        ]
        for draw in range(graph.scale.random_drops):
            condition = replace(RANDOM_DROP, draw=draw, seed=seed)
            adapted.append(graph.adapt_stated({"random_drop": draw}, condition))
        _score(graph, adapted)


def pruning(graph: Graph) -> None:
    """Progressive pruning: the least important entries against random ones, at every sparsity."""
    for seed in _seeds(graph):
        dense = graph.adapt_stated(None, replace(DENSE, seed=seed))
        adapted = {(s, by): _pruned(graph, by, s, seed) for s in graph.scale.sparsities for by in ("p", "random")}
        scored = [run for (s, _), run in adapted.items() if s in graph.scale.task_sparsities]
        _score(graph, [dense, *scored])


def patterns(graph: Graph) -> None:
    """The main table: six hand-made patterns, and both kinds of learned ones at four penalties.

    Beside it both kinds at each hand-made pattern's own sparsity, by loss if the scale names none for tasks.
    """
    scale = graph.scale
    for seed in _seeds(graph):
        scored = [_handmade(graph, name, seed, diagonal=True) for name in HANDMADE]
        for kind in KINDS:
            learned = {penalty: _learned(graph, kind, seed, penalty, diagonal=False) for penalty in scale.penalties}
            scored += [run for penalty, run in learned.items() if penalty in scale.task_penalties]
            for name in HANDMADE if scale.own_sparsities else ():
                run = _searched(graph, kind, _own_sparsity(graph, name), seed)
                scored += [run] if name in scale.task_own else []
            scored += [_searched(graph, kind, sparsity, seed) for sparsity in scale.more_sparsities]
        _score(graph, scored)


def ablation(graph: Graph) -> None:
    """Every pattern with and without the diagonal; of the learned ones the smallest and the largest penalty."""
    ends = sorted({graph.scale.penalties[0], graph.scale.penalties[-1]})
    for seed in _seeds(graph):
        adapted = [_handmade(graph, name, seed, diagonal=keep) for name in HANDMADE for keep in (True, False)]
        adapted += [
            _learned(graph, "structured", seed, penalty, diagonal=keep) for penalty in ends for keep in (True, False)
        ]
        _score(graph, adapted)


def stages(graph: Graph) -> None:
    """Searching for a sparsity (one stage) against pruning P to it (two stages)."""
    for seed in _seeds(graph):
        adapted = []
        for sparsity in graph.scale.stage_sparsities:
            adapted.append(_pruned(graph, "p", sparsity, seed))
            adapted += [_searched(graph, kind, sparsity, seed) for kind in KINDS]
        _score(graph, adapted)


STUDIES: dict[str, Callable[[Graph], None]] = {
    "importance": importance,
    "diagonal": diagonal,
    "pruning": pruning,
    "patterns": patterns,
    "ablation": ablation,
    "stages": stages,
}


def names_in(name: str) -> list[str]:
    """The studies that a name stands for: itself, all of them, or several joined by +."""
    names = list(STUDIES) if name == "all" else name.split("+")
    for one in names:
        if one not in STUDIES:
            raise ConfigError(f"there is no study {one!r}; expected {', '.join(STUDIES)} or all")
    return [one for one in STUDIES if one in names]


def name_of(names: Iterable[str]) -> str:
    """One name for several studies."""
    chosen = [one for one in STUDIES if one in set(names)]
    return "all" if chosen == list(STUDIES) else "+".join(chosen)


def tasks_of(names: Iterable[str], scale: Scale) -> list[str]:
    """Every task that these studies score."""
    return sorted({task for name in names for task in scale.tasks.get(name, ())})


def make_graph(names: Iterable[str], scale: Scale, sources: Sources, threads: int) -> Graph:
    """All runs of these studies; what two of them share is there once."""
    for field in ("study_seeds", "few_seeds"):
        for name in getattr(scale, field):
            if name not in STUDIES:
                raise ConfigError(f"{field} names {name!r}; expected one of {', '.join(STUDIES)}")
    graph = Graph(scale, sources, threads)
    for name in names:
        graph.study = name
        STUDIES[name](graph)
    return graph


# What says most for its cost comes first, and losses before scores: a study that is stopped has answered something.
_MOST_USEFUL_FIRST = ("importance", "diagonal", "ablation", "pruning", "stages", "patterns")


@dataclass(frozen=True, order=True)
class Phase:
    """Runs that are made before those of later phases; what a run depends on is never in a later one."""

    is_scores: bool  # fine-tuning, which comes after all pre-training
    place: int  # among the studies

    @property
    def words(self) -> str:
        return f"{_MOST_USEFUL_FIRST[self.place]}: {'fine-tuning' if self.is_scores else 'pre-training'}"


def phase_of(graph: Graph, run: Run) -> Phase:
    """By the first study that uses it."""
    return Phase(run.stage == "finetune", min(map(_MOST_USEFUL_FIRST.index, graph.studies[run.id])))


def _seeds(graph: Graph) -> range:
    return range(graph.scale.study_seeds.get(graph.study, graph.scale.seeds))


def _stated(name: str, *, diagonal: bool = True) -> dict[str, Any]:
    return {"name": name, "drop_diagonal": not diagonal}


def _handmade(graph: Graph, name: str, seed: int, *, diagonal: bool) -> Run:
    condition = Condition("handmade", name, diagonal=diagonal, seed=seed)
    return graph.adapt_stated(_stated(name, diagonal=diagonal), condition)


def _learned(graph: Graph, kind: str, seed: int, penalty: float, *, diagonal: bool) -> Run:
    found = graph.search(kind, seed, penalty=penalty)
    condition = replace(found.condition, diagonal=diagonal)
    return graph.adapt_found(found, "keep" if diagonal else "drop", condition)


def _searched(graph: Graph, kind: str, sparsity: float, seed: int) -> Run:
    found = graph.search(kind, seed, sparsity=sparsity)
    return graph.adapt_found(found, "learned", found.condition)


def _own_sparsity(graph: Graph, handmade: str) -> float:
    """In tenths of a per cent."""
    return round(named(handmade, graph.scale.length, graph.sources.heads).sparsity, 3)


def _pruned(graph: Graph, method: str, sparsity: float, seed: int) -> Run:
    found = graph.prune(method, sparsity, seed)
    return graph.adapt_found(found, "learned", found.condition)


def _score(graph: Graph, adapted: list[Run]) -> None:
    scale = graph.scale
    for run in adapted:
        at_penalty = run.condition.penalty is not None
        fewer = scale.few_seeds.get(graph.study, {}) | (scale.few_penalty_seeds if at_penalty else {})
        taught = scale.taught_seeds if graph.study in _TAUGHT and not at_penalty else {}
        for task in scale.tasks[graph.study]:
            if not _is_scored(scale, run.condition, task):
                continue
            if run.condition.seed in _seeds(graph)[: fewer.get(task, scale.task_seeds)]:
                graph.finetune(run, task)
            if run.condition.seed in _seeds(graph)[: taught.get(task, 0)]:
                graph.finetune(run, task, taught=True)


def _is_scored(scale: Scale, condition: Condition, task: str) -> bool:
    if condition.draw is not None and scale.task_drops is not None and condition.draw >= scale.task_drops:
        return False
    return task not in scale.task_rows or condition.label("adapt") in scale.task_rows[task]
