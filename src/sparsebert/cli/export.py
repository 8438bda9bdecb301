"""`sparsebert export`: a model as one file for ONNX Runtime, torch or C++."""

from pathlib import Path
from typing import Annotated

import typer

from sparsebert.cli import options


def export(
    model: Annotated[str, typer.Option(help="minilm, a model folder or a run folder, a hub id.")],
    out: Annotated[Path, typer.Option(help="Write here: .onnx or .pt2.")],
    head: Annotated[
        str | None,
        typer.Option(help="sequence_classification ...; its scores are written.", show_default="none: embeddings"),
    ] = None,
    pattern: Annotated[
        str | None, typer.Option(help="A file or a name such as star.", show_default="the model's own")
    ] = None,
    length: Annotated[
        int | None, typer.Option(help="The most tokens of an input.", show_default="the pattern's length")
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(help="onnx, torch, or compiled (a .pt2 for C++).", show_default="by the ending of --out"),
    ] = None,
) -> None:
    """Write a model with its pattern inside, for any number of rows of any length up to the pattern's.

    .onnx files hold plain operators, which any runtime executes. Inputs are int64: input_ids and attention_mask (ones,
    then zeros), with a head also token_type_ids where the family has them.

    Examples:

    sparsebert export --model adapted --out adapted.onnx

    sparsebert export --model minilm --pattern star --length 256 --out star.pt2

    sparsebert export --model tuned/model --head sequence_classification --out tuned.onnx
    """
    from sparsebert.exporting import export, export_embedder
    from sparsebert.model import load_model
    from sparsebert.patterns import find
    from sparsebert.text import source_of
    from sparsebert.training.starting_points import longest_row

    options.require_file(out)
    options.say_what_happens()  # that a head is new and knows nothing, above all
    if head is None:
        made = export_embedder(model, out, pattern=pattern, length=length, format=format)
    else:
        loaded = load_model(source_of(model), head)  # type: ignore[arg-type]
        if pattern is not None:
            loaded.set_pattern(find(pattern, length or longest_row(model), int(loaded.config.num_attention_heads)))
        made = export(loaded, out, length=length, format=format)
    under = "dense" if made.pattern is None else f"sparsity {made.pattern.sparsity:.2%}"
    typer.echo(f"{out}: {made.format}, {out.stat().st_size / 1e6:,.1f} MB, {under}, up to {made.length:,} tokens")
    typer.echo(f"inputs {', '.join(made.inputs)}; outputs {', '.join(made.outputs)}")
