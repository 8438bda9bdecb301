"""The command line: one module a command, each importing what it needs only when it runs."""

import sys
from typing import Annotated

import typer

from sparsebert.cli.adapt import adapt
from sparsebert.cli.bench import bench
from sparsebert.cli.compare import compare
from sparsebert.cli.demo import demo
from sparsebert.cli.encode import encode
from sparsebert.cli.export import export
from sparsebert.cli.finetune import finetune
from sparsebert.cli.importance import importance
from sparsebert.cli.pattern import pattern
from sparsebert.cli.predict import predict
from sparsebert.cli.prepare import prepare
from sparsebert.cli.pretrain import pretrain
from sparsebert.cli.prune import prune
from sparsebert.cli.report import report
from sparsebert.cli.search import search
from sparsebert.cli.study import study
from sparsebert.cli.submission import submission
from sparsebert.cli.theory import theory
from sparsebert.errors import SparseBertError

app = typer.Typer(
    name="sparsebert",
    help="Learn which attention positions a BERT-like encoder needs, and run only those.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(demo)
app.command()(pattern)
app.command()(prepare)
app.command()(importance)
app.command()(search)
app.command()(adapt)
app.command()(compare)
app.command()(encode)
app.command()(export)
app.command()(prune)
app.command()(pretrain)
app.command()(finetune)
app.command()(predict)
app.command()(submission)
app.command()(study)
app.command()(report)
app.command()(theory)
app.add_typer(bench, name="bench")


def _version(wanted: bool) -> None:
    if wanted:
        from sparsebert import __version__

        typer.echo(f"sparsebert {__version__}")
        raise typer.Exit


@app.callback()
def settings(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Learn which attention positions a BERT-like encoder needs, and run only those."""


def main() -> None:
    """Run a command; an error of ours is one sentence and its exit code (2 but for signals)."""
    debug = "--debug" in sys.argv
    sys.argv = [argument for argument in sys.argv if argument != "--debug"]
    try:
        app()
    except SparseBertError as error:
        if debug:
            raise
        typer.secho(f"error: {error}", fg="red", err=True)
        sys.exit(error.exit_code)
