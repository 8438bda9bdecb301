"""`sparsebert search`: learn a sparse pattern beside the weights."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from sparsebert.cli import options
from sparsebert.errors import ConfigError

_Task = Annotated[
    str | None, typer.Option(help="Learn on this task's own loss instead of a corpus: rte, mrpc, squad1 ...")
]
_Data = Annotated[
    str | None, typer.Option(help="With --task: folder of the official folders.", show_default="builtin:tasks")
]
_Kind = Annotated[
    str, typer.Option(help="structured: lines |i - j| a head, usable at any length. unstructured: single entries.")
]
_Objective = Annotated[
    str | None,
    typer.Option(
        help="distill: agree with the dense model. mlm: predict corrupted words, as the paper does.",
        show_default="distill; mlm for scratch:*",
    ),
]
_Weights = Annotated[
    str | None,
    typer.Option(
        help="frozen, or trained beside the gate: better, if adapt is to follow.",
        show_default="frozen with distill, trained with mlm",
    ),
]
_Layers = Annotated[
    str | None, typer.Option(help="own: a pattern a layer. shared: one for all.", show_default="own with distill")
]
_Teacher = Annotated[
    str | None,
    typer.Option(help="A dense model to agree with; with --task a run of that task.", show_default="the model"),
]
_Pooling = Annotated[
    str | None,
    typer.Option(help="mean or cls: of embeddings; with --task what the head reads.", show_default="as the model's"),
]
_Sparsity = Annotated[float | None, typer.Option(help="Target, reached by dual ascent on the penalty.")]
_Sparsities = Annotated[
    str | None, typer.Option(help="Targets instead, such as 0.8,0.9,0.95: one pattern file then gives any of them.")
]
_Keys = Annotated[float | None, typer.Option(help="Target instead: mean number of keys a query, whatever the length.")]
_Penalty = Annotated[float | None, typer.Option(help="Lambda of the paper instead of a target.")]
_Length = Annotated[
    int | None,
    typer.Option(
        help="Tokens in a row; beyond 256 only sampled lines are computed.", show_default="128; the task's own"
    ),
]
_Preset = Annotated[str, typer.Option(help="default (under a teacher distilled), paper, official (the released code).")]
_Levels = Annotated[int, typer.Option(help="2: the gate learns on batches of its own (first-order DARTS).")]
_Diagonal = Annotated[str, typer.Option(help="learned, keep or drop, when the gate is frozen.")]


def search(
    context: typer.Context,
    model: options.Model[str],
    out: options.RunFolder[Path],
    corpus: options.Corpus[Path | None] = None,
    steps: Annotated[int | None, typer.Option(help=options.STEPS, show_default="required with --corpus")] = None,
    task: _Task = None,
    data: _Data = None,
    kind: _Kind = "structured",
    objective: _Objective = None,
    weights: _Weights = None,
    layers: _Layers = None,
    teacher: _Teacher = None,
    pooling: _Pooling = None,
    sparsity: _Sparsity = None,
    sparsities: _Sparsities = None,
    keys: _Keys = None,
    penalty: _Penalty = None,
    length: _Length = None,
    batch_size: Annotated[int | None, typer.Option(help=options.BATCH_SIZE, show_default="32; the task's own")] = None,
    preset: _Preset = "default",
    levels: _Levels = 1,
    diagonal: _Diagonal = "learned",
    seed: options.SeedOfSamples = 0,
    set_: Annotated[
        list[str] | None,
        options.other_settings("Any other setting: rate=0.05, anchor=token, checkpoint_every=50 ..."),
    ] = None,
) -> None:
    """Learn which entries to keep (the paper's Algorithm 1), and freeze them into a pattern.

    On text a trained model teaches itself: the gate learns which entries its states need, its weights stay as they
    are, and the pattern serves the published model. With --objective mlm both learn from corrupted text, as in the
    paper; with --task from a task's own rows.

    Ends with pattern.safetensors, the model under it, a grid of all heads (pattern.png), the path of the sparsity
    (sparsity.png), and report.html: a page of what was kept, layer by layer and head by head, and what it cost. The
    same command on the same folder resumes.

    Examples:

    sparsebert search --model minilm --corpus corpus --sparsity 0.9 --steps 240 --out found

    sparsebert search --model minilm --corpus corpus --sparsity 0.9 --weights trained --steps 300 --out to-adapt

    sparsebert search --model minilm --corpus corpus --keys 32 --steps 300 --batch-size 16 --out found-for-long

    torchrun --nproc-per-node 2 -m sparsebert search --model minilm --corpus corpus --objective mlm
    --kind unstructured --penalty 1e-3 --steps 600 --out found

    sparsebert search --model dense --task rte --teacher dense --data DIR --sparsity 0.9 --out found-for-rte
    """
    _check(corpus, task, data, steps, objective or weights or sparsities)
    on_task = {} if task is None else {"data": data or "builtin:tasks", "num_steps": steps}
    _learn(context, out, on_task, set_)


def _check(corpus: Path | None, task: str | None, data: str | None, steps: int | None, of_text: str | None) -> None:
    """Refuse options that do not go together. of_text: one that only a search on a corpus has, where it is given."""
    if (corpus is None) == (task is None):
        raise ConfigError("search learns on text or on a task; give either --corpus or --task, one of them")
    if task is None and data is not None:
        raise ConfigError("--data was given without --task; a search on a corpus reads no task files, so leave it out")
    if task is None and steps is None:
        raise ConfigError("search on a corpus was given no --steps; say how many, such as --steps 240")
    if task is not None and of_text:
        raise ConfigError("--objective, --weights and --sparsities are for a search on a corpus; leave them out here")


def _learn(context: typer.Context, out: Path, on_task: dict[str, Any], pairs: list[str] | None) -> None:
    from sparsebert.report.run_pages.writing import write_search_page
    from sparsebert.runs import SearchRun, TaskSearchRun

    cls: type[SearchRun | TaskSearchRun] = TaskSearchRun if on_task else SearchRun
    flags = options.options_of(search, num_steps="--steps")
    given = options.settings_given(context, cls.known()) | on_task
    if "sparsities" in given:
        given["sparsities"] = cls.known()["sparsities"].read(str(given["sparsities"]))
    run = cls.read(given | options.read_settings(pairs, cls.known(), flags))
    if isinstance(run, SearchRun):
        _check_moved(run, pairs or [])
    if isinstance(run, TaskSearchRun):
        run = replace(run, command=options.command_line("search", run.resolved(), flags))
    found = options.make(run, out, "search")
    if found is not None:
        typer.echo(_words(out, found))
        if (out / "comparison.json").is_file():
            typer.echo(options.comparison_table(out))
        typer.echo(options.page_line(write_search_page(out)))


def _check_moved(run: Any, pairs: list[str]) -> None:
    """Refuse settings of weights that stay as they are; a gate without a rate of its own has the weights'."""
    from sparsebert.gates import preset

    has_own_rate = preset(run.gate_preset, **run.gate).rate is not None
    for name in ("learning_rate", "weight_decay"):
        given = any(pair.partition("=")[0].strip() == name for pair in pairs)
        if given and run.is_distilled and run.weights != "trained" and (has_own_rate or name == "weight_decay"):
            raise ConfigError(f"{name} is given, but the weights stay frozen; add --weights trained, or leave it out")


def _words(out: Path, fields: Mapping[str, Any]) -> str:
    scored = fields["metric"] if fields["task"] == "search" else f"{fields['task']} {fields['metric']}"
    exact = {"mlm_loss": "held-out MLM loss", "embedding_distance": "held-out embedding distance"}
    score = f"{exact[scored]} {fields['score']:.4f}" if scored in exact else f"{scored} {fields['score']:.2f}"
    others = [f"\nat {one['sparsity']:.2%} {one['embedding_distance']:.4f}" for one in fields.get("at_sparsities", [])]
    return (
        f"{out}: {fields['sparsity']:.2%} sparse, {score} under the pattern; "
        f"{fields['heads_with_diagonal']:.0%} of heads keep the diagonal, "
        f"{fields['heads_with_neighbours']:.0%} keep a neighbour" + "".join(others)
    )
