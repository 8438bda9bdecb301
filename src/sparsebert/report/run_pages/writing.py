"""Pages of run folders and of comparisons: one call each, for the commands that made them."""

from pathlib import Path
from typing import Any

from sparsebert.files import read_json, write_atomic
from sparsebert.importance.categories import tabulate
from sparsebert.importance.saved import ATTENTION, load_importance
from sparsebert.patterns import Pattern
from sparsebert.report.rendering.tables import Cell, Row, Table
from sparsebert.report.run_pages.comparison import comparison_section, comparison_tiles
from sparsebert.report.run_pages.importance import Found, importance_section, importance_sources, importance_tiles
from sparsebert.report.run_pages.path import path_section
from sparsebert.report.run_pages.pattern import learned_source, pattern_section, pattern_source, pattern_tiles
from sparsebert.report.run_pages.sections import Listing, RunPage, Section, Tile, facts_of
from sparsebert.training.comparison import ModelComparison

PAGE = "report.html"
_SETTINGS = (
    ("model", "Model"),
    ("task", "Task"),
    ("objective", "Objective"),
    ("kind", "Kind"),
    ("steps", "Steps"),
    ("length", "Tokens in a row"),
    ("batch_size", "Rows a step"),
    ("seed", "Seed"),
    ("sparsebert", "Version"),
)


def write_importance_page(run: Path, beside: Path | None = None, seed: int = 0) -> Path:
    """beside: a run of the other method, shown next to it."""
    found = [found_in(one, seed) for one in (run, beside) if one is not None]
    facts = facts_of(read_json(run / "run.json"), _SETTINGS)
    loss = read_json(run / "result.json")["metrics"]["mlm_loss"]
    return write_page(
        run / PAGE,
        RunPage(
            kicker="SparseBERT, an importance run",
            heading="Which entries attention needs",
            lead=f"{found[0].title}: one value for every entry, a pair of a query and a key.",
            tiles=importance_tiles(found[0].table),
            facts=(*facts, ("Held-out MLM loss", f"{loss:.3f}")),
            sections=(importance_section(found),),
            sources=importance_sources(found),
            command="importance",
        ),
    )


def found_in(run: Path, seed: int) -> Found:
    """What an importance run learned."""
    values = load_importance(run)
    title = "Trained maps" if (run / ATTENTION).is_file() else "Learned P"
    return Found(title, values, tabulate(values, seed))


def write_search_page(run: Path) -> Path:
    return write_page(
        run / PAGE,
        RunPage(
            kicker="SparseBERT, a search",
            heading="What was kept, and what it cost",
            lead="A gate learned which entries the model needs, and was frozen into a pattern.",
            tiles=search_tiles(run),
            facts=facts_of(read_json(run / "run.json"), _SETTINGS),
            sections=(*search_sections(run), path_section(run)),
            sources=(search_source(run),),
            command="search",
        ),
    )


def search_tiles(run: Path) -> tuple[Tile, ...]:
    made, result = comparison_of(run), read_json(run / "result.json")
    score = Tile(f"{result['score']:.4g}", f"held-out {result['metric']}".replace("_", " "))
    cost = (score,) if made is None else comparison_tiles(made)[:1]
    return (*pattern_tiles(pattern_of_run(run)), *cost)


def search_sections(run: Path) -> tuple[Section, ...]:
    """What was kept and, where the dense model was the teacher, what it cost."""
    made, result = comparison_of(run), read_json(run / "result.json")
    kept = pattern_section(pattern_of_run(run))
    if made is None:
        return (kept,)
    cost = comparison_section(made)
    return kept, Section(cost.key, cost.link, cost.title, cost.lead, (*cost.parts, *_sparsities(result)))


def search_source(run: Path) -> dict[str, Any]:
    return learned_source("Learned pattern", run, pattern_of_run(run))


def _sparsities(result: dict[str, Any]) -> tuple[Listing, ...]:
    """The same ranking at other sparsities, where the search was asked for them."""
    rows = tuple(
        Row(
            f"{one['sparsity']:.2%}",
            (Cell(one["hidden_error"], digits=4), Cell(1 - one["embedding_distance"], digits=4)),
        )
        for one in result.get("at_sparsities", [])
    )
    caption = "Picked from the same pattern file: pattern.at_sparsity(...)."
    columns = ("Hidden error", "Cosine")
    table = Table("sparsities", "At other sparsities", caption, columns, rows, has_paper=False)
    return (Listing(table, "Sparsity"),) if rows else ()


def write_adapt_page(run: Path) -> Path:
    made, pattern = ModelComparison.from_json(read_json(run / "comparison.json")), pattern_of_run(run)
    return write_page(
        run / PAGE,
        RunPage(
            kicker="SparseBERT, weights adapted to a pattern",
            heading="Weights that got used to their pattern",
            lead="The model learned to make, under its pattern, the states that the dense model makes.",
            tiles=(*pattern_tiles(pattern), *comparison_tiles(made)[:1]),
            facts=facts_of(read_json(run / "run.json"), _SETTINGS),
            sections=(comparison_section(made), pattern_section(pattern), path_section(run)),
            sources=(pattern_source("Pattern of the model", pattern, "as the model runs it"),),
            command="adapt",
        ),
    )


def write_comparison_page(out: Path, dense: str, sparse: str, made: ModelComparison, pattern: Pattern | None) -> Path:
    """Two models held against each other. pattern: of the second."""
    kept = () if pattern is None else (pattern_section(pattern),)
    source = () if pattern is None else (pattern_source("Pattern of the model", pattern, "as the model runs it"),)
    return write_page(
        out,
        RunPage(
            kicker=f"SparseBERT, {sparse} against {dense}",
            heading="What one model keeps of another",
            lead="Both models read the same held-out text.",
            tiles=(Tile(f"{made.sparsity:.1%}", "of the entries are left out"), *comparison_tiles(made)),
            facts=(("Held against", dense), ("Model", sparse), ("Held-out texts", str(made.rows))),
            sections=(comparison_section(made), *kept),
            sources=source,
            command="compare",
        ),
    )


def pattern_of_run(run: Path) -> Pattern:
    return Pattern.load(run / "pattern.safetensors")


def comparison_of(run: Path) -> ModelComparison | None:
    path = run / "comparison.json"
    return ModelComparison.from_json(read_json(path)) if path.is_file() else None


def write_page(out: Path, page: RunPage) -> Path:
    write_atomic(out, page.html().encode(errors="replace"))
    return out
