"""`sparsebert predict`: answer a file or standard input with a fine-tuned model, one JSON object a row."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sparsebert.cli import options
from sparsebert.errors import ConfigError

if TYPE_CHECKING:
    from sparsebert.tasks.prediction import Predictor


def predict(
    run: Annotated[Path, typer.Argument(help="The --out of finetune, or its model folder.")],
    file: Annotated[
        Path | None,
        typer.Option(
            help="An official file of the task; or lines: a sentence, two with a tab in between, or a JSON object.",
            show_default="standard input",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write here.", show_default="standard output")] = None,
    precision: options.Precision = "fp32",
    score: Annotated[
        bool, typer.Option("--score", help="The task's metrics over an official file with labels, instead of rows.")
    ] = False,
) -> None:
    """Predict labels with probabilities, scores, or answers with their places; JSON Lines, in the order of the input.

    A row gets the same answer alone and in any batch.

    Examples:

    echo 'a lovely film' | sparsebert predict runs/sst2

    sparsebert predict runs/squad2 --file dev-v2.0.json --precision int8 --out answers.jsonl

    sparsebert predict runs/swag --file val.csv --score
    """
    from sparsebert.files import write_atomic
    from sparsebert.tasks.files.rows_to_predict import read_inputs
    from sparsebert.tasks.prediction import Predictor

    if score and file is None:
        raise ConfigError("--score was given without --file; name an official file with labels")
    options.require_file(out)
    predictor = Predictor(run, precision=precision)
    if score and file is not None:
        lines = iter([_line(dict(predictor.metrics(read_inputs(file, predictor.task, labelled=True))))])
    else:
        lines = _predictions(predictor, file)
    if out is not None:
        write_atomic(out, "".join(lines).encode())
        return
    for line in lines:
        typer.echo(line, nl=False)


def _predictions(predictor: "Predictor", file: Path | None) -> Iterator[str]:
    from sparsebert.tasks.files.rows_to_predict import read_inputs, read_lines

    stdin = read_lines(sys.stdin.buffer, predictor.task, Path("<stdin>"))
    rows = stdin if file is None else read_inputs(file, predictor.task)
    return (_line(found) for found in predictor.predict(rows))


def _line(found: dict[str, object]) -> str:
    import json

    return json.dumps(found, ensure_ascii=False, allow_nan=False) + "\n"
