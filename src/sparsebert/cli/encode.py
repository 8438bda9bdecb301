"""`sparsebert encode`: embeddings of the texts of a file."""

from pathlib import Path
from typing import Annotated

import typer

from sparsebert.cli import options


def encode(
    file: Annotated[Path, typer.Argument(help="One text a line; or .jsonl, objects with a field text.")],
    model: Annotated[str, typer.Option(help="minilm, a model folder or a run folder, a hub id.")],
    out: Annotated[Path, typer.Option(help="Write here: .npy, a row a text; or .jsonl, an object each.")],
    pattern: Annotated[
        str | None, typer.Option(help="A file or a name such as star.", show_default="the model's own")
    ] = None,
    length: Annotated[
        int | None, typer.Option(help="Cut texts beyond so many tokens.", show_default="as the model's folder says")
    ] = None,
    precision: options.Precision = "fp32",
    chunks: Annotated[
        int | None,
        typer.Option(help="An embedding of every so many tokens, from one pass over the whole text; needs .jsonl."),
    ] = None,
    batch_tokens: Annotated[int, typer.Option(help="Tokens in a batch.")] = 8192,
) -> None:
    """Write embeddings of texts, pooled and normalised as the model's folder says, in the order of the file.

    A text gets the same embedding alone and beside any others. Texts that go on where the model ends are cut, and
    counted. A pattern that has a rule follows the input as far as the model has positions.

    Examples:

    sparsebert encode texts.txt --model minilm --out embeddings.npy

    sparsebert encode texts.txt --model adapted --precision bf16 --out embeddings.npy

    sparsebert encode papers.jsonl --model long --length 4096 --chunks 256 --out chunks.jsonl
    """
    from sparsebert.embeddings import Encoder, check_out, read_texts, write_embeddings
    from sparsebert.embeddings.encoding import check_sizes, encode_texts
    from sparsebert.progress import for_this_terminal

    options.require_file(out)
    check_out(out, in_chunks=chunks is not None)
    check_sizes(chunks, batch_tokens)
    read = read_texts(file)
    encoder = Encoder(model, pattern=pattern, length=length, precision=precision)
    watcher = for_this_terminal("encode", "text")
    made = encode_texts(encoder, read.texts, chunks=chunks, batch_tokens=batch_tokens, watcher=watcher)
    write_embeddings(out, made, read.ids, in_chunks=chunks is not None)
    what = "texts" if chunks is None else f"texts in {sum(map(len, made.vectors)):,} chunks"
    speed = made.num_tokens / made.seconds
    typer.echo(f"{out}: {len(read.texts):,} {what}, {made.num_tokens:,} tokens, {speed:,.0f} tokens/s")
    if made.num_cut:
        typer.echo(f"{made.num_cut:,} of {len(read.texts):,} texts were cut at {encoder.length} tokens")
