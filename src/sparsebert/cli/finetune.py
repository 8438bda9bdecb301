"""`sparsebert finetune`: train a task under a pattern, score it, and save a model that transformers opens."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from sparsebert.cli import options
from sparsebert.errors import ConfigError

_TASKS = "mnli, qqp, qnli, sst2, cola, stsb, mrpc, rte, swag, squad1 or squad2"
_DATA = (
    "Folder that holds the official folders; builtin:tasks for tiny made-up files that need no download; "
    "hub:default or hub:OWNER/NAME for a data set of the hub."
)
_ANCHOR = (
    "Where a pattern's last row and column sit in a shorter input: at the true last token (token), at position n-1 as "
    "in the paper (position), or token for patterns with a border only (auto)."
)

_Pooling = Annotated[
    str | None,
    typer.Option(help="What the head reads: mean of the tokens, or cls.", show_default="as the model has it, or cls"),
]
_Teacher = Annotated[
    str | None, typer.Option(help="A dense run of the same task: its answers and states are learned too.")
]


def finetune(
    context: typer.Context,
    task: Annotated[str, typer.Argument(help=f"{_TASKS}.")],
    data: Annotated[str, typer.Option(help=_DATA)] = "builtin:tasks",
    model: Annotated[
        str, typer.Option(help="minilm, a model folder or run, a hub id, or scratch:tiny, scratch:mini, scratch:base.")
    ] = "minilm",
    pattern: Annotated[
        str | None, typer.Option(help="A saved pattern or a name such as star.", show_default="the model's own")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Run folder to make, or to go on with.")] = None,
    length: Annotated[int | None, typer.Option(help="Tokens of an input.", show_default="128; SQuAD 384")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Rows of a step.", show_default="as in the paper")] = None,
    epochs: Annotated[float | None, typer.Option(help="Times over the rows.", show_default="as in the paper")] = None,
    learning_rate: Annotated[
        float | None, typer.Option(help="Peak, after warm-up over a tenth of the steps.", show_default="2e-5")
    ] = None,
    weight_decay: Annotated[
        float | None, typer.Option(help="Of matrices; biases and normalisation have none.", show_default="0.01")
    ] = None,
    max_rows: Annotated[int | None, typer.Option(help="Train on so many rows, drawn by a seed of their own.")] = None,
    max_dev_rows: Annotated[int | None, typer.Option(help="Score on so many dev rows.")] = None,
    anchor: Annotated[str, typer.Option(help=_ANCHOR)] = "auto",
    pooling: _Pooling = None,
    teacher: _Teacher = None,
    seed: Annotated[int, typer.Option(help="Of the new head, the order of rows, and dropout.")] = 0,
    seeds: Annotated[
        int, typer.Option(help="Run so many seeds, from --seed on; mean, deviation, 95 % interval.", min=1)
    ] = 1,
    grid: Annotated[bool, typer.Option("--grid", help="Try the appendix's learning rates and weight decays.")] = False,
    check_data: Annotated[bool, typer.Option("--check-data", help="Report rows and problems; train nothing.")] = False,
    skip_bad_rows: Annotated[bool, typer.Option("--skip-bad-rows", help="Leave malformed rows out.")] = False,
    set_: Annotated[
        list[str] | None, options.other_settings("Another setting, e.g. stride=64 or micro_batches=2.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")] = False,
) -> None:
    """Fine-tune a task of GLUE, SWAG or SQuAD, dense or under any pattern.

    Unset settings are those of the paper's appendix. The same command on the same folder resumes. The folder's model/
    is a transformers model; scores are points of a hundred on the dev rows.

    Examples:

    sparsebert finetune rte --data builtin:tasks --model minilm --pattern star --out runs/rte

    sparsebert finetune mrpc --data DIR --check-data

    sparsebert finetune cola --data DIR --grid --seeds 3 --out runs/cola
    """
    if check_data:
        _check(task, data, json)
        return
    if out is None:
        raise ConfigError("finetune was given no --out; name the run folder to make, such as --out runs/rte")
    if grid and (learning_rate is not None or weight_decay is not None):
        raise ConfigError("--grid tries learning rates and weight decays of its own; leave out yours, or --grid")
    _tune(context, out, {"num_epochs": epochs}, set_, range(seed, seed + seeds))


def _tune(
    context: typer.Context, out: Path, renamed: dict[str, Any], pairs: list[str] | None, seeds: Sequence[int]
) -> None:
    from sparsebert.progress import for_this_terminal
    from sparsebert.runs import FinetuneRun
    from sparsebert.runs.finetune_repeats import repeated
    from sparsebert.training import is_main

    options.require_folder(out)
    options.say_what_happens()
    flags = options.options_of(finetune, num_epochs="--epochs")
    given = options.settings_given(context, FinetuneRun.known()) | renamed
    run = FinetuneRun.read(given | options.read_settings(pairs, FinetuneRun.known(), flags)).resolved()

    def make(one: FinetuneRun, folder: Path) -> Mapping[str, Any]:
        one = replace(one, command=options.command_line("finetune", one, flags))
        return one.make(folder, for_this_terminal(f"{one.task} in {folder.name}")).fields

    result = repeated(run, seeds, out, make, grid=context.params["grid"])
    if is_main():
        _show(result, out, context.params["json"])


def _show(result: Mapping[str, Any], out: Path, json: bool) -> None:
    from sparsebert.files import canonical_json

    if json:
        typer.echo(canonical_json(dict(result)))
        return
    words = f"{result['task']}: {result['metric']} {result['score']:.2f}"
    if result.get("interval"):
        low, high = result["interval"]
        words += (
            f" ± {result['deviation']:.2f} over {len(result['scores'])} seeds, 95 % interval {low:.2f} to {high:.2f}"
        )
    others = [f"{name} {value:.2f}" for name, value in result["metrics"].items() if name != result["metric"]]
    typer.echo(f"{words}{' (' + ', '.join(others) + ')' if others else ''}; in {out}")


def _check(task: str, data: str, json: bool) -> None:
    from tempfile import TemporaryDirectory

    from sparsebert.files import canonical_json
    from sparsebert.tasks.files.checking import check_data
    from sparsebert.tasks.files.reading import HUB
    from sparsebert.tasks.loading import data_folder
    from sparsebert.tasks.table import find_task

    if data.startswith(HUB):
        raise ConfigError(f"--check-data reads files, and {data} is a data set of the hub; name a folder of files")
    with TemporaryDirectory() as folder:
        reports = check_data(find_task(task), data_folder(data, Path(folder)))
    for report in reports:
        if json:
            typer.echo(canonical_json(vars(report)))
            continue
        labels = ", ".join(f"{name}: {count:,}" for name, count in report.labels.items())
        typer.echo(f"{report.path}: {report.num_rows:,} rows" + (f" ({labels})" if labels else ""))
        if report.empty_texts or report.repeated:
            typer.echo(f"  {report.empty_texts:,} rows with an empty text, {report.repeated:,} repeat an earlier row")
        for problem in report.problems:
            typer.echo(f"  problem: {problem}")
    if any(report.problems for report in reports):
        raise typer.Exit(2)
