"""`sparsebert compare`: how much of a dense model a sparse one keeps."""

import json
from pathlib import Path
from typing import Annotated

import typer

from sparsebert.cli import options


def compare(
    dense: Annotated[str, typer.Argument(help="A model: minilm, a folder or a run folder, a hub id.")],
    sparse: Annotated[str, typer.Argument(help="The model that is held against it.")],
    corpus: options.Corpus[Path],
    pattern: Annotated[
        str | None, typer.Option(help="Run SPARSE under this pattern: a file, or a name such as star.")
    ] = None,
    precision: Annotated[str, typer.Option(help="Run SPARSE in fp32, bf16 or int8.")] = "fp32",
    rows: Annotated[int, typer.Option(help="Held-out rows to compare on, in batches of 16.", min=1)] = 256,
    length: Annotated[
        int | None, typer.Option(help="Tokens of the longest rows.", show_default="what both models take", min=8)
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the rows.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Also write it as a page, such as compared.html.")] = None,
    card: Annotated[
        bool,
        typer.Option("--card", help="Also measure the speed, and write both into SPARSE's model card (README.md)."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object instead of a table.")] = False,
) -> None:
    """Run two models over the same held-out text: the error of hidden states layer by layer, the cosine of embeddings.

    Examples:

    sparsebert compare minilm adapted --corpus corpus --out compared.html

    sparsebert compare minilm adapted --corpus corpus --card

    sparsebert compare minilm minilm --pattern star --corpus corpus --json

    sparsebert compare minilm minilm --precision int8 --corpus corpus
    """
    from sparsebert.report.run_pages.writing import write_comparison_page
    from sparsebert.runs.comparing import compare_sources, require_card, write_into_card

    options.require_file(out)
    if card:
        require_card(sparse, pattern=pattern, precision=precision)
    made, under = compare_sources(
        dense, sparse, corpus, pattern=pattern, precision=precision, rows=rows, length=length, seed=seed
    )
    if as_json:
        typer.echo(json.dumps(made.as_json(), indent=2))
    else:
        typer.echo(f"{sparse}: {made.sparsity:.2%} sparse, in {precision}, held against {dense}")
        typer.echo(str(made))
    if out is not None:
        typer.echo(options.page_line(write_comparison_page(out, dense, sparse, made, under)), err=as_json)
    if card:
        typer.echo(f"card: {write_into_card(sparse, made, corpus)}", err=as_json)
