"""How fast does `prepare` turn text into token ids, against `tokenizers.encode_batch` alone on the same text and cores?

    python benchmarks/prepare.py FILE... [--model minilm] [--rounds 2] [--out DIR]

Prints tokens per second of wall time and of CPU time for both, from alternating runs, and their ratio; the peak
resident memory of all processes of a run together; whether one worker, all workers, and a run that was killed (-9) in
the middle and run again left the same bytes.
"""

import argparse
import hashlib
import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")


def encode_alone(files: list[str], model: str) -> None:
    """The baseline, in a process of its own: paragraphs in memory, then nothing but encode_batch."""
    from sparsebert.text import load_tokenizer
    from sparsebert.text.blocks import cut
    from sparsebert.text.documents import Complaints, documents
    from sparsebert.text.sources import find_sources

    paragraphs = [
        paragraph
        for source in find_sources(files)
        for block in cut(source, skip_bad=False, skipped=Counter())
        for document in documents(block, Complaints(source.name, skip_bad=False))
        for paragraph in document.paragraphs
    ]
    tokenizer = load_tokenizer(model)
    wall, cpu, tokens = time.perf_counter(), time.process_time(), 0
    for start in range(0, len(paragraphs), 1000):
        batch = tokenizer.encode_batch(paragraphs[start : start + 1000], add_special_tokens=False)
        tokens += sum(len(encoding) for encoding in batch)
    print(json.dumps({"tokens": tokens, "wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}))


def prepare(files: list[str], model: str, out: str, workers: str) -> None:
    from sparsebert.text import prepare_corpus

    store = prepare_corpus(files, Path(out), model=model, workers=int(workers))
    print(json.dumps({"tokens": store.num_tokens}))


def run(*arguments: str, kill_at_shards: tuple[Path, int] | None = None) -> dict[str, float]:
    """Run this script in a fresh process; the figures include its start and its imports."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    child = subprocess.Popen([sys.executable, __file__, *arguments], stdout=subprocess.PIPE, text=True)
    peak = 0
    while child.poll() is None:
        peak = max(peak, _resident(child.pid))
        if kill_at_shards and len(list(kill_at_shards[0].glob("shards/*.safetensors"))) >= kill_at_shards[1]:
            os.kill(child.pid, signal.SIGKILL)
        time.sleep(0.1)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    lines = child.communicate()[0].splitlines()
    if child.returncode and not kill_at_shards:
        raise SystemExit(f"{arguments} ended with {child.returncode}")
    return {"wall": wall, "cpu": cpu, "peak": float(peak), **(json.loads(lines[-1]) if lines else {})}


def _resident(parent: int) -> int:
    """Resident bytes of a process and all below it; shared pages count once for each."""
    parents, sizes = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                sizes[int(entry.name)] = int((entry / "statm").read_text().split()[1]) * PAGE
            except OSError:
                continue  # ended meanwhile
    family = {parent}
    for _ in range(4):
        family |= {child for child, of in parents.items() if of in family}
    return sum(sizes.get(member, 0) for member in family)


def digest(folder: Path) -> str:
    """One sha256 over the names and bytes of every file."""
    whole = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        whole.update(f"{path.relative_to(folder)} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return whole.hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", default=["builtin:python-docs"])
    parser.add_argument("--model", default="minilm")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--out", type=Path)
    settings = parser.parse_args()
    base = settings.out or Path(tempfile.mkdtemp(prefix="prepare-"))
    cores = len(os.sched_getaffinity(0))
    job = json.dumps({"files": settings.files, "model": settings.model})
    alone, ours = [], []
    for number in range(settings.rounds):
        alone.append(run("encode", job))
        ours.append(run("prepare", job, str(base / f"all-{number}"), str(cores)))
    one = run("prepare", job, str(base / "one"), "1")
    killed_at = max(1, len(list((base / "one" / "shards").iterdir())) // 2)
    run("prepare", job, str(base / "killed"), str(cores), kill_at_shards=(base / "killed", killed_at))
    interrupted = not (base / "killed" / "manifest.json").exists()
    resumed = run("prepare", job, str(base / "killed"), str(cores))

    for kind in ("wall", "cpu"):
        rates = [statistics.median(each["tokens"] / each[kind] for each in runs) for runs in (alone, ours)]
        print(
            f"tokens per {kind} second: encode_batch alone {rates[0]:,.0f}, "
            f"prepare {rates[1]:,.0f}, ratio {rates[1] / rates[0]:.2f}"
        )
    print(f"tokens: {ours[0]['tokens']:,.0f} on {cores} cores, {settings.rounds} alternating rounds")
    print(f"peak resident memory of all processes: {max(each['peak'] for each in [*ours, one]) / 2**20:,.0f} MiB")
    digests = {name: digest(base / name) for name in ("all-0", "one", "killed")}
    print(f"same bytes for {cores} workers and 1: {digests['all-0'] == digests['one']}")
    if interrupted:
        print(f"same bytes after kill -9 at {killed_at} shards and a second run: {digests['killed'] == digests['one']}")
        print(f"CPU seconds of the second run: {resumed['cpu']:.1f}, of a whole one: {ours[0]['cpu']:.1f}")
    else:
        print("the text is too small to be killed in the middle")


if __name__ == "__main__":
    if len(sys.argv) > 2 and sys.argv[1] == "encode":
        encode_alone(**json.loads(sys.argv[2]))
    elif len(sys.argv) > 2 and sys.argv[1] == "prepare":
        prepare(**json.loads(sys.argv[2]), out=sys.argv[3], workers=sys.argv[4])
    else:
        main()
