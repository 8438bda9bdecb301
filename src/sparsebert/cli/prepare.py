"""`sparsebert prepare`: text files -> a corpus that every training command can read."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

if TYPE_CHECKING:
    from sparsebert.text import PrepareProgress, TokenStore


def prepare(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="Text: .txt or .jsonl, plain or packed with .gz or .zst; builtin:python-docs for a small text that "
            "needs no download; hub:OWNER/NAME (or hub:OWNER/NAME:CONFIG@SPLIT) for a data set of the hub.",
            show_default=False,
        ),
    ],
    model: Annotated[
        str,
        typer.Option(help="Whose vocabulary to use: minilm, a model folder, a hub id; scratch:* with --train-vocab."),
    ],
    out: Annotated[Path, typer.Option(help="The corpus folder to make, or to finish after an interruption.")],
    workers: Annotated[
        int | None,
        typer.Option(help="Processes that tokenise; the result does not depend on it.", show_default="all cores"),
    ] = None,
    train_vocab: Annotated[
        int | None, typer.Option(help="Train a WordPiece vocabulary of this size on the text, such as 30000.")
    ] = None,
    skip_bad_lines: Annotated[
        bool,
        typer.Option("--skip-bad-lines", help="Leave bad lines out and count them, instead of stopping at the first."),
    ] = False,
    held_out: Annotated[
        float | None,
        typer.Option(
            help="Share of the documents kept for validation, chosen by their text, so that more text moves none.",
            show_default="0.01; 0.1 for built-in text",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Chooses which documents are held out.")] = 0,
) -> None:
    """Turn text into token ids, once, for any number of training runs.

    Plain text has a title line, a paragraph a line, and a blank line between documents. JSON Lines has an object a
    line, with a field called text. Reading is strict: a bad line stops the run and is named.

    The same command on the same folder goes on after an interruption, without redoing what is finished.

    Try it: sparsebert prepare builtin:python-docs --model minilm --out corpus
    """
    from sparsebert.text import prepare_corpus

    console = Console(stderr=True)
    with _ProgressDisplay(console) as display:
        store = prepare_corpus(
            files,
            out,
            model=model,
            train_vocab=train_vocab,
            workers=workers,
            skip_bad_lines=skip_bad_lines,
            held_out=held_out,
            seed=seed,
            progress=display.update,
        )
    typer.echo("\n".join(summary(store)))


def summary(store: "TokenStore") -> list[str]:
    """What is in a corpus, in a few lines; skipped text is always said."""
    held_out = sum(entry.held_out_documents for entry in store.shards)
    repeated = store.manifest["counts"]["repeated_documents"]
    lines = [
        f"{store.path}: {store.num_documents:,} documents ({held_out:,} held out), {store.num_sentences:,} sentences, "
        f"{store.num_tokens:,} tokens, vocabulary of {store.vocab_size:,}",
        *(f"skipped: {count:,} {reason.replace('_', ' ')}" for reason, count in sorted(store.skipped.items())),
    ]
    return [*lines, f"note: {repeated:,} documents repeat the text of another one"] if repeated else lines


class _ProgressDisplay:
    """A progress bar on a terminal; a quiet line at each tenth elsewhere."""

    def __init__(self, console: Console) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:3.0f} %"))
        self._bar = Progress(*columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal)
        self._task = self._bar.add_task("reading", total=None)
        self._console = console
        self._tenths = 0

    def __enter__(self) -> "_ProgressDisplay":
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def update(self, progress: "PrepareProgress") -> None:
        reused = f", {progress.reused:,} shards taken over" if progress.reused else ""
        text = f"{progress.tokens:,} tokens{reused}"
        self._bar.update(self._task, total=progress.total, completed=progress.position, description=text)
        tenths = 10 * progress.position // progress.total if progress.total else progress.shards // 100
        if not self._console.is_terminal and tenths > self._tenths:
            self._tenths = tenths
            share = f"{100 * progress.position // progress.total} %, " if progress.total else ""
            self._console.print(f"prepare: {share}{text}", soft_wrap=True, highlight=False)
