"""The gallery: a picture of every builder of patterns, with its call, what it says of itself, and how sparse it is."""

import inspect
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sparsebert.patterns import Pattern
from sparsebert.patterns.figures import blank_figure, draw_head, save_figure
from sparsebert.patterns.rules import BUILDERS

LENGTH = 64
LENGTHS = (128, 512, 4096)
# What a builder must be told beside a length, or is told so that its picture shows something.
ARGUMENTS: dict[str, dict[str, Any]] = {
    "window": {"radius": 4},
    "from_offsets": {"offsets": [[-16, -2, -1, 1, 2, 16]], "border": True},
}

HEAD = f"""# Gallery of patterns
Every builder of `sparsebert.patterns` at {LENGTH} tokens: queries down, keys across, kept entries dark. All of them can
be combined with `|` and `&`, rebuilt at another length with `.at(n)`, and joined by
[one of your own](extending.md#a-pattern).

"""


def gallery() -> tuple[str, dict[str, bytes]]:
    """The page, and its pictures by their names."""
    cards, pictures = [], {}
    for name, build in BUILDERS.items():
        arguments = ARGUMENTS.get(name, {})
        pictures[f"{name}.svg"] = _picture(build(LENGTH, **arguments))
        told = inspect.cleandoc(build.__doc__ or "").split("\n\n")[0].replace("\n", " ")
        sparsities = " · ".join(f"{build(n, **arguments).sparsity:.1%} at {n:,}" for n in LENGTHS)
        call = f"patterns.{name}({', '.join(_call(arguments))})"
        cards.append(
            f'<div markdown="1">\n## {name}\n\n![{name} at {LENGTH} tokens](gallery/{name}.svg)\n\n'
            f"{told}\n\n`{call}`\n\nLeft out: {sparsities}.\n</div>\n"
        )
    return HEAD + '<div class="gallery" markdown="1">\n' + "\n".join(cards) + "</div>\n", pictures


def _call(arguments: dict[str, Any]) -> Iterator[str]:
    yield f"length={LENGTH}"
    yield from (f"{name}={value}" for name, value in arguments.items())


def _picture(pattern: Pattern) -> bytes:
    figure = blank_figure(3, 3)
    draw_head(figure.add_subplot(), pattern, 0, " ")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "picture.svg"
        save_figure(figure, path)
        return path.read_bytes()
