"""What does padding cost, and what do packed rows save? A batch of mixed real lengths, padded and packed, by turns.

    python benchmarks/packed_rows.py --data DATA             minilm, one thread, dense and sparse, three precisions
    python benchmarks/packed_rows.py --data DATA --threads 2 --precisions int8

DATA holds sts/STS15.tsv and text/wikipedia.txt.gz. A batch is of 24 sentences and 8 paragraphs, cut at 128, 256 or 512
tokens, in the order in which they were drawn: as a server gets them, not sorted. Both ways run the same encoder on the
same tokens: "padded" hands over a rectangle, "packed" one long row without padding. CPU time, medians by turns in one
process; the largest difference between the states of the two is told beside it.
"""

import argparse
import gzip
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import AutoTokenizer

from sparsebert import load_model, patterns
from sparsebert.model.packing import packed_inputs
from sparsebert.model.precision import PRECISIONS
from sparsebert.model.sources import model_folder

SENTENCES, PARAGRAPHS, LEAST_CHARACTERS = 24, 8, 600
PATTERNS = {"dense": None, "90 % sparse": patterns.window_border(128, sparsity=0.9)}


def texts(data: Path, batches: int) -> list[list[str]]:
    """Batches of sentences and paragraphs, mixed."""
    draw = np.random.default_rng(0)
    lines = (data / "sts/STS15.tsv").read_text(encoding="utf8").rstrip("\n").split("\n")[1:]
    sentences = sorted({cell for line in lines for cell in line.split("\t")[2:4]})
    with gzip.open(data / "text/wikipedia.txt.gz", "rt", encoding="utf8") as file:
        paragraphs = [line for line in file.read(4_000_000).split("\n") if len(line) > LEAST_CHARACTERS]
    made = []
    for _ in range(batches):
        batch = [*draw.choice(sentences, SENTENCES, False), *draw.choice(paragraphs, PARAGRAPHS, False)]
        made.append([str(batch[place]) for place in draw.permutation(len(batch))])
    return made


def padded(model: Any, rows: list[Tensor]) -> Callable[[], Tensor]:
    lengths = torch.tensor([len(row) for row in rows])
    ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
    real = torch.arange(ids.shape[1]) < lengths[:, None]
    return lambda: model(input_ids=ids, attention_mask=real.long())[0][real]


def packed(model: Any, rows: list[Tensor]) -> Callable[[], Tensor]:
    ids, lengths = torch.cat(rows), torch.tensor([len(row) for row in rows])
    return lambda: model(**packed_inputs(model, ids, lengths))[0][0]


@torch.inference_mode()
def measure(model: Any, batches: list[list[Tensor]], rounds: int) -> tuple[float, float, float]:
    """Seconds of all batches padded and packed, and the largest difference between their states."""
    times: dict[str, list[float]] = {"padded": [], "packed": []}
    difference = 0.0
    for turn in range(rounds + 1):
        spent = {"padded": 0.0, "packed": 0.0}
        for rows in batches:
            found = []
            for name, way in (("padded", padded(model, rows)), ("packed", packed(model, rows))):
                start = time.process_time()
                found.append(way())
                spent[name] += time.process_time() - start
            difference = max(difference, float((found[0] - found[1]).abs().max()))
        for name in times:
            if turn:  # the first turn builds indices and warms the caches
                times[name].append(spent[name])
    return median(times["padded"]), median(times["packed"]), difference


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", default="minilm")
    parser.add_argument("--cuts", type=int, nargs="+", default=[128, 256, 512], help="tokens where texts are cut")
    parser.add_argument("--precisions", nargs="+", choices=list(PRECISIONS), default=["fp32", "bf16", "int8"])
    parser.add_argument("--batches", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    tokenizer: Any = AutoTokenizer.from_pretrained(str(model_folder(asked.model)))
    mixed = texts(asked.data, asked.batches)
    print("| cut at | padding | attention | precision | padded, tokens/s | packed, tokens/s | ratio | difference |")
    print("|---|---|---|---|---|---|---|---|")
    for cut in asked.cuts:
        batches = [
            [torch.tensor(ids) for ids in tokenizer(batch, truncation=True, max_length=cut)["input_ids"]]
            for batch in mixed
        ]
        real = sum(len(row) for rows in batches for row in rows)
        share = 1 - real / sum(len(rows) * max(map(len, rows)) for rows in batches)
        for name, pattern in PATTERNS.items():
            for precision in asked.precisions:
                model = PRECISIONS[precision](load_model(asked.model, "none").eval().set_pattern(pattern))
                slow, fast, difference = measure(model, batches, asked.rounds)
                print(
                    f"| {cut} | {share:.0%} | {name} | {precision} | {real / slow:,.0f} | {real / fast:,.0f} | "
                    f"{slow / fast:.2f}x | {difference:.1g} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
