"""Does every task train, evaluate, predict and write its submission from its files, dense and sparse?

A few rows and one epoch each, under no pattern, star, and a structured one; SQuAD at 384 tokens. Prints a Markdown
table; finished runs in --out are not run again.

    python benchmarks/every_task.py --data DIR --out DIR
"""

import argparse
import contextlib
import io
import json
import os
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

from sparsebert import patterns
from sparsebert.tasks import TASKS
from sparsebert.tasks.builtin import write_builtin
from sparsebert.tasks.builtin.writing import write_csv, write_squad, write_tsv
from sparsebert.tasks.files.reading import read_rows

# Heads that keep different offsets, inside a border.
OFFSETS = [[-distance, -1, 1, distance] for distance in (2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48)]


def command(*words: object) -> str:
    """Run a sparsebert command in this process; its standard output."""
    from sparsebert.cli import app

    with contextlib.redirect_stdout(io.StringIO()) as output:
        app([str(word) for word in words], standalone_mode=False)
    return output.getvalue()


def finetuned(task: str, out: Path, *options: object) -> dict[str, object]:
    """The result of a fine-tuning run, trained now or before."""
    if not (out / "result.json").is_file():
        command("finetune", task, "--out", out, *options)
    result: dict[str, object] = json.loads((out / "result.json").read_text())
    return result


def table(head: list[str], rows: list[list[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def every(arguments: argparse.Namespace) -> None:
    """Eleven tasks, three patterns, a few rows: does every path work on the official files?"""
    out, data = Path(arguments.out), arguments.data
    structured = out / "structured.safetensors"
    patterns.from_offsets(length=128, offsets=OFFSETS, border=True).save(structured)
    chosen = {"dense": [], "star": ["--pattern", "star"], "structured": ["--pattern", structured]}
    rows: list[list[object]] = []
    few = ["--max-rows", arguments.max_rows, "--max-dev-rows", arguments.max_rows, "--epochs", 1]
    for task in arguments.tasks or TASKS:
        for name, options in chosen.items():
            run = out / name / task
            result = finetuned(task, run, "--data", data, "--model", arguments.model, *few, *options)
            suffix = {"tsv": "zip", "csv": "csv", "json": "json"}[TASKS[task].format]
            sparsity = f"{100 * float(str(result['sparsity'])):.1f} %"
            predicted = _predicted(task, run, data, arguments.max_rows)
            path = out / name / f"{task}.{suffix}"
            command("submission", run, "--data", data, "--out", path, "--max-rows", arguments.max_rows)
            submitted = f"{path.stat().st_size:,} bytes"
            score = f"{float(str(result['score'])):.1f}"
            rows.append([TASKS[task].title, name, sparsity, result["metric"], score, predicted, submitted])
            print(*rows[-1], file=sys.stderr, flush=True)
    print(table(["task", "pattern", "sparsity", "metric", "dev score", "rows predicted", "submission"], rows))


def _predicted(task: str, run: Path, data: str, count: int) -> int:
    """Predict the first rows of the dev file, from a file."""
    about = TASKS[task]
    section, file = next(iter(about.dev.items()))
    rows = read_rows(about, data, "dev", section)[:count]
    path = run / f"few{Path(file.name).suffix}"
    {"tsv": write_tsv, "csv": write_csv, "json": write_squad}[about.format](path, about, file, rows, "")
    return len(command("predict", run, "--file", path).splitlines())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder with the official folders; built-in files without it")
    parser.add_argument("--out")
    parser.add_argument("--tasks", nargs="*", choices=list(TASKS))
    parser.add_argument("--model", default="minilm")
    parser.add_argument("--max-rows", type=int, default=32)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        arguments.out = arguments.out or folder
        arguments.data = arguments.data or str(write_builtin(Path(arguments.out) / "data"))
        every(arguments)


if __name__ == "__main__":
    main()
