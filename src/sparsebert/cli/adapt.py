"""`sparsebert adapt`: let a model's weights get used to a pattern, with the dense model as their teacher."""

from pathlib import Path
from typing import Annotated

import typer

from sparsebert.cli import options


def adapt(
    context: typer.Context,
    model: options.Model[str],
    corpus: options.Corpus[Path],
    steps: options.Steps[int],
    out: options.RunFolder[Path],
    pattern: Annotated[
        str | None,
        typer.Option(help="A file or a name such as star.", show_default="the model's own, such as a search leaves"),
    ] = None,
    length: Annotated[
        int | None,
        typer.Option(
            help="Tokens in a row. Beyond the model's positions these are extended, and the teacher reads windows.",
            show_default="128",
        ),
    ] = None,
    batch_size: Annotated[int | None, typer.Option(help=options.BATCH_SIZE, show_default="32")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="At its peak.", show_default="1e-4")] = None,
    teacher: Annotated[
        str | None,
        typer.Option(help="A dense model to agree with.", show_default="what the model's weights began as"),
    ] = None,
    seed: options.SeedOfSamples = 0,
    set_: Annotated[
        list[str] | None,
        options.other_settings("Any other setting: full_rows=0.8, pooling=cls, precision=bfloat16 ..."),
    ] = None,
) -> None:
    """Train weights under a pattern until they make the states that the dense model makes.

    No labels and no new head: the loss is the error of the hidden states of every layer and the distance of the
    embeddings. Ends with the model under its pattern, a table of how near it came, and the same as a page,
    report.html. The same command on the same folder goes on after any interruption, to the same bits.

    Examples:

    sparsebert adapt --model found --corpus corpus --steps 600 --out adapted

    sparsebert adapt --model minilm --pattern star --corpus corpus --steps 300 --out adapted-to-star

    sparsebert adapt --model found-for-long --corpus corpus --length 4096 --batch-size 2 --steps 300 --out long
    """
    from sparsebert.report.run_pages.writing import write_adapt_page
    from sparsebert.runs import AdaptRun

    run = AdaptRun.read(options.chosen_under_pattern(adapt, AdaptRun, context, pattern, set_))
    found = options.make(run, out, "adapt")
    if found is not None:
        typer.echo(f"{out}: {found['sparsity']:.2%} sparse, held-out embedding distance {found['score']:.4f}")
        typer.echo(options.comparison_table(out))
        typer.echo(options.page_line(write_adapt_page(out)))
