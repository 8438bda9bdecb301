"""Are the batches what BERT's are, and what does making one cost?

    python benchmarks/batches.py CORPUS [--batches 10000] [--length 128] [--rows 32]

Prints the CPU time of one batch, then shares over many batches: corrupted tokens among the candidates (tokens that are
not special ones), what they became, and random next sentences; and counts of what must never happen.
"""

import argparse
import statistics
import time

import torch

from sparsebert.batches import PretrainingBatches
from sparsebert.text import TokenStore


def cost(batches: PretrainingBatches, steps: int = 50, repeats: int = 7) -> float:
    """Median CPU milliseconds of one batch, the shards being checked already."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        for step in range(steps):
            batches.batch(step)
        times.append((time.process_time() - start) / steps * 1000)
    return statistics.median(times)


def training_step_cost(batches: PretrainingBatches, repeats: int = 3) -> float:
    """Median CPU milliseconds of forward, backward and AdamW of a BERT of MiniLM's size on one batch, one thread."""
    from transformers import BertConfig, BertForPreTraining

    config = BertConfig(num_hidden_layers=6, hidden_size=384, intermediate_size=1536, num_attention_heads=12)
    model = BertForPreTraining(config)
    optimiser = torch.optim.AdamW(model.parameters())
    batch, times = batches.batch(0), []
    present = torch.arange(batch.input_ids.shape[1]) < batch.lengths[:, None]
    for _ in range(repeats + 1):
        start = time.process_time()
        hidden, pooled = model.bert(batch.input_ids, present.long(), batch.token_type_ids)[:2]
        logits = model.cls.predictions(hidden.flatten(0, 1)[batch.predicted_positions])
        loss = torch.nn.functional.cross_entropy(logits, batch.predicted_ids)
        loss = loss + torch.nn.functional.cross_entropy(model.cls.seq_relationship(pooled), batch.next_sentence)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        times.append((time.process_time() - start) * 1000)
    return statistics.median(times[1:])


def shares(store: TokenStore, batches: PretrainingBatches, steps: int, rows: int) -> dict[str, float]:
    special = torch.zeros(store.vocab_size, dtype=torch.bool)
    special[list(store.special.all())] = True
    total = dict.fromkeys(
        ("candidates", "predicted", "masked", "kept", "random", "rows", "padding", "special_predicted", "wrong_label"),
        0,
    )
    for step in range(steps):
        batch = batches.batch(step)
        flat = batch.input_ids.flatten()
        seen = flat[batch.predicted_positions]
        original = flat.clone()
        original[batch.predicted_positions] = batch.predicted_ids
        pairs = [batches.pair(step, row) for row in range(rows)]
        total["candidates"] += int((~special[original]).sum())
        total["predicted"] += len(batch.predicted_ids)
        total["masked"] += int((seen == store.special.mask).sum())
        total["kept"] += int((seen == batch.predicted_ids).sum())
        total["random"] += int(batch.next_sentence.sum())
        total["rows"] += rows
        total["padding"] += flat.numel() - int(batch.lengths.sum())
        total["special_predicted"] += int(special[batch.predicted_ids].sum())
        total["wrong_label"] += sum(pair.is_random != (pair.documents[0] != pair.documents[1]) for pair in pairs)
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", nargs="?")
    parser.add_argument("--batches", type=int, default=10_000)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--rows", type=int, default=32)
    parser.add_argument("--whole-words", action="store_true")
    settings = parser.parse_args()
    torch.set_num_threads(1)
    store = TokenStore.open(settings.corpus) if settings.corpus else _built_in()
    store.verify()
    batches = PretrainingBatches(
        store, batch_size=settings.rows, length=settings.length, seed=0, whole_words=settings.whole_words
    )
    batch, step = cost(batches), training_step_cost(batches)
    print(f"CPU time of making a batch of {settings.rows} x {settings.length}: {batch:.1f} ms")
    print(f"CPU time of a MiniLM training step on it: {step:,.0f} ms")
    print(f"making a batch costs {100 * batch / step:.2f} % of a step", flush=True)
    total = shares(store, batches, settings.batches, settings.rows)
    predicted = total["predicted"]
    print(f"{settings.batches:,} batches, {total['rows']:,} rows, {total['candidates']:,} candidate tokens")
    print(f"corrupted: {100 * predicted / total['candidates']:.2f} % of the candidates")
    random = predicted - total["masked"] - total["kept"]
    print(
        f"of these [MASK] {100 * total['masked'] / predicted:.2f} %, another token {100 * random / predicted:.2f} %, ",
        end="",
    )
    print(f"unchanged {100 * total['kept'] / predicted:.2f} %")
    print(f"random next sentence: {100 * total['random'] / total['rows']:.2f} % of the rows")
    print(f"padding: {100 * total['padding'] / (total['rows'] * settings.length):.1f} % of all positions")
    print(f"special tokens to predict: {total['special_predicted']}")
    print(f"rows whose label contradicts their documents: {total['wrong_label']}")


def _built_in() -> TokenStore:
    import tempfile
    from pathlib import Path

    from sparsebert.text import prepare_corpus

    return prepare_corpus(["builtin:python-docs"], Path(tempfile.mkdtemp()) / "corpus", model="minilm")


if __name__ == "__main__":
    main()
