"""Are dev scores those of transformers' own Trainer, and is fine-tuning as fast? Alternating runs, same settings.

Three ways, each run in a process of its own: this package; the Trainer with its defaults (padding to the longest of a
batch, rows in random order), for its time and so with the first seed only; the Trainer with length grouping too, which
is how this package batches. Resumes: finished runs are read from --out.

    python benchmarks/finetune.py --data DIR --out DIR --tasks mrpc rte --seeds 3
"""

import argparse
import dataclasses
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
WAYS = ("ours", "trainer", "trainer, grouped")


def ours(config: Any, out: Path) -> dict[str, float]:
    from sparsebert.training import fit

    settings = {"checkpoint_every": 10**6, "epsilon": 1e-8}
    clock = time.process_time()
    prepared = dataclasses.replace(config, fit=settings).prepare(out)
    ready = time.process_time()
    result = fit(prepared.objective, prepared.config, out, settings=prepared.settings)
    done = time.process_time()
    return {
        **result.fields["metrics"],
        "score": result.fields["score"],
        "prepare": ready - clock,
        "train": done - ready,
    }


def starting_point(model: str, train: list[Any], num_labels: int) -> tuple[Any, Callable[[], Any]]:
    """transformers' own tokenizer and classifier: of a folder, or new ones with a vocabulary of the training rows."""
    from transformers import BertForSequenceClassification, BertTokenizer, PreTrainedTokenizerFast

    from sparsebert.model.sources import model_folder, scratch_config
    from sparsebert.tasks.loading import tokenizer_for

    if not model.startswith("scratch:"):
        folder = model_folder(model)
        load = partial(BertForSequenceClassification.from_pretrained, folder, num_labels=num_labels)
        return BertTokenizer.from_pretrained(folder), load
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer_for(model, train),
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
        **{f"{name.lower()}_token": f"[{name}]" for name in ("PAD", "UNK", "CLS", "SEP", "MASK")},
    )
    config = scratch_config(model, len(tokenizer))
    config.num_labels = num_labels
    return tokenizer, partial(BertForSequenceClassification, config)


def theirs(config: Any, out: Path, *, grouped: bool) -> dict[str, float]:
    """The same rows, tokens, batches of 32, AdamW, schedule and clipping, by the Trainer."""
    import numpy as np
    from transformers import DataCollatorWithPadding, Trainer, set_seed
    from transformers import TrainingArguments as Arguments

    from sparsebert.tasks.loading import data_folder, load_rows
    from sparsebert.tasks.objective import main_score
    from sparsebert.tasks.scoring.metrics import scores
    from sparsebert.tasks.table import find_task

    task, clock = find_task(config.task), time.process_time()
    train, dev = load_rows(config, task, data_folder(config.data, out))
    tokenizer, new_model = starting_point(config.model, train, task.num_labels)

    def encoded(rows: list[Any]) -> list[dict[str, Any]]:
        texts = [row.first for row in rows], [row.second for row in rows] if rows[0].second is not None else None
        held = tokenizer(*texts, truncation=True, max_length=config.length)
        return [{name: held[name][k] for name in held} | {"labels": rows[k].label} for k in range(len(rows))]

    set_seed(config.seed)
    model = new_model()
    arguments = Arguments(
        output_dir=str(out / "trainer"),
        per_device_train_batch_size=config.batch_size,
        per_device_eval_batch_size=64,
        num_train_epochs=config.num_epochs,
        learning_rate=config.learning_rate,
        weight_decay=config.weight_decay,
        warmup_steps=config.warmup,
        seed=config.seed,
        train_sampling_strategy="group_by_length" if grouped else "random",
        save_strategy="no",
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
    )
    rows = encoded(train)
    trainer = Trainer(model, arguments, DataCollatorWithPadding(tokenizer), train_dataset=rows)
    ready = time.process_time()
    trainer.train()
    figures = {}
    for section, held in dev.items():
        found = trainer.predict(encoded(held))
        logits, labels = np.asarray(found.predictions), np.asarray(found.label_ids)
        guesses = logits[:, 0] if task.kind == "regression" else logits.argmax(axis=1)
        for name, value in scores(task.metrics, guesses, labels).items():
            figures[f"{name}_{section}" if section else name] = value
    done = time.process_time()
    return {**figures, "score": main_score(task, figures), "prepare": ready - clock, "train": done - ready}


def one(arguments: argparse.Namespace) -> None:
    """One run; its figures as JSON beside its folder."""
    import torch

    from sparsebert.runs import FinetuneRun

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    config = FinetuneRun(
        arguments.one,
        arguments.data,
        arguments.model,
        learning_rate=arguments.learning_rate,
        num_epochs=arguments.epochs,
        max_rows=arguments.max_rows,
        seed=arguments.seed,
    ).resolved()
    out = Path(arguments.out)
    out.mkdir(parents=True, exist_ok=True)
    way = arguments.way
    figures = ours(config, out) if way == "ours" else theirs(config, out, grouped=way != "trainer")
    (out / "figures.json").write_text(json.dumps(figures))


def measured(task: str, way: str, seed: int, arguments: argparse.Namespace) -> dict[str, float]:
    out = Path(arguments.out) / task / f"{way.replace(', ', '-')}-{seed}"
    if not (out / "figures.json").is_file():
        line = [sys.executable, __file__, "--one", task, "--way", way, "--seed", seed, "--out", out]
        line += ["--data", arguments.data, "--model", arguments.model, "--learning-rate", arguments.learning_rate]
        line += ["--epochs", arguments.epochs] if arguments.epochs else []
        line += ["--max-rows", arguments.max_rows] if arguments.max_rows else []
        subprocess.run([str(word) for word in line], check=True)
    figures: dict[str, float] = json.loads((out / "figures.json").read_text())
    return figures


def compare(arguments: argparse.Namespace) -> None:
    print("| task | way | dev scores by seed | mean | CPU seconds of training, by seed | ratio to ours |")
    print("|---|---|---|---|---|---|")
    for task in arguments.tasks:
        runs: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
        for seed in range(arguments.seeds):
            for way in WAYS if seed == 0 else ("ours", "trainer, grouped"):  # by turns: a busy moment hits all alike
                runs[way].append(measured(task, way, seed, arguments))
        for way, found in runs.items():
            scores = [run["score"] for run in found]
            pairs = zip(found, runs["ours"], strict=False)  # the same seed
            ratio = statistics.median(run["train"] / our["train"] for run, our in pairs)
            each = " / ".join(f"{score:.2f}" for score in scores)
            seconds = " / ".join(f"{run['train']:.0f}" for run in found)
            print(f"| {task} | {way} | {each} | {statistics.fmean(scores):.2f} | {seconds} | {ratio:.2f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="builtin:tasks")
    parser.add_argument("--model", default="minilm")
    parser.add_argument("--out")
    parser.add_argument("--tasks", nargs="+", default=["rte"])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--learning-rate", type=float, default=5e-5)
    parser.add_argument("--epochs", type=float)
    parser.add_argument("--max-rows", type=int)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=0, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        one(arguments)
        return
    with tempfile.TemporaryDirectory() as folder:
        arguments.out = arguments.out or folder
        compare(arguments)


if __name__ == "__main__":
    main()
