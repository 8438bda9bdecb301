"""`sparsebert pattern`: build, look at, save and draw a pattern."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sparsebert.cli import options
from sparsebert.errors import FileError, PatternError

if TYPE_CHECKING:
    from sparsebert.patterns import Pattern

_PICTURE_WIDTH = 64  # characters a side; longer patterns are shown with several entries a character


def pattern(
    name: Annotated[str, typer.Argument(help="A builder's name, a saved pattern file, or 'list' for the names.")],
    length: Annotated[int | None, typer.Option(help="Positions n; 128 unless a file says otherwise.")] = None,
    heads: Annotated[
        int | None, typer.Option(help="Heads; random patterns draw each apart.", show_default="1; a file's own")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Of the random parts.")] = None,
    without_diagonal: Annotated[bool, typer.Option("--without-diagonal", help="No token attends to itself.")] = False,
    head: Annotated[int, typer.Option(help="The head that the picture shows.", min=0)] = 0,
    layer: Annotated[int, typer.Option(help="The layer that the picture shows, of a file with several.", min=0)] = 0,
    sparsity: Annotated[
        float | None, typer.Option(help="Of random and window_border; of a file: picked from the ranking it carries.")
    ] = None,
    set_: Annotated[list[str] | None, options.other_settings("An argument of the builder, e.g. stride=8.")] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of words and a picture.")] = False,
    out: options.PatternFile[Path | None] = None,
    figure: Annotated[Path | None, typer.Option(help="Draw every head to this .png, .svg or .pdf file.")] = None,
) -> None:
    """Build a pattern, print what it keeps and how it looks.

    Examples:

    sparsebert pattern star --length 128 --heads 12 --json

    sparsebert pattern longformer --set reading=text --seed 3 --figure longformer.svg

    sparsebert pattern window_border --length 512 --sparsity 0.9

    sparsebert pattern learned.safetensors --length 512 --out longer.safetensors
    """
    if name == "list":
        from sparsebert.patterns.rules import names

        typer.echo("\n".join(sorted(names())))
        return
    _check_paths(out, figure)
    built = _build(name, length, heads, {"seed": seed, "sparsity": sparsity}, set_)
    built = built.without_diagonal() if without_diagonal else built
    # First: refuses a head that is not there.
    said = _as_json(built, name) if json else _as_words(built, name, head, layer)
    if out is not None:
        built.save(out)
    if figure is not None:
        _draw(built, name, figure)
    typer.echo(said)


def _check_paths(out: Path | None, figure: Path | None) -> None:
    options.require_file(out)
    options.require_file(figure, "--figure")
    if figure is not None and figure.suffix not in (".png", ".svg", ".pdf"):
        raise FileError(f"cannot draw to {figure}; its name must end in .png, .svg or .pdf")


def _build(
    name: str, length: int | None, heads: int | None, given: dict[str, float | None], pairs: list[str] | None
) -> "Pattern":
    from sparsebert.patterns import find

    if Path(name).is_file():
        if given["seed"] is not None or heads is not None or pairs:
            raise PatternError(f"{name} is a saved pattern; --heads, --seed and --set only apply to a builder's name")
        found = find(name)
        found = found if length is None else found.at(length)
        return found if given["sparsity"] is None else found.at_sparsity(given["sparsity"])
    flags = options.options_of(pattern)
    if given["sparsity"] is None:
        del flags["sparsity"]  # an argument of few builders, by either way
    arguments = options.read_settings(pairs, options.builder_arguments(name), flags)
    arguments |= {key: value for key, value in given.items() if value is not None}
    return find(name, length, 1 if heads is None else heads, **arguments)


def _as_json(pattern: "Pattern", name: str) -> str:
    from sparsebert.files import canonical_json

    fields = ("length", "layers", "heads", "kept", "keys_per_query", "sparsity", "anchor", "digest", "rule")
    ranking = {"ranked": pattern.ranking is not None}
    return canonical_json({"name": name, **{field: getattr(pattern, field) for field in fields}, **ranking})


def _as_words(pattern: "Pattern", name: str, head: int, layer: int) -> str:
    layers = "" if pattern.layers == 1 else f"layers {pattern.layers}, "
    kept = f"{pattern.kept:,} of {pattern.layers * pattern.heads * pattern.length**2:,}"
    words = (
        f"{name}: length {pattern.length}, {layers}heads {pattern.heads}, kept {kept}, "
        f"sparsity {pattern.sparsity:.3%}, {pattern.keys_per_query:.1f} keys a query"
    )
    ranked = "" if pattern.ranking is None else "\ncarries a ranking: --sparsity picks another pattern from it"
    return f"{words}{ranked}\n{pattern.picture(head, min(_PICTURE_WIDTH, pattern.length), layer)}"


def _draw(pattern: "Pattern", name: str, path: Path) -> None:
    from sparsebert.patterns.figures import head_grid, save_figure

    save_figure(head_grid(pattern, f"{name}: length {pattern.length}, {pattern.sparsity:.1%} sparse"), path)
