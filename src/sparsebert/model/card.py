"""What a model card says of attention: how sparse, how near to the dense model, how fast, and how it is opened.

It stands between two comments. The first names the pattern and the weights: figures of others are not kept.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparsebert.model.fingerprint import short_fingerprint
from sparsebert.model.plan import pattern_of
from sparsebert.model.sentence_folder import MODULES
from sparsebert.patterns import Pattern

CARD = "README.md"
_NOT_MEASURED = "not measured yet; `sparsebert compare` measures it and, asked for the card, writes it here"
_PART = re.compile(r"<!-- sparsebert: (.*?) -->\n.*?<!-- end of sparsebert -->\n\n?", re.DOTALL)
_FRONT = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_SECTION = re.compile(r"^## ", re.MULTILINE)


@dataclass(frozen=True)
class Measured:
    """What is known of a sparse model, in words."""

    fidelity: str = _NOT_MEASURED
    speed: str = _NOT_MEASURED
    table: str = ""  # more of it, in Markdown


def attention_part(encoder: Any, opened: str, measured: Measured | None = None) -> str:
    """encoder: a sparse one, of transformers. opened: the lines that open its folder."""
    pattern, known = pattern_of(encoder), measured or Measured()
    assert pattern is not None
    layers = "one pattern for all layers" if pattern.layers == 1 else f"each of {pattern.layers} layers has its own"
    return f"""<!-- sparsebert: {_names(encoder, pattern)} -->
## Sparse attention
- Sparsity of attention: {100 * pattern.sparsity:.2f} % at {pattern.length} tokens; {layers}
- Keys a query: {pattern.keys_per_query:.1f} of {pattern.length}
- Fidelity: {known.fidelity}
- Speed: {known.speed}
{known.table}
The pattern lies beside the weights. Import the package `sparsebert` first; without it the model is refused:
```python
{opened}
```
`sparsebert encode` makes embeddings with this folder as its model, and prints how many tokens a second it reads.
<!-- end of sparsebert -->
"""


def opening(folder: Path, name: str = "SentenceTransformer") -> tuple[str, str]:
    """The library that a model folder is made for, and the lines that open it there.

    name: of its class in sentence-transformers, if it is one of theirs.
    """
    if (folder / MODULES).is_file():
        lines = f'import sparsebert\nfrom sentence_transformers import {name}\n\nmodel = {name}("THIS_FOLDER")'
        return "sentence-transformers", lines
    lines = 'import sparsebert\nfrom transformers import AutoModel\n\nmodel = AutoModel.from_pretrained("THIS_FOLDER")'
    return "transformers", lines


def with_part(card: str, part: str) -> str:
    """The card with this part in place of the one that it has, or before its first section."""
    card = _PART.sub("", card)
    if not part:
        return card
    front = _FRONT.match(card)
    section = _SECTION.search(card, front.end() if front else 0)
    place = section.start() if section else len(card)
    before, after = card[:place].rstrip(), card[place:]
    return "\n".join([*([before, ""] if before else []), part, *([after] if after else [])])


def described_again(card: str, encoder: Any, opened: str) -> str:
    """A card as it should be now: its part is kept if it is of this pattern and these weights, else written anew
    without figures; a dense model's card has none."""
    pattern, found = pattern_of(encoder), _PART.search(card)
    if pattern is None:
        return with_part(card, "")
    if found is not None and found[1] == _names(encoder, pattern):
        return card
    return with_part(card, attention_part(encoder, opened))


def _names(encoder: Any, pattern: Pattern) -> str:
    return f"pattern {pattern.digest[:16]}, weights {short_fingerprint(encoder.base_model)[:16]}"
