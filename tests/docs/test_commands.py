"""Every command of the README and the docs is one that could be typed."""

from pathlib import Path

import pytest

from tests.docs.commands import commands, help_texts, problem
from tests.docs.pages import PAGES, blocks, code_in_lines, name_of


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_command_in_a_block_is_one_that_the_command_line_takes(page: Path) -> None:
    found = [(block.first_line, words) for block in blocks(page) for words in commands(block.code)]
    wrong = [f"line {line}: {' '.join(words)}: {problem(words)}" for line, words in found if problem(words)]
    assert wrong == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_command_in_a_line_has_its_options_and_files(page: Path) -> None:
    found = [words for span in code_in_lines(page) for words in commands(span) if len(words) > 1]
    wrong = [f"{' '.join(words)}: {problem(words, whole=False)}" for words in found if problem(words, whole=False)]
    assert wrong == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_block_that_calls_itself_sh_holds_commands_and_nothing_else(page: Path) -> None:
    for block in blocks(page):
        if block.language == "sh":
            lines = [line for line in block.code.replace("\\\n", " ").splitlines() if line.strip()]
            assert [line for line in lines if not list(commands(line))] == [], f"line {block.first_line}"


def test_every_example_in_a_help_text_is_one_that_the_command_line_takes() -> None:
    found = [words for text in help_texts() for words in commands(text)]
    assert len(found) > 20
    assert [f"{' '.join(words)}: {problem(words)}" for words in found if problem(words)] == []


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("sparsebert serch --corpus c", "no command serch"),
        ("sparsebert search --corpuss c", "search has no --corpuss"),
        ("sparsebert search --model minilm", "Missing parameter: out"),
        ("sparsebert pattern star --length many", "valid integer"),
        ("sparsebert bench attention --lenght 5", "attention has no --lenght"),
        ("python benchmarks/nothing.py", "no benchmarks/nothing.py"),
        ("python benchmarks/attention.py --repeats 5", "benchmarks/attention has no --repeats"),
        ("torchrun --nproc-per-node 2 -m sparsebert pretrain --modle m", "pretrain has no --modle"),
        ("make tests", "no make tests"),
        ("CASES=3 python -m pytest tests/nothing.py", "tests/nothing.py does not exist"),
    ],
)
def test_a_command_that_could_not_be_typed_is_noticed(command: str, said: str) -> None:
    (words,) = commands(command)
    assert said in (problem(words) or "")


def test_a_word_in_capitals_stands_for_a_number() -> None:
    (words,) = commands("sparsebert demo --out demo --seed S")
    assert problem(words) is None
