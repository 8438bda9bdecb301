"""How fast is a whole encoder beside what else a CPU runs it with, and how good are its embeddings there?

    python benchmarks/encoder_peers.py --data DATA --out peers.jsonl                     everything, about 15 minutes
    python benchmarks/encoder_peers.py --data DATA --out quick.jsonl --quick             a small look, a few minutes
    python benchmarks/encoder_peers.py --data DATA --out peers.jsonl --pattern FILE --page docs/results/encoder-peers.md

minilm in torch, here (under a pattern), ONNX Runtime and OpenVINO, in float32, bfloat16 and int8, each made by its own
tool; Longformer, BigBird and ModernBERT of the same shape, for their speed alone. One row of n tokens, and a batch of
real texts of mixed lengths (7 sentences and a transcript, of which at most 512 tokens are read): others pad it, "ours"
takes the way of `sparsebert encode`; only real tokens count. Encoders take turns in one process; medians, of CPU time
on one thread and of wall time on more. Quality: the mean of five STS sets, and mean 1 - cosine to torch float32 of
paragraphs. DATA as in sentence_scores.py, and qmsum/documents.jsonl.gz.

The other programs (the extra `peers`) are installed into an environment of their own, --env, on top of this one. What
--out holds already is not measured again. --pattern: a file; without it, a window and a border, 90 % sparse at 128.
"""

import argparse
import gc
import gzip
import json
import os
import platform
import subprocess
import sys
import sysconfig
import time
import tomllib
import venv
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean, median
from typing import Any

PROJECT = Path(__file__).resolve().parent.parent
LEARNED, MIXED, SENTENCES, CALIBRATION, BATCH = 128, "mixed", 7, 100, 64
QUICK = {"lengths": [64], "threads": [1], "articles": 8, "rows": 12}


def enter(env: Path) -> None:
    """Go on in an environment that sees this one and has the peers too."""
    if Path(sys.prefix).resolve() == env.resolve():
        return
    python = env / "bin" / "python"
    if not (env / "ready").exists():
        venv.create(env, with_pip=True)
        own = Path(
            subprocess.check_output(
                [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], text=True
            ).strip()
        )
        (own / "project.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
        wanted = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["peers"]
        pins = ["-c", str(PROJECT / "constraints.txt")]
        subprocess.run([python, "-m", "pip", "install", "--quiet", *pins, *wanted], check=True)
        (env / "ready").touch()
    os.execv(python, [str(python), *sys.argv])


class Record:
    """Lines of JSON: what is there is not measured again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: list[dict[str, Any]] = []
        if path.exists():
            self.lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]

    def add(self, *lines: dict[str, Any]) -> None:
        """All of these lines or, where the program ends before they are written, none."""
        from sparsebert.files import write_atomic

        whole = [*self.lines, *lines]
        write_atomic(self.path, "".join(json.dumps(line) + "\n" for line in whole).encode())
        self.lines = whole

    def has(self, **fields: Any) -> bool:
        return any(all(line.get(name) == value for name, value in fields.items()) for line in self.lines)


def machine() -> str:
    cpu = platform.processor()
    about = Path("/proc/cpuinfo")
    if about.exists():
        found = {
            name.strip(): value.strip()
            for name, _, value in (line.partition(":") for line in about.read_text().split("\n"))
        }
        cpu = f"{found.get('model name', cpu)} (family {found.get('cpu family', '?')})"
    return f"{cpu}, {os.cpu_count()} cores"


def about(record: Record, pattern: Any) -> None:
    """What the lines are about; lines of another pattern are refused."""
    if not record.has(kind="about"):
        ours = f"ours under a pattern {pattern.sparsity:.1%} sparse at {pattern.length}, rebuilt at each length"
        text = f"{machine()}, {datetime.now(UTC):%d %B %Y}; {ours}."
        record.add({"kind": "about", "text": text, "pattern": pattern.digest})
    if not record.has(kind="about", pattern=pattern.digest):
        sys.exit(f"{record.path} was measured under another pattern; name another --out, or give that --pattern")


def made(makers: dict[str, Any], record: Record) -> dict[str, Any]:
    """The encoders that this machine can make; why one is missing is recorded."""
    found = {}
    for name, make in makers.items():
        try:
            found[name] = make()
        except Exception as error:
            why = str(error).strip().split("\n")[0]
            if not record.has(kind="missing", encoder=name):
                record.add({"kind": "missing", "encoder": name, "why": why})
            print(f"no {name}: {why}", file=sys.stderr)
    return found


def by_turns(runs: dict[str, Any], threads: int, budget: float) -> dict[str, float]:
    """Median seconds of each; as many turns as a budget of seconds allows, at least three after one that warms up."""
    clock = time.process_time if threads == 1 else time.perf_counter
    taken: dict[str, list[float]] = {name: [] for name in runs}
    started, turn = time.perf_counter(), 0
    while turn < 4 or (time.perf_counter() - started < budget and turn < 40):
        for name, run in runs.items():
            before = clock()
            run()
            if turn:
                taken[name].append(clock() - before)
        turn += 1
    return {name: median(times) for name, times in taken.items()}


class Texts:
    """What is read: real texts as tokens."""

    def __init__(self, data: Path, rows: int | None) -> None:
        from sentence_scores import sts_rows
        from transformers import AutoTokenizer

        from sparsebert.model.sources import model_folder

        self.tokenizer: Any = AutoTokenizer.from_pretrained(str(model_folder("minilm")))
        self.sets = {name: found[:rows] for name, found in sts_rows(data).items()}
        with gzip.open(data / "qmsum/documents.jsonl.gz", "rt", encoding="utf8") as file:
            self.long = json.loads(next(file))["text"]
        self.sentences = [row.first for row in next(iter(self.sets.values()))]

    def row(self, length: int) -> Any:
        """One row of exactly so many tokens."""
        import torch

        ids = self.tokenizer(self.long, truncation=True, max_length=length)["input_ids"]
        return torch.tensor([(ids * -(-length // len(ids)))[:length]])

    def mixed(self) -> list[str]:
        return [*self.sentences[:SENTENCES], self.long]

    def calibration(self) -> list[Any]:
        import torch

        chosen = [*self.sentences[: CALIBRATION - 1], self.long]
        return [
            torch.tensor([self.tokenizer(text, truncation=True, max_length=LEARNED)["input_ids"]]) for text in chosen
        ]


class Embedder:
    """Any encoder, asked for embeddings of texts."""

    def __init__(self, run: Any, tokenizer: Any) -> None:
        self.run, self.tokenizer = run, tokenizer

    def embed(self, texts: list[str]) -> Any:
        """Unit vectors."""
        import numpy as np
        import torch

        from sparsebert.model.head_pooling import pooled

        order = sorted(range(len(texts)), key=lambda number: len(texts[number]))
        vectors: Any = None
        for start in range(0, len(order), BATCH):
            chosen = order[start : start + BATCH]
            read = self.tokenizer(
                [texts[number] for number in chosen],
                padding=True,
                truncation=True,
                max_length=LEARNED,
                return_tensors="pt",
            )
            with torch.no_grad():
                states = self.run(read["input_ids"], read["attention_mask"]).float()
            rows = torch.nn.functional.normalize(pooled(states, read["attention_mask"].float(), "mean"), dim=-1).numpy()
            vectors = np.zeros((len(texts), rows.shape[1]), np.float32) if vectors is None else vectors
            vectors[chosen] = rows
        return vectors


class Comparison:
    """Everything that is measured, one group after the other."""

    def __init__(self, asked: argparse.Namespace, record: Record) -> None:
        from sparsebert.patterns import Pattern, window_border

        self.asked, self.record = asked, record
        self.texts = Texts(asked.data, asked.rows)
        self.pattern = Pattern.load(asked.pattern) if asked.pattern else window_border(LEARNED, sparsity=0.9)
        self.folder = asked.env / "models"
        self.folder.mkdir(parents=True, exist_ok=True)

    def makers(self, length: int, threads: int) -> dict[str, Any]:
        from peer_encoders import makers

        return makers(self.pattern, length, threads, self.folder, self.texts.calibration())

    def runs(self, one: int | str, threads: int) -> tuple[dict[str, Any], int]:
        """A call of each encoder on one input, and how many real tokens that has."""
        import torch

        if one != MIXED:
            ids = self.texts.row(int(one))
            found = made(self.makers(int(one), threads), self.record)
            return {name: lambda run=run: run(ids, torch.ones_like(ids)) for name, run in found.items()}, ids.numel()
        read = self.texts.tokenizer(
            self.texts.mixed(), padding=True, truncation=True, max_length=512, return_tensors="pt"
        )
        ids, real = read["input_ids"], read["attention_mask"]
        found = made(
            {name: make for name, make in self.makers(512, threads).items() if not name.startswith("ours")}, self.record
        )
        runs = {name: lambda run=run: run(ids, real) for name, run in found.items()}
        return runs | self._encoded(), int(real.sum())

    def _encoded(self) -> dict[str, Any]:
        """Ours as `sparsebert encode` runs a batch of texts."""
        from sparsebert.embeddings import Encoder

        runs = {}
        for name, precision in (("float32", "fp32"), ("bfloat16", "bf16"), ("int8", "int8")):
            for encoder in made(
                {f"ours {name}": lambda p=precision: Encoder("minilm", pattern=self.pattern, length=512, precision=p)},
                self.record,
            ).values():
                tokens = encoder.tokens(self.texts.mixed())
                runs[f"ours {name}"] = lambda encoder=encoder, tokens=tokens: encoder.embeddings(tokens)
        return runs

    def speed(self, one: int | str, threads: int) -> None:
        import torch

        if self.record.has(kind="speed", input=str(one), threads=threads):
            return
        torch.set_num_threads(threads)
        runs, tokens = self.runs(one, threads)
        with torch.no_grad():
            seconds = by_turns(runs, threads, self.asked.budget)
        about = {"kind": "speed", "input": str(one), "threads": threads}
        self.record.add(
            *({**about, "encoder": name, "tokens_per_second": tokens / each} for name, each in seconds.items())
        )
        gc.collect()

    def quality(self) -> None:
        import torch
        from peer_encoders import FAMILIES
        from sentence_scores import paragraph_pairs

        from sparsebert.embeddings import scores_of_embeddings

        torch.set_num_threads(os.cpu_count() or 1)
        paragraphs = [text for pair in paragraph_pairs(self.asked.data, self.asked.articles) for text in pair]
        dense: Any = None
        makers = self.makers(LEARNED, os.cpu_count() or 1)
        for name in [name for name in makers if name not in FAMILIES]:
            if self.record.has(kind="quality", encoder=name) and name != "torch float32":
                continue
            for run in made({name: makers[name]}, self.record).values():
                embedder = Embedder(run, self.texts.tokenizer)
                vectors = embedder.embed(paragraphs)
                dense = vectors if name == "torch float32" else dense
                if self.record.has(kind="quality", encoder=name):
                    continue
                scores = scores_of_embeddings(embedder.embed, self.texts.sets)
                distance = max(0.0, 1.0 - float((vectors * dense).sum(1).mean()))
                about = {"kind": "quality", "encoder": name, "mean": fmean(scores.values()), "distance": distance}
                self.record.add({**about, **scores})


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True, help="lines of JSON, gone on with where they are")
    parser.add_argument("--env", type=Path, default=PROJECT / "build" / "peers")
    parser.add_argument("--pattern", type=Path)
    parser.add_argument("--lengths", type=int, nargs="+", default=[128, 512, 2048, 4096])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--articles", type=int, default=300, help="whose paragraphs the distance is of")
    parser.add_argument("--rows", type=int, help="of each STS set; all by default")
    parser.add_argument("--budget", type=float, default=25.0, help="seconds of turns for each input")
    parser.add_argument("--page", type=Path, help="a page to write, and its figure beside it")
    parser.add_argument("--quick", action="store_true", help="one short length, one thread, few texts")
    asked = parser.parse_args()
    for name, value in QUICK.items() if asked.quick else ():
        setattr(asked, name, value)
    return asked


def main() -> None:
    asked = options()
    enter(asked.env)
    import peer_page
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    record = Record(asked.out)
    comparison = Comparison(asked, record)
    about(record, comparison.pattern)
    for threads in asked.threads:
        for one in [*asked.lengths, MIXED]:
            comparison.speed(one, threads)
    comparison.quality()
    print(peer_page.report(record.lines))
    if asked.page:
        peer_page.write_page(asked.page, record.lines)
        peer_page.draw(record.lines, asked.page.with_suffix(".svg"))


if __name__ == "__main__":
    main()
