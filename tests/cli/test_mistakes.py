"""What a newcomer gets wrong: one sentence and exit code 2, before any work, with nothing left behind."""

import logging
import shlex
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sparsebert import patterns
from sparsebert.cli import app, main
from sparsebert.text import prepare_corpus

SEARCH = "search --model scratch:tiny --corpus corpus --steps 2 --length 24 --batch-size 4 --out new"
TARGET = f"{SEARCH} --sparsity 0.7"
IMPORTANCE = "importance --model scratch:tiny --corpus corpus --steps 2 --length 24 --batch-size 4 --out new"
PRETRAIN = "pretrain --model scratch:tiny --corpus corpus --steps 2 --length 24 --batch-size 4 --out new"
TASK = "search --model scratch:tiny --task rte --sparsity 0.7 --out new"
FINETUNE = "finetune rte --model scratch:tiny --out new"
STUDY = "study all --device-flops 1e9 --dry-run --out new"

MISTAKES = {
    # Values of the wrong type or out of range
    f"{TARGET} --set learning_rate=abc": "learning_rate is 'abc'; expected a number",
    f"{TARGET} --set rate=abc": "rate is 'abc'",
    f"{TARGET} --set rate=-1": "rate is '-1'; expected a number above 0",
    f"{TARGET} --set stiffness=-1": "stiffness is '-1'",
    f"{TARGET} --set temperature=abc": "temperature is 'abc'; expected a number, or a list",
    f"{TARGET} --set temperature=0": "temperature must stay above 0",
    f"{TARGET} --set betas=0.9": "betas is '0.9'; expected 2 values",
    f"{TARGET} --set weight_decay=abc": "weight_decay is 'abc'",
    f"{TARGET} --set num_held_out=0": "num_held_out is '0'",
    f"{TARGET} --set warmup_steps=9": "warmup_steps is 9, beyond the 2 steps",
    f"{TARGET} --set anchor=foo": "anchor is 'foo'; expected position or token",
    f"{TARGET} --kind unstructured --set pooled=maybe": "pooled is 'maybe'; expected true or false",
    f"{TARGET} --levels 3": "levels is 3",
    f"{TARGET} --set micro_batches=3": "4 rows cannot be cut into 3 micro-batches",
    f"{SEARCH} --sparsity 1.5": "sparsity is 1.5",
    f"{SEARCH} --penalty -1": "penalty is -1",
    f"{SEARCH} --sparsity 0.99": "cannot be reached",
    f"{PRETRAIN} --learning-rate nan": "learning_rate is nan",
    f"{PRETRAIN} --pattern window --set pattern.radius=abc": "pattern.radius is 'abc'; expected a whole number",
    f"{FINETUNE} --epochs 0": "num_epochs is 0",
    f"{FINETUNE} --max-rows 0": "max_rows is 0",
    f"{FINETUNE} --set warmup_steps=100000": "beyond the 18 steps",
    "finetune squad1 --model scratch:tiny --set stride=0 --out new": "stride is 0",
    "pattern window --set radius=abc": "radius is 'abc'; expected a whole number",
    "pattern longformer --set globals_at=abc": "globals_at is 'abc'; expected a list",
    "pattern p.safetensors --length 0": "at least 1",
    f"{STUDY} --set adapt_steps=0": "adapt_steps is '0'; expected a whole number of at least 1",
    f"{STUDY} --set micro_batches=3": "cannot be cut",
    f"{STUDY} --set 'shape={{\"hiden_size\": 64}}'": "did you mean hidden_size",
    "demo --sparsity 1.5 --out new": "sparsity is 1.5",
    # Settings that would have no effect, or lose against another
    f"{TASK} --set symmetric=false": "symmetric is given, which a gate of kind structured does not use",
    f"{TASK} --set entry_share=0.5": "entry_share is given, which a gate of kind structured does not use; leave it out",
    f"{TASK} --kind unstructured --set directed=true": "directed is given, which a gate of kind unstructured",
    f"{TARGET} --kind unstructured --set pooled=false --set entry_share=0.5": "does not use unless it is pooled",
    f"{IMPORTANCE} --set least_price=1": "least_price is given, which a gate of kind soft does not use",
    f"{TASK} --steps 3 --set num_epochs=2": "num_epochs and num_steps are both given",
    f"{TARGET} --data glue": "--data was given without --task",
    f"{TARGET} --set length=12": "length has an option of its own, --length",
    f"{TARGET} --set head_start=0.5": "no setting 'head_start'",
    f"{TARGET} --objective distill --set learning_rate=1e-4": "learning_rate is given, but the weights stay frozen",
    f"{TARGET} --objective distill --set weight_decay=0.1": "weight_decay is given, but the weights stay frozen",
    f"{TARGET} --objective distill --set assured=0.5": "in which heads compete freely",
    f"{SEARCH} --penalty 0.1 --set assured=0.5": "assured is 0.5 with a penalty",
    f"{IMPORTANCE} --set temperature=0.5": "temperature is given, which a gate of kind soft does not use",
    f"{IMPORTANCE} --set sparsity=0.5": "no setting 'sparsity'",
    f"{IMPORTANCE} --method attention --set rate=0.5": "attention maps need no gate",
    f"{PRETRAIN} --set pattern.radius=2": "names no builder",
    f"{PRETRAIN} --pattern p.safetensors --set pattern.radius=2": "names no builder",
    f"{PRETRAIN} --devices 2": "--devices was given without --dry-run",
    f"{FINETUNE} --grid --learning-rate 1e-5": "--grid tries learning rates",
    f"{FINETUNE} --set task=mrpc": "task has an option of its own",
    "prune found --sparsity 0.5 --seed 1 --out new": "--seed was given without --random",
    "pattern p.safetensors --heads 4": "is a saved pattern",
    "pattern random --set sparsity=0.5 --sparsity 0.6": "sparsity has an option of its own",
    "finetune rte --data hub:default --check-data": "is a data set of the hub",
    "bench encoder --model minilm --length 0": "rows of 0 tokens",
    "theory --length 12": "--length was given without --pattern",
    f"{STUDY} --gpus 1": "only the engine ray uses",
    "prepare builtin:python-docs --model minilm --train-vocab 500 --out new": "has a vocabulary of its own",
    # What is not there, or is something else
    "search --model minilmm --corpus corpus --steps 2 --sparsity 0.7 --out new": "no model folder 'minilmm'",
    "prune found --sparsity 0.5 --out new": "is a search, which has found its pattern already",
    f"{IMPORTANCE} --beside nope": "nope holds neither",
    f"{IMPORTANCE} --beside found": "found is a search",
    f"{IMPORTANCE[:-4]} file": "file is a file",
    f"{FINETUNE} --pattern sun": "no pattern called 'sun'",
    "prune found --sparsity 0.5 --out folder": "folder is a folder",
    "pattern star --figure folder": "folder is a folder",
    f"{STUDY} --finished nope": "no records nope",
    f"{STUDY} --model scratch:huge": "no model 'scratch:huge'",
    # Sizes
    f"{TARGET} --length 10000000": "GiB of memory",
    f"{IMPORTANCE} --length 10000000": "GiB of memory",
    f"{PRETRAIN} --length 10000000 --batch-size 32": "GiB of memory",
    f"{PRETRAIN} --batch-size 1000000000": "GiB of memory",
    f"{FINETUNE} --length 600": "has 512 positions",
    f"{TASK} --length 600": "has 512 positions",
    "demo --length 10000000 --out new": "GiB of memory",
    "demo --search-length 10000000 --out new": "GiB of memory",
    "pattern full --length 10000000": "GiB of memory",
    "theory --pattern full --length 10000000": "GiB of memory",
    "bench attention --length 10000000": "GiB of memory",
}


def _placed(command: str, place: Path, out: Path) -> list[str]:
    command = command.replace("--corpus corpus", f"--corpus {place / 'corpus'}")
    return shlex.split(command.replace("--out new", f"--out {out}"))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus, a finished search, a pattern, a file and a folder."""
    place = tmp_path_factory.mktemp("mistakes")
    prepare_corpus(["builtin:python-docs"], place / "corpus", model="scratch:tiny", train_vocab=400, workers=1)
    patterns.star(16).save(place / "p.safetensors")
    (place / "file").touch()
    (place / "folder").mkdir()
    done = CliRunner().invoke(app, _placed(TARGET, place, place / "found"), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return place


@pytest.mark.parametrize("command", MISTAKES)
def test_a_mistake_is_one_sentence_and_leaves_nothing(
    command: str, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(place)
    monkeypatch.setattr(sys, "argv", ["sparsebert", *shlex.split(command)])
    before = set(place.iterdir())
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr().err.strip().splitlines()
    assert ended.value.code == 2, said
    assert said[-1].startswith("error: ")
    assert MISTAKES[command] in said[-1]
    assert set(place.iterdir()) == before


def test_a_start_that_failed_does_not_bind_the_next_one(place: Path, tmp_path: Path) -> None:
    command = _placed(TARGET, place, tmp_path / "run")
    for wrong in ("rate=abc", "micro_batches=3", "warmup_steps=9"):
        assert CliRunner().invoke(app, [*command, "--set", wrong]).exit_code != 0
        assert not (tmp_path / "run").exists()
    assert CliRunner().invoke(app, command, catch_exceptions=False).exit_code == 0


def test_positions_are_extended_and_that_is_said(place: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    command = f"{PRETRAIN} --model {place / 'found'} --length 520 --set num_held_out=1 --pattern star"
    done = CliRunner().invoke(app, _placed(command, place, tmp_path / "run"), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "positions extended from 512 to 520" in caplog.text


def test_a_search_says_that_positions_are_extended(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without this the line above would be logged and never seen."""
    levels: list[int] = []
    monkeypatch.setattr("logging.basicConfig", lambda **given: levels.append(given["level"]))
    CliRunner().invoke(app, _placed(TARGET, place, tmp_path / "run"))
    assert levels == [logging.INFO]
