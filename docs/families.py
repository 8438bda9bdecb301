"""Writes the tables of docs/families.md: each family, small, with random weights, made sparse, kept and trained.

python docs/families.py           rewrite them
python docs/families.py --check   exit 1 where one is out of date
"""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import family_checks as checks
from readme import with_parts
from transformers.utils import logging

from sparsebert.model.saving import no_bar

PAGE = Path(__file__).resolve().parent / "families.md"
Columns = dict[str, Callable[[str, Path], str]]
KEPT: Columns = {
    "patterns by layer": checks.layers,
    "heads": checks.heads,
    "new process": checks.new_process,
    "transformers alone": checks.without_us,
    "shards, device map": checks.placed,
}
TRAINED: Columns = {
    "resumed": checks.resumed,
    "gradient checkpointing": checks.checkpointed,
    "bf16": checks.in_bfloat16,
    "LoRA": checks.with_lora,
}


def table(columns: Columns) -> str:
    heading = f"| family | {' | '.join(columns)} |\n|{'---|' * (1 + len(columns))}\n"
    return heading + "\n".join(row(family, columns) for family in checks.FAMILIES)


def row(family: str, columns: Columns) -> str:
    cells = [family]
    for check in columns.values():
        with tempfile.TemporaryDirectory() as folder, no_bar():
            cells.append(checks.cell(check, family, Path(folder)))
    return f"| {' | '.join(cells)} |"


def main() -> int:
    logging.set_verbosity_error()
    text = PAGE.read_text(encoding="utf-8")
    current = with_parts(text, {"families": lambda: table(KEPT), "training": lambda: table(TRAINED)})
    if "--check" not in sys.argv:
        PAGE.write_text(current, encoding="utf-8")
    return int("--check" in sys.argv and current != text)


if __name__ == "__main__":
    sys.exit(main())
