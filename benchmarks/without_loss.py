"""What is lost under a pattern: quality against sparsity, for learned and hand-made patterns, untouched and adapted.

    python benchmarks/without_loss.py --corpus CORPUS --data DATA --out OUT --seeds 3
    python benchmarks/without_loss.py --out OUT --table --figure docs/results/without-loss.svg
    python benchmarks/without_loss.py --out OUT --compare

CORPUS must hold none of the articles that `sentence_scores.py` asks about: prepare those that its --rest leaves. Every
run is one of the package's own, in a folder below OUT, that goes on where it was; scores are added to OUT/scores.jsonl
as they come, what is asked first at first, so the script may be ended at any time. --patterns leaves the others to
another process with the same OUT. Learned are lines, which hold at any length, or single entries. They are compared
with hand-made patterns by the distance of embeddings at the same sparsity, untouched and after as many steps of
adapting (--compared-steps).
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from sentence_scores import ARTICLES, embed, encoder_of, paragraph_pairs, scored, sts_rows

from sparsebert import Pattern, gates, patterns
from sparsebert.embeddings import Encoder
from sparsebert.progress import for_this_terminal
from sparsebert.runs import AdaptRun, SearchRun
from sparsebert.runs.distilled import FOR_TEXTS

LENGTH, HEADS = 128, 12
HANDMADE = ("star", "longformer", "log_sparse", "big_bird", "strided", "fixed")
STS = ("STS-B dev", "STS12", "STS13", "STS14", "STS15")
WORDS = {  # of the kinds of patterns, in the order of the table
    "dense": "dense",
    "learned by layer": "learned, a pattern a layer",
    "learned": "learned, one for all layers",
    "learned with weights": "learned with the weights, a pattern a layer",
    "entries by layer": "single entries, a pattern a layer",
    "entries": "single entries, one for all layers",
    "entries with weights": "single entries with the weights, a pattern a layer",
    "window_border": "window + border",
    **{name: name for name in HANDMADE},
}

_COLOURS = [*(f"C{number}" for number in range(10)), "black", "darkblue", "olivedrab"]


@dataclass(frozen=True)
class Condition:
    """A pattern, and how long the weights were adapted to it."""

    name: str  # of the kind of pattern
    sparsity: float  # that was asked for; of a hand-made one its own
    seed: int
    steps: int = 0  # of adapting; 0: weights as published
    whole: bool = True  # STS sets too, not paragraphs alone

    @property
    def key(self) -> str:
        weights = f"{self.steps}-steps" if self.steps else "untouched"
        return f"{self.name}-{100 * self.sparsity:.1f}-{weights}-{self.seed}"


def conditions(asked: argparse.Namespace) -> Iterator[Condition]:
    """What is asked first at first; a condition may come twice."""
    handmade = [(name, patterns.named(name, LENGTH, HEADS).sparsity) for name in HANDMADE]
    by_window = [patterns.window_border(LENGTH, sparsity=sparsity).sparsity for sparsity in (0.9, 0.95, 0.96)]
    windows = [("window_border", sparsity) for sparsity in by_window]
    others = [*windows, *handmade]

    def seeds(name: str, sparsity: float, steps: int = 0, whole: bool = True) -> Iterator[Condition]:
        yield from (Condition(name, sparsity, seed, steps, whole) for seed in range(asked.seeds))

    yield Condition("dense", 0.0, 0)
    yield from seeds("learned by layer", 0.9)
    yield from seeds("learned", 0.9)
    yield from seeds("learned by layer", 0.95)
    yield from seeds("entries by layer", 0.9)
    yield from seeds("entries", 0.9)
    yield from (Condition(name, sparsity, 0) for name, sparsity in others)
    for _, sparsity in others:
        yield from seeds("learned by layer", sparsity, whole=False)
    for _, sparsity in others:
        yield from seeds("entries by layer", sparsity, whole=False)
    yield from seeds("learned by layer", 0.9, asked.adapt_steps)
    yield from seeds("entries by layer", 0.9, asked.adapt_steps)
    for steps in (asked.adapt_steps, asked.long_steps):
        yield from seeds("learned with weights", 0.9, steps)
    for sparsity in (0.9, 0.95, 0.8):
        yield from seeds("entries with weights", sparsity, asked.long_steps)
    for name, sparsity in others:
        yield from seeds(name, sparsity, asked.compared_steps, whole=False)
        yield from seeds("learned by layer", sparsity, asked.compared_steps, whole=False)
        yield from seeds("entries by layer", sparsity, asked.compared_steps, whole=False)
    for sparsity in (0.95, 0.8, 0.97):
        yield from seeds("learned by layer", sparsity)
        yield from seeds("learned by layer", sparsity, asked.adapt_steps)
    for sparsity in (0.95, 0.8, 0.97):
        yield from seeds("learned", sparsity)


class Lab:
    """Makes the runs of conditions, and scores them."""

    def __init__(self, asked: argparse.Namespace) -> None:
        self.asked, self.out = asked, asked.out
        fit = {"precision": asked.precision, "checkpoint_every": 200, "keep_checkpoints": 1}
        self.common: dict[str, Any] = {"corpus": asked.corpus, "length": LENGTH, "batch_size": 16, **fit}

    def searched(self, name: str, sparsity: float, seed: int) -> Pattern:
        """One search serves all sparsities up to 92 %, one those above."""
        layers, target = "own" if name.endswith("by layer") else "shared", 0.9 if sparsity < 0.92 else 0.95
        is_of_entries = name.startswith("entries")
        folder = self.out / f"search-{'entries-' * is_of_entries}{layers}-{100 * target:.0f}-{seed}"
        given = {**self.common, "model": "minilm", "steps": self.asked.search_steps, "seed": seed, "layers": layers}
        given |= {"kind": "unstructured"} if is_of_entries else {}
        SearchRun.read({**given, "sparsity": target}).make(folder, for_this_terminal(folder.name))
        if is_of_entries:
            return gates.load(folder / "gate.safetensors").freeze(sparsity=sparsity, assured=0.0)
        return Pattern.load(folder / "pattern.safetensors").at_sparsity(sparsity)

    def with_weights(self, condition: Condition) -> Path:
        """A run whose pattern was learned while the weights were trained, and which then goes on from these weights.

        The long one is led from its first step by the loss, and on the rows, of adapting.
        """
        is_long = condition.steps >= self.asked.long_steps
        steps = self.asked.long_search_steps if is_long else self.asked.search_steps
        entries = {"kind": "unstructured"} if condition.name.startswith("entries") else {}
        searched = f"search-{'entries-' if entries else ''}with-weights-{100 * condition.sparsity:.0f}-{steps}"
        searched = self.out / f"{searched}-{condition.seed}"
        led = asdict(FOR_TEXTS) if is_long else {}
        given = {**self.common, **led, **entries, "model": "minilm", "weights": "trained"}
        given |= {"steps": steps, "seed": condition.seed, "sparsity": condition.sparsity}
        SearchRun.read(given).make(searched, for_this_terminal(searched.name))
        return self.adapted(condition, model=str(searched))

    def adapted(self, condition: Condition, **given: Any) -> Path:
        folder: Path = self.out / condition.key.replace(" ", "-")
        run = AdaptRun.read({**self.common, "steps": condition.steps, "seed": condition.seed, **given})
        run.make(folder, for_this_terminal(folder.name))
        return folder

    def pattern(self, condition: Condition) -> Pattern | None:
        if condition.name == "dense":
            return None
        if condition.name.startswith(("learned", "entries")):
            return self.searched(condition.name, condition.sparsity, condition.seed)
        if condition.name == "window_border":
            return patterns.window_border(LENGTH, sparsity=condition.sparsity)
        return patterns.named(condition.name, LENGTH, HEADS)

    def encoder(self, condition: Condition) -> Encoder:
        if condition.name.endswith("with weights"):
            return encoder_of(str(self.with_weights(condition)))
        pattern = self.pattern(condition)
        if not condition.steps:
            return encoder_of("minilm", pattern)
        return encoder_of(str(self.adapted(condition, model="minilm", pattern=pattern)))


def run(asked: argparse.Namespace) -> None:
    torch.set_num_threads(asked.threads)
    asked.out.mkdir(parents=True, exist_ok=True)
    lab, scores = Lab(asked), asked.out / "scores.jsonl"
    done = {line["key"] for line in read(scores)}
    sets, pairs = sts_rows(asked.data), paragraph_pairs(asked.data, ARTICLES)
    dense = embed(encoder_of("minilm"), pairs)
    for condition in conditions(asked):
        if condition.key in done or not (asked.patterns is None or condition.name in asked.patterns):
            continue
        done.add(condition.key)
        encoder = lab.encoder(condition)
        with torch.autocast("cpu", torch.bfloat16, enabled=asked.precision == "bfloat16"):
            figures = scored(encoder, sets if condition.whole else {}, pairs, dense)
        line = {"key": condition.key, "name": condition.name, "seed": condition.seed, "steps": condition.steps}
        with scores.open("a") as file:
            file.write(json.dumps({**line, **figures}) + "\n")
        print(condition.key, {name: round(value, 3) for name, value in figures.items()}, flush=True)


def read(scores: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in scores.read_text().splitlines()] if scores.exists() else []


def table(lines: list[dict[str, Any]]) -> str:
    """A row a condition, means over seeds with the lowest and highest of them."""
    rows: dict[tuple[str, int, str], list[dict[str, Any]]] = {}
    for line in lines:
        rows.setdefault((line["name"], line["steps"], f"{100 * line['sparsity']:.1f}"), []).append(line)
    text = [
        "| pattern | weights | sparsity | seeds | STS-B dev | STS12..15 | paragraphs | distance |",
        "|---|" + "---|" * 7,
    ]
    kinds = list(WORDS)
    for (name, steps, sparsity), found in sorted(
        rows.items(), key=lambda row: (row[0][1], kinds.index(row[0][0]), row)
    ):
        whole = [line for line in found if STS[0] in line]
        others = [fmean(line[one] for one in STS[1:]) for line in whole]
        cells = [_spread([line["STS-B dev"] for line in whole], 2), _spread(others, 2)]
        cells += [_spread([line["paragraphs"] for line in found], 1), _spread([line["distance"] for line in found], 4)]
        text.append(f"| {WORDS[name]} | {_weights(steps)} | {sparsity} % | {len(found)} | {' | '.join(cells)} |")
    return "\n".join(text) + "\n"


def compared(lines: list[dict[str, Any]], kind: str) -> str:
    """A learned kind beside hand-made ones at equal sparsity and steps: distances, and how many seeds are won."""
    text = [f"| pattern | sparsity | weights | its distance | {WORDS[kind]} | learned against it | seeds won |"]
    text.append("|---|" + "---|" * 6)
    learned: dict[tuple[int, str], dict[int, float]] = {}
    for line in lines:
        if line["name"] == kind:
            found = learned.setdefault((line["steps"], f"{100 * line['sparsity']:.1f}"), {})
            found[line["seed"]] = line["distance"]
    theirs: dict[tuple[str, str, int], dict[int, float]] = {}
    for line in lines:
        if line["name"] in (*HANDMADE, "window_border"):
            place = (line["name"], f"{100 * line['sparsity']:.1f}", line["steps"])
            theirs.setdefault(place, {})[line["seed"]] = line["distance"]
    for (name, sparsity, steps), distances in theirs.items():
        ours = learned.get((steps, sparsity), {})
        pairs = [(distances.get(seed, distances[0]), mine) for seed, mine in ours.items()]
        if not pairs:
            continue
        cells = [_spread(list(distances.values()), 4), _spread(list(ours.values()), 4)]
        cells += [f"{fmean(mine / other for other, mine in pairs) - 1:+.0%}"]
        cells += [f"{sum(mine < other for other, mine in pairs)} of {len(pairs)}"]
        text.append(f"| {WORDS[name]} | {sparsity} % | {_weights(steps)} | {' | '.join(cells)} |")
    return "\n".join(text) + "\n"


def _weights(steps: int) -> str:
    return f"{steps:,} steps" if steps else "untouched"


def _spread(values: list[float], digits: int) -> str:
    if not values:
        return ""
    mean = f"{fmean(values):.{digits}f}"
    return mean if len(values) == 1 else f"{mean} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def figure(lines: list[dict[str, Any]], path: Path) -> None:
    """Distance and paragraphs against sparsity, a line a kind of pattern."""
    from sparsebert.patterns.figures import blank_figure, save_figure

    drawn = blank_figure(11, 4.2)
    colours = dict(zip((name for name in WORDS if name != "dense"), _COLOURS, strict=True))
    markers = dict(zip(sorted({line["steps"] for line in lines}), "xosD^v", strict=False))
    for place, (measure, words) in enumerate(
        {"distance": "embedding distance to dense", "paragraphs": "paragraphs found, %"}.items(), 1
    ):
        axes = drawn.add_subplot(1, 2, place)
        for name, steps in sorted(
            {(line["name"], line["steps"]) for line in lines if line["name"] != "dense"},
            key=lambda one: (list(WORDS).index(one[0]), one[1]),
        ):
            points = [line for line in lines if (line["name"], line["steps"]) == (name, steps)]
            by_sparsity: dict[float, list[float]] = {}
            for line in points:
                by_sparsity.setdefault(round(100 * line["sparsity"], 1), []).append(line[measure])
            places = sorted(by_sparsity)
            style = {"marker": markers[steps], "linestyle": "-" if steps else ":", "color": colours[name]}
            label = f"{WORDS[name]}, {_weights(steps)}"
            axes.plot(places, [fmean(by_sparsity[one]) for one in places], label=label, **style)
        for line in lines:
            if line["name"] == "dense" and measure == "paragraphs":
                axes.axhline(line[measure], color="grey", linewidth=0.8, label="dense")
        axes.set_xlabel("sparsity, %")
        axes.set_ylabel(words)
        if measure == "distance":  # from those of adapted patterns to those of the worst it grows thirtyfold
            axes.set_yscale("log")
            axes.set_yticks((0.02, 0.05, 0.1, 0.2, 0.5), ("0.02", "0.05", "0.1", "0.2", "0.5"))
            axes.minorticks_off()
    drawn.axes[1].legend(fontsize=7, loc="center left", bbox_to_anchor=(1.02, 0.5), frameon=False)
    save_figure(drawn, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--search-steps", type=int, default=300)
    parser.add_argument("--adapt-steps", type=int, default=600)
    parser.add_argument("--long-search-steps", type=int, default=800, help="of a search that trains weights for long")
    parser.add_argument("--long-steps", type=int, default=2400, help="of adapting behind it")
    parser.add_argument("--compared-steps", type=int, default=100, help="of learned and hand-made patterns alike")
    parser.add_argument("--patterns", nargs="+", help="only these kinds, e.g. 'learned by layer' star")
    parser.add_argument("--precision", choices=["float32", "bfloat16"], default="bfloat16")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--table", action="store_true", help="print what there is, train nothing")
    parser.add_argument("--compare", action="store_true", help="print learned beside hand-made patterns")
    parser.add_argument("--figure", type=Path)
    asked = parser.parse_args()
    if asked.corpus is not None and asked.data is not None:
        run(asked)
    lines = read(asked.out / "scores.jsonl")
    if asked.table:
        print(table(lines))
    if asked.compare:
        for kind in ("learned by layer", "entries by layer"):
            print(compared(lines, kind))
    if asked.figure is not None:
        figure(lines, asked.figure)


if __name__ == "__main__":
    main()
