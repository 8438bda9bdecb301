"""R9: a run folder that is finished, or that belongs to another configuration."""

import shutil
from pathlib import Path

from scorecard import commands, shim
from scorecard.commands import difference, must_run, outcome, run, write_text
from scorecard.row import Row, Trial, require
from sparsebert.text import prepare_corpus

# kind of run, options that differ, the name that the refusal must hold
CHANGED: list[tuple[str, list[object], str]] = [
    ("search", ["--steps", 13], "steps"),
    ("search", ["--length", 32], "length"),
    ("search", ["--batch-size", 8], "batch_size"),
    ("search", ["--sparsity", 0.6], "sparsity"),
    ("search", ["--seed", 1], "seed"),
    ("search", ["--kind", "unstructured"], "kind"),
    ("search", ["--model", "scratch:mini"], "model"),
    ("search", ["--levels", 2], "levels"),
    ("search", ["--diagonal", "drop"], "diagonal"),
    ("search", ["--set", "rate=0.2"], "rate"),
    ("search", ["--set", "max_grad_norm=0.5"], "max_grad_norm"),
    ("search", ["--set", "precision=bfloat16"], "precision"),
    ("search", ["--corpus", "OTHER_TEXT"], "corpus_sha256"),
    ("search", ["--corpus", "OTHER_VOCABULARY"], "corpus_sha256"),
    ("finetune", ["--length", 32], "length"),
    ("finetune", ["--seed", 1], "seed"),
    ("finetune", ["--pattern", "longformer"], "pattern"),
    ("finetune", ["--max-rows", 40], "max_rows"),
    ("finetune", ["--epochs", 2], "num_epochs"),
    ("finetune", ["--model", "scratch:mini"], "model"),
]
# patterns that do not fit the model or the input: heads, length
UNFIT: list[tuple[list[object], str]] = [
    (["--pattern", "SEVEN_HEADS"], "7 heads"),
    (["--pattern", "SHORT"], "8 positions"),
]
KINDS = ("search", "finetune")


def set_up(shared: Path) -> None:
    """A finished and an unfinished run of each kind, other corpora, patterns that fit nothing."""
    corpus = commands.make_corpus(shared)
    write_text(shared / "other.txt", seed=1)
    for name, vocabulary in (("OTHER_TEXT", 150), ("OTHER_VOCABULARY", 120)):
        files = [str(shared / "other.txt")]
        prepare_corpus(files, shared / name, model="scratch:tiny", train_vocab=vocabulary, held_out=0.2, workers=1)
    for kind in KINDS:
        must_run(_command(kind, corpus, shared / f"{kind}-finished"), shared / "log")
        shutil.copytree(shared / f"{kind}-finished", shared / f"{kind}-begun")
        (shared / f"{kind}-begun" / "result.json").unlink()
    from sparsebert import patterns

    patterns.random(length=24, heads=7, sparsity=0.5).save(shared / "SEVEN_HEADS")
    patterns.from_keep(patterns.star(length=8).keep()).save(shared / "SHORT")


def _command(kind: str, corpus: Path, out: Path, *more: object) -> list[object]:
    return commands.search(corpus, out, *more) if kind == "search" else commands.finetune(out, *more)


def resumed(trial: Trial) -> None:
    number, corpus, log = trial.number, trial.shared / "corpus", trial.folder / "log"
    if number < len(KINDS):
        _finished(trial, KINDS[number])
    elif number < len(KINDS) + len(CHANGED):
        kind, options, name = CHANGED[number - len(KINDS)]
        out = trial.folder / "run"
        shutil.copytree(trial.shared / f"{kind}-begun", out)
        before = outcome(out)
        arguments = _command(kind, corpus, out, *_with_paths(options, trial.shared))
        _refused(run(arguments, log), log, name, str(options))
        require(not difference(before, outcome(out)), f"{options}: the run folder was changed")
    else:
        options, words = UNFIT[number - len(KINDS) - len(CHANGED)]
        arguments = _command("finetune", corpus, trial.folder / "run", *_with_paths(options, trial.shared))
        _refused(run(arguments, log), log, words, str(options))


def _with_paths(options: list[object], shared: Path) -> list[object]:
    return [shared / one if isinstance(one, str) and one.isupper() else one for one in options]


def _refused(code: int, log: Path, words: str, what: str) -> None:
    said = log.read_text()
    require(code == 2, f"{what}: exit code {code}: {said[-500:]}")
    errors = [line for line in said.splitlines() if line.startswith("error: ")]
    require(len(errors) == 1 and words in errors[0], f"{what}: {words!r} is not in {said[-500:]}")
    require("Traceback" not in said, f"{what}: a traceback")


def _finished(trial: Trial, kind: str) -> None:
    out = trial.folder / "run"
    shutil.copytree(trial.shared / f"{kind}-finished", out)
    before, dates = outcome(out), {path: path.stat().st_mtime_ns for path in out.rglob("*.safetensors")}
    shim.watch(out)
    must_run(_command(kind, trial.shared / "corpus", out), trial.folder / "log")
    require(not difference(before, outcome(out)), f"a finished {kind} was changed")
    require(dates == {path: path.stat().st_mtime_ns for path in out.rglob("*.safetensors")}, "a file was written again")


ROWS = [
    Row(
        "R9",
        "resume of a finished run; of another configuration, vocabulary, text, length, model; patterns of other heads",
        "0 extra steps; refused naming the field",
        len(KINDS) + len(CHANGED) + len(UNFIT),
        resumed,
        set_up,
        unit="cases",
        fast=(0, 3, 6, 15, 22),
    )
]
