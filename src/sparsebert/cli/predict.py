"""`sparsebert predict`: answer a file or standard input with a fine-tuned model, one JSON object a row."""

import sys
from pathlib import Path
from typing import Annotated

import typer


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
) -> None:
    """Predict labels with probabilities, scores, or answers with their places; JSON Lines, in the order of the input.

    A row gets the same answer alone and in any batch.

    Examples:

    echo 'a lovely film' | sparsebert predict runs/sst2

    sparsebert predict runs/squad2 --file dev-v2.0.json --out answers.jsonl
    """
    from sparsebert.files import write_atomic
    from sparsebert.tasks.inputs import read_inputs, read_lines
    from sparsebert.tasks.prediction import Predictor

    predictor = Predictor(run)
    rows = (
        read_lines(sys.stdin.buffer, predictor.task, Path("<stdin>"))
        if file is None
        else read_inputs(file, predictor.task)
    )
    lines = (_line(found) for found in predictor.predict(rows))
    if out is not None:
        write_atomic(out, "".join(lines).encode())
        return
    for line in lines:
        typer.echo(line, nl=False)


def _line(found: dict[str, object]) -> str:
    import json

    return json.dumps(found, ensure_ascii=False, allow_nan=False) + "\n"
