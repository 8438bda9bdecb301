"""Writes the table of docs/families.md: each family, small, with random weights, made sparse, saved and loaded again.

python docs/families.py           rewrite it
python docs/families.py --check   exit 1 where it is out of date
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
import transformers
from readme import with_parts

from sparsebert import Pattern, load_model, patterns, sparsify
from sparsebert.errors import ModelError
from sparsebert.model.families import HEADS, class_for
from sparsebert.model.saving import no_bar

PAGE = Path(__file__).resolve().parent / "families.md"
SIZES: dict[str, Any] = {
    "vocab_size": 60,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "pad_token_id": 0,
}
SHORT = {"embedding_size": 16}
FAMILIES: dict[str, dict[str, Any]] = {
    "Bert": SIZES,
    "Roberta": SIZES,
    "XLMRoberta": SIZES,
    "Camembert": SIZES,
    "Electra": SIZES | SHORT,
    "Albert": SIZES | SHORT,
    "NomicBert": SIZES,
    "ModernBert": SIZES | {f"{name}_token_id": 0 for name in ("cls", "sep", "bos", "eos")},
    "DistilBert": {"vocab_size": 60, "dim": 32, "hidden_dim": 48, "n_layers": 2, "n_heads": 4},
}
SHARED = patterns.star(16, 4)
OWN = patterns.per_layer([SHARED, patterns.window(16, radius=2)])
TOKENS = torch.arange(5, 21)[None]


def table() -> str:
    heading = "| family | after `sparsify` | patterns by layer | saved and loaded | heads of `load_model` |\n"
    heading += "|---|---|---|---|---|\n"
    return heading + "\n".join(row(family) for family in FAMILIES)


def row(family: str) -> str:
    torch.manual_seed(0)
    config = getattr(transformers, f"{family}Config")(**FAMILIES[family])
    model = sparsify(getattr(transformers, f"{family}Model")(config).eval(), SHARED)
    layers = "yes" if takes(model, OWN) else "no: its layers share one module"
    with tempfile.TemporaryDirectory() as folder, no_bar():
        model.save_pretrained(folder)
        again = load_model(folder).eval()
    same = again.pattern == model.pattern and torch.equal(states(again), states(model))
    missing = ", ".join(head for head in HEADS if not has(head, model.config))
    heads = f"all but {missing}" if missing else "all"
    return (
        f"| {family} | `{type(model).__name__}` | {layers} | {'the same bits' if same else 'NOT the same'} | {heads} |"
    )


def takes(model: Any, pattern: Pattern) -> bool:
    try:
        model.set_pattern(pattern)
    except ModelError:
        return False
    return True


def has(head: str, config: Any) -> bool:
    try:
        class_for(head, config)
    except ModelError:
        return False
    return True


@torch.no_grad()
def states(model: Any) -> torch.Tensor:
    found: torch.Tensor = model(input_ids=TOKENS).last_hidden_state
    return found


def main() -> int:
    text = PAGE.read_text(encoding="utf-8")
    current = with_parts(text, {"families": table})
    if "--check" not in sys.argv:
        PAGE.write_text(current, encoding="utf-8")
    return int("--check" in sys.argv and current != text)


if __name__ == "__main__":
    sys.exit(main())
