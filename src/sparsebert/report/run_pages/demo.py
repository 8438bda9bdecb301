"""The page of the demo: one table of what was gained and lost, and everything that its two runs found."""

from pathlib import Path

from sparsebert.files import read_json
from sparsebert.report.rendering.tables import Cell, Row, Table
from sparsebert.report.run_pages.comparison import comparison_section
from sparsebert.report.run_pages.importance import importance_section, importance_sources
from sparsebert.report.run_pages.pattern import pattern_section
from sparsebert.report.run_pages.sections import Code, Listing, RunPage, Section, facts_of
from sparsebert.report.run_pages.writing import (
    PAGE,
    found_in,
    pattern_of_run,
    search_source,
    search_tiles,
    write_page,
)
from sparsebert.runs.timing import ForwardTime
from sparsebert.training.comparison import ModelComparison

_CODE = """from sparsebert import Pattern, load_model
model = load_model("search/model")  # runs, and saves, under the pattern
longer = Pattern.load("search/pattern.safetensors").at(4096)  # the same distances at another length
"""


class DemoResult:
    """Dense and sparse side by side: what both give, and what they take."""

    def __init__(self, search: Path, timing: ForwardTime) -> None:
        self.pattern = pattern_of_run(search)
        self.made = ModelComparison.from_json(read_json(search / "comparison.json"))
        self.timing = timing

    @property
    def rows(self) -> list[tuple[str, float, float, int]]:
        """What it is, of the dense model, of the sparse one, digits."""
        made, timing, length = self.made, self.timing, self.pattern.length
        return [
            ("Sparsity, %", 0.0, 100 * made.sparsity, 2),
            (f"Keys a query at {length:,} tokens", float(length), self.pattern.keys_per_query, 1),
            ("Cosine of embeddings to the dense model's", 1.0, made.embedding_cosine, 4),
            ("Relative error of hidden states", 0.0, made.hidden_error, 4),
            (f"CPU seconds of one text of {timing.length:,} tokens", timing.dense, timing.sparse, 2),
        ]

    @property
    def note(self) -> str:
        return (
            f"Cosine and error are means over {self.made.rows} held-out texts of up to {self.pattern.length} tokens. "
            f"Time is one forward of the encoder, with the same distances at {self.timing.length:,} tokens: "
            f"{self.timing.keys_per_query:.1f} keys a query. How near the model stays there is not measured here."
        )

    def as_text(self) -> str:
        lines = [f"{'':<46} {'dense':>9} {'sparse':>9}"]
        lines += [f"{name:<46} {dense:>9.{digits}f} {sparse:>9.{digits}f}" for name, dense, sparse, digits in self.rows]
        return "\n".join(lines)


def write_demo_page(out: Path, result: DemoResult, seed: int) -> Path:
    """out: the demo's folder, with its two runs in it."""
    search, found = out / "search", [found_in(out / "importance", seed)]
    return write_page(
        out / PAGE,
        RunPage(
            kicker="SparseBERT, demo",
            heading="What this machine learned",
            lead="Which entries of attention matter, which of them are enough, and what it costs to keep only these.",
            tiles=search_tiles(search),
            facts=_facts(out),
            sections=(
                _result_section(result),
                importance_section(found),
                pattern_section(result.pattern),
                comparison_section(result.made),
                Section("use", "Use", "What to do with it", "In the folder of this page:", (Code(_CODE),)),
            ),
            sources=(search_source(search), *importance_sources(found)),
            command="demo",
        ),
    )


def _facts(out: Path) -> tuple[tuple[str, str], ...]:
    about = {name: read_json(out / name / "run.json") for name in ("importance", "search")}
    sizes = {
        name.capitalize(): "{steps} steps of {batch_size} x {length} tokens".format_map(one["settings"])
        for name, one in about.items()
    }
    shared = facts_of(about["search"], (("seed", "Seed"), ("sparsebert", "Version")))
    return (("Model", about["importance"]["settings"]["model"]), *sizes.items(), *shared)


def _result_section(result: DemoResult) -> Section:
    rows = tuple(
        Row(name, (Cell(dense, digits=digits), Cell(sparse, digits=digits)))
        for name, dense, sparse, digits in result.rows
    )
    table = Table("result", "Dense and sparse", result.note, ("Dense", "Sparse"), rows, has_paper=False)
    lead = "The same weights, with all of attention and with what a search kept of it."
    return Section("result", "Result", "What was gained, and what was lost", lead, (Listing(table, ""),))
