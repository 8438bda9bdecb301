"""`sparsebert submission`: the file that an evaluation server takes."""

from pathlib import Path
from typing import Annotated

import typer

from sparsebert.cli import options


def submission(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Fine-tuned runs, one a task.")],
    data: Annotated[str, typer.Option(help="Folder that holds the official folders, with the test files.")],
    out: Annotated[Path, typer.Option(help="A .zip for GLUE, a .json for SQuAD, a .csv for SWAG.")],
    max_rows: Annotated[
        int | None, typer.Option(help="Only the first rows, as a trial; servers want all.", min=1)
    ] = None,
) -> None:
    """Predict the test rows and write them as the server expects.

    GLUE takes a zip with a TSV for every task; AX and WNLI, which the paper leaves out, get one label for all rows.
    Where a test file is absent, the dev rows are predicted without looking at their labels. Both are said.

    Example: sparsebert submission runs/cola runs/rte --data DIR --out glue.zip
    """
    from tempfile import TemporaryDirectory

    from sparsebert.tasks.loading import data_folder
    from sparsebert.tasks.submission import write_submission

    options.require_file(out)
    with TemporaryDirectory() as folder:
        written = write_submission(runs, data_folder(data, Path(folder)), out, max_rows=max_rows)
    for name, rows in sorted(written.files.items()):
        typer.echo(f"{name}: {rows:,} rows")
    for note in written.notes:
        typer.echo(f"note: {note}")
    typer.echo(f"in {written.path}")
