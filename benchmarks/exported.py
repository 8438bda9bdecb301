"""How fast is an exported model in ONNX Runtime, and what does its pattern buy there?

    python benchmarks/exported.py [--pattern FILE] [--lengths 128 512 1024 2048]

minilm with its positions extended, float32, one row of n tokens without padding: dense and under the pattern (15 keys a
query unless a file is given, rebuilt at the longest length), each in this package and as an ONNX file in ONNX Runtime.
They alternate in one process on one thread; medians of CPU time. Needs the extra `onnx`.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import onnxruntime
import torch

from sparsebert import Pattern, export, extend_positions, load_model, patterns

ROUNDS = 7


def minilm(pattern: Pattern | None, length: int) -> Any:
    model = load_model("minilm")
    if length > model.config.max_position_embeddings:
        extend_positions(model, length)
    return model.set_pattern(pattern).eval()


def in_this_package(model: Any) -> Callable[[torch.Tensor], object]:
    return lambda ids: model(input_ids=ids, attention_mask=torch.ones_like(ids))


def in_onnx_runtime(model: Any, folder: str, length: int) -> Callable[[torch.Tensor], object]:
    made = export(model, Path(folder) / "model.onnx", length=length)
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(made.path), settings, providers=["CPUExecutionProvider"])
    zeros = {"token_type_ids": torch.zeros_like} if "token_type_ids" in made.inputs else {}
    fed = {"input_ids": torch.clone, "attention_mask": torch.ones_like, **zeros}
    return lambda ids: session.run(None, {name: make(ids).numpy() for name, make in fed.items()})


def milliseconds(runs: dict[str, Callable[[torch.Tensor], object]], length: int) -> dict[str, float]:
    ids = torch.arange(length)[None] % 1000 + 1000
    times: dict[str, list[float]] = {name: [] for name in runs}
    with torch.inference_mode():
        for turn in range(ROUNDS + 1):
            for name, run in runs.items():
                start = time.process_time()
                run(ids)
                if turn:  # the first turn warms caches
                    times[name].append(1000 * (time.process_time() - start))
    return {name: median(found) for name, found in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pattern", type=Path)
    parser.add_argument("--lengths", type=int, nargs="+", default=[128, 512, 1024, 2048])
    given = parser.parse_args()
    torch.set_num_threads(1)
    longest = max(given.lengths)
    pattern = Pattern.load(given.pattern).at(longest) if given.pattern else patterns.window_border(longest, radius=6)
    print("| n | dense, ms | sparse, ms | | ONNX Runtime dense, ms | ONNX Runtime sparse, ms | |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        dense, sparse = minilm(None, longest), minilm(pattern, longest)
        runs = {
            "dense": in_this_package(dense),
            "sparse": in_this_package(sparse),
            "onnx dense": in_onnx_runtime(dense, one, longest),
            "onnx sparse": in_onnx_runtime(sparse, other, longest),
        }
        for length in given.lengths:
            found = milliseconds(runs, length)
            ours, theirs = found["dense"] / found["sparse"], found["onnx dense"] / found["onnx sparse"]
            cells = [f"{found['dense']:.0f}", f"{found['sparse']:.0f}", f"{ours:.2f}x"]
            cells += [f"{found['onnx dense']:.0f}", f"{found['onnx sparse']:.0f}", f"{theirs:.2f}x"]
            print(f"| {length:,} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
