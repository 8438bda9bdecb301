"""Is a learned pattern better than a hand-made one of the same sparsity, and learning in one stage better than two?

    python benchmarks/learned_patterns.py CORPUS --out DIR                    the table of docs/results/learning.md
    python benchmarks/learned_patterns.py CORPUS --out DIR --seeds 1 --only-train   one seed, beside another process

A dense base is trained first (MLM and NSP); every condition starts from it and has the same two phases, each with the
same steps, batches and rates of the weights:

    condition          first phase                          second phase
    learned            search of a structured pattern       under the pattern found
    hand-made, random  under the pattern                    under the pattern
    two-stage          importance analysis (soft P)         under the largest entries of P

The second phase goes on with the weights of the first. Shown is the held-out MLM loss at the end, and that of the
base's own weights under each pattern, before any adaptation. Resumes when called again.
"""

import argparse
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from recipes import held_out_loss

from sparsebert import Pattern, patterns
from sparsebert.files import read_json
from sparsebert.importance.saved import load_importance
from sparsebert.progress import for_this_terminal
from sparsebert.runs import ImportanceRun, PretrainRun, RunSettings, SearchRun
from sparsebert.text import TokenStore

HEADS = 12
BASE_RATE, FIRST_RATE, SECOND_RATE = 2e-4, 5e-5, 1e-4  # of the weights
HAND_MADE = {
    "big_bird": lambda length, seed: patterns.big_bird(length, HEADS, seed=seed),
    "star": lambda length, seed: patterns.star(length),
    "longformer": lambda length, seed: patterns.longformer(length),
    "log_sparse": lambda length, seed: patterns.log_sparse(length),
}
CONDITIONS = ("learned", "hand-made", "random", "two-stage")
FIT = {"micro_batches": 1, "checkpoint_every": 1000, "keep_checkpoints": 1}


@dataclass(frozen=True)
class Comparison:
    """One seed's runs; every folder lies under its own."""

    corpus: Path
    out: Path
    seed: int
    length: int
    rows: int
    first_steps: int
    second_steps: int
    held_out: int

    @property
    def common(self) -> dict[str, Any]:
        own = {"corpus": self.corpus, "length": self.length, "batch_size": self.rows, "seed": self.seed}
        return {**own, "num_held_out": self.held_out}

    @property
    def folder(self) -> Path:
        return self.out / f"seed-{self.seed}"

    def adapt(self, start: Path, pattern: Path | None, steps: int, rate: float, out: Path) -> Path:
        under = None if pattern is None else str(pattern)
        run = PretrainRun(model=str(start), steps=steps, learning_rate=rate, pattern=under, fit=FIT, **self.common)
        if not (out / "result.json").exists():
            run.make(out, for_this_terminal(f"{self.seed} {out.name}"))
            shutil.rmtree(out / "checkpoints", ignore_errors=True)  # optimiser states of dozens of finished runs
        return out / "model"

    def learn(self, kind: type[RunSettings], out: Path, **settings: Any) -> Path:
        start = {"model": str(self.out / "base" / "model"), "steps": self.first_steps, "learning_rate": FIRST_RATE}
        if not (out / "result.json").exists():
            kind(**start, fit=FIT, **settings, **self.common).make(out, for_this_terminal(f"{self.seed} {out.name}"))
        return out

    def run(self, name: str) -> dict[str, Path]:
        """All conditions at the sparsity of one hand-made pattern; the pattern file of each."""
        hand_made = HAND_MADE[name](self.length, self.seed)
        folder, base, files = self.folder / name, self.out / "base" / "model", {}
        folder.mkdir(parents=True, exist_ok=True)
        for condition, pattern in {
            "hand-made": hand_made,
            "random": patterns.random(self.length, HEADS, sparsity=hand_made.sparsity, seed=self.seed),
        }.items():
            files[condition] = folder / f"{condition}.safetensors"
            pattern.save(files[condition])
            first = self.adapt(base, files[condition], self.first_steps, FIRST_RATE, folder / f"{condition}-first")
            self.adapt(first, files[condition], self.second_steps, SECOND_RATE, folder / condition)
        found = self.learn(SearchRun, folder / "search", sparsity=hand_made.sparsity)
        files["learned"] = found / "pattern.safetensors"
        self.adapt(found / "model", files["learned"], self.second_steps, SECOND_RATE, folder / "learned")
        importance = self.learn(ImportanceRun, self.folder / "importance")
        files["two-stage"] = folder / "two-stage.safetensors"
        patterns.prune(load_importance(importance), hand_made.sparsity).save(files["two-stage"])
        self.adapt(importance / "model", files["two-stage"], self.second_steps, SECOND_RATE, folder / "two-stage")
        return files

    def row(self, name: str, files: dict[str, Path]) -> dict[str, dict[str, float]]:
        kept = self.folder / name / "row.json"
        if not kept.exists():
            row = {}
            for condition in CONDITIONS:
                pattern = Pattern.load(files[condition])
                loss = read_json(self.folder / name / condition / "result.json")["metrics"]["mlm_loss"]
                before = self.base_loss(pattern)
                row[condition] = {"sparsity": pattern.sparsity, "before": before, "loss": loss}
            kept.write_text(json.dumps(row))
        return dict(read_json(kept))

    def base_loss(self, pattern: Pattern | None) -> float:
        """Held-out MLM loss of the base's weights under a pattern."""
        store, sizes = TokenStore.open(self.corpus), (self.rows, self.length)
        return held_out_loss(self.out / "base", store, pattern, *sizes, seed=self.seed, batches=self.held_out)

    def dense(self) -> tuple[float, float]:
        """Before and after the two phases without a pattern."""
        folder, base = self.folder / "dense", self.out / "base" / "model"
        first = self.adapt(base, None, self.first_steps, FIRST_RATE, folder / "first")
        self.adapt(first, None, self.second_steps, SECOND_RATE, folder / "second")
        return self.base_loss(None), read_json(folder / "second" / "result.json")["metrics"]["mlm_loss"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--patterns", nargs="+", default=list(HAND_MADE), choices=list(HAND_MADE))
    parser.add_argument("--only-train", action="store_true", help="no table: other seeds are trained elsewhere")
    sizes = {"length": 128, "rows": 8, "base-steps": 600, "first-steps": 100, "second-steps": 50, "held-out": 48}
    for name, value in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    asked = parser.parse_args()
    shared = {"length": asked.length, "rows": asked.rows, "held_out": asked.held_out}
    steps = {"first_steps": asked.first_steps, "second_steps": asked.second_steps}
    comparisons = [Comparison(asked.corpus, asked.out, seed, **shared, **steps) for seed in asked.seeds]
    comparisons[0].adapt(Path("minilm"), None, asked.base_steps, BASE_RATE, asked.out / "base")
    dense = [one.dense() for one in comparisons]
    rows = {name: [one.row(name, one.run(name)) for one in comparisons] for name in asked.patterns}
    if not asked.only_train:
        print_table(dense, rows)


def print_table(dense: list[tuple[float, float]], rows: dict[str, list[dict[str, dict[str, float]]]]) -> None:
    print("held-out MLM loss, one number a seed; before: the base's weights under the pattern\n")
    print("| at the sparsity of | condition | sparsity | before | after | mean |\n|---|---|---|---|---|---|")
    print_line("dense", "", [{"sparsity": 0.0, "before": before, "loss": loss} for before, loss in dense])
    for name, seeds in rows.items():
        for condition in CONDITIONS:
            print_line(name, condition, [one[condition] for one in seeds])


def print_line(name: str, condition: str, seeds: list[dict[str, float]]) -> None:
    columns = [" / ".join(f"{one[key]:.3f}" for one in seeds) for key in ("before", "loss")]
    sparsity, loss = (mean(one[key] for one in seeds) for key in ("sparsity", "loss"))
    print(f"| {name} | {condition} | {sparsity:.2%} | {columns[0]} | {columns[1]} | {loss:.3f} |")


if __name__ == "__main__":
    main()
