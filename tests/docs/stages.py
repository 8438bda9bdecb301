"""What the code of a page takes for granted: files in the current folder, and names that a reader has at hand."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from transformers import TrainingArguments

from sparsebert import load_model
from sparsebert.patterns import star
from sparsebert.tasks.builtin import write_builtin
from sparsebert.text import prepare_corpus
from tests.report.synthetic import World, write_study

TINY = {"num_hidden_layers": 1, "hidden_size": 24, "num_attention_heads": 12, "intermediate_size": 24}
TEXT = "On rivers\n" + "Rivers run to the sea. They carry sand, and they carry boats. Some of them are long.\n" * 4


def a_text() -> dict[str, Any]:
    Path("text.txt").write_text("\n".join(f"{TEXT}Number {count} ends here.\n" for count in range(400)))
    return {}


def a_corpus() -> dict[str, Any]:
    a_text()
    prepare_corpus(["text.txt"], Path("corpus"), model="minilm", workers=1)
    return {}


def the_tasks() -> dict[str, Any]:
    write_builtin(Path("DIR"))
    return {}


def a_study() -> dict[str, Any]:
    write_study(World(tasks=("rte",)), Path("study"))
    return {}


def a_model_and_batches() -> dict[str, Any]:
    """Enough batches for a gate to be led to its target, on a model of no size; a corpus, and a pattern as if found."""
    a_corpus()
    Path("found").mkdir()
    star(128).save("found/pattern.safetensors")
    rows = [{"input_ids": torch.arange(128) % 50, "labels": torch.tensor(count % 2)} for count in range(4)]
    batch = {"input_ids": rows[0]["input_ids"][None], "labels": rows[0]["labels"][None]}
    arguments = TrainingArguments(
        "trainer", max_steps=6, report_to="none", disable_tqdm=True, use_cpu=True, dataloader_pin_memory=False
    )
    return {
        "model": _classifier(),
        "dense_model": _classifier(),
        "batches": [batch] * 12,
        "arguments": arguments,
        "rows": rows,
    }


def a_model_and_a_batch() -> dict[str, Any]:
    a_corpus()

    def batch(step: int, micro: int, micro_batches: int) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
        words = torch.arange(16)[None] + step
        return {"input_ids": words, "attention_mask": torch.ones_like(words)}, torch.tensor([micro % 2])

    return {"model": _classifier(), "batch": batch}


def _classifier() -> Any:
    return load_model("scratch:tiny", "sequence_classification", vocab_size=50, **TINY)


STAGES: dict[str, Callable[[], dict[str, Any]]] = {
    "README.md": a_text,
    "docs/batches.md": a_corpus,
    "docs/embeddings.md": a_text,
    "docs/exporting.md": dict,
    "docs/extending.md": a_study,
    "docs/installing.md": dict,
    "docs/families.md": dict,
    "docs/learning.md": a_model_and_batches,
    "docs/results/packed-rows.md": dict,
    "docs/tasks.md": the_tasks,
    "docs/training.md": a_model_and_a_batch,
}
