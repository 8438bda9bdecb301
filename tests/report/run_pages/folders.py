"""Folders as runs leave them, without the runs: small, and every figure known."""

import json
from pathlib import Path

import torch

from sparsebert import gates
from sparsebert.files import write_json
from sparsebert.patterns import Pattern
from sparsebert.training.comparison import LengthFigures, ModelComparison

LENGTH, LAYERS, HEADS = 24, 3, 4
COMPARISON = ModelComparison(
    sparsity=0.8,
    rows=10,
    layer_errors=[0.01, 0.02, 0.0456],
    hidden_error=0.0252,
    embedding_cosine=0.9713,
    lengths=[LengthFigures(1, 32, 4, 0.02, 0.98), LengthFigures(33, 64, 6, 0.03, 0.9655)],
)


def write_run(folder: Path, model: str, **result: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    settings = {"model": model, "length": LENGTH, "batch_size": 4, "steps": 5, "task": None}
    about = {"settings": settings, "fit": {"seed": 7}, "environment": {"versions": {"sparsebert": "1.2.3"}}}
    write_json(folder / "run.json", about)
    write_json(folder / "result.json", {"metric": "embedding_distance", "score": 0.0287, **result})
    lines = [{"step": step, "loss": 1.0, "sparsity": 0.1 * step, "hidden_error": 0.1, "embedding_distance": 0.2}
             for step in range(1, 6)]  # fmt: skip
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def write_search(folder: Path, model: str = "minilm", *, compared: bool = True) -> Pattern:
    """A pattern a layer, learned by distillation or, where it is not compared, with MLM."""
    at = [{"sparsity": 0.5, "hidden_error": 0.011, "embedding_distance": 0.007}]
    write_run(folder, model, **({"at_sparsities": at} if compared else {"metric": "mlm_loss"}))
    gate = gates.Structured(LENGTH, HEADS, layers=LAYERS, sparsity=0.8)
    with torch.no_grad():
        for group in gate.parameters():
            group.copy_(torch.randn(group.shape, generator=torch.Generator().manual_seed(0)))
    gates.save(gate, folder / "gate.safetensors")
    pattern = gate.freeze(0.8)
    pattern.save(folder / "pattern.safetensors")
    if compared:
        write_json(folder / "comparison.json", COMPARISON.as_json())
    return pattern


def write_importance(folder: Path, model: str = "minilm") -> gates.Soft:
    write_run(folder, model, metrics={"mlm_loss": 4.321})
    gate = gates.Soft(LENGTH, HEADS)
    with torch.no_grad():
        gate.alpha.copy_(torch.randn(gate.alpha.shape, generator=torch.Generator().manual_seed(0)))
    gates.save(gate, folder / "gate.safetensors")
    return gate
