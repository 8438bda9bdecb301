"""What sparse attention cost, as a section: the error of hidden states by layer, the embeddings by length."""

from collections.abc import Iterable

from sparsebert.report.rendering.figures.shapes import Chart, Panel, Point, Series
from sparsebert.report.rendering.tables import Cell, Row, Table
from sparsebert.report.run_pages.sections import Listing, Section, Tile
from sparsebert.training.comparison import ModelComparison

_LEAD = (
    "The same held-out text through the dense model and through this one. The error is that of the hidden states, "
    "squared, relative to the dense ones: 0 is no difference. The cosine is between the two embeddings of a text: 1 is "
    "no difference."
)


def comparison_tiles(made: ModelComparison) -> tuple[Tile, ...]:
    return (
        Tile(f"{made.embedding_cosine:.4f}", "cosine of embeddings to the dense model's"),
        Tile(f"{made.hidden_error:.4f}", "relative error of hidden states"),
    )


def comparison_section(made: ModelComparison) -> Section:
    return Section("cost", "Cost", "What it cost", _LEAD, (_chart(made), *_tables(made)))


def _chart(made: ModelComparison) -> Chart:
    layers = Series("error of hidden states", tuple(Point(*one) for one in enumerate(made.layer_errors)), colour=0)
    lengths = tuple(Point(place, one.embedding_cosine) for place, one in enumerate(made.lengths))
    panels = (
        Panel("After each layer", "layer", "relative error", (layers,), _named(range(1, len(made.layer_errors) + 1))),
        Panel(
            "By length",
            "tokens",
            "cosine of embeddings",
            (Series("cosine of embeddings", lengths, colour=1),),
            _named(f"{one.shortest}-{one.longest}" for one in made.lengths),
        ),
    )
    caption = f"Means over {made.rows} held-out texts."
    return Chart("fidelity", "How near it stays to the dense model", caption, panels)


def _named(names: Iterable[object]) -> tuple[tuple[float, str], ...]:
    return tuple((float(place), str(name)) for place, name in enumerate(names))


def _tables(made: ModelComparison) -> tuple[Listing, ...]:
    whole = Row("all", (_count(made.rows), _figure(made.hidden_error), _figure(made.embedding_cosine)))
    lengths = [
        Row(
            f"{one.shortest} to {one.longest} tokens",
            (_count(one.rows), _figure(one.hidden_error), _figure(one.embedding_cosine)),
        )
        for one in made.lengths
    ]
    columns = ("Texts", "Hidden error", "Cosine")
    by_length = Table(
        "lengths", "By length", "Of held-out texts.", columns, (*lengths, whole), has_paper=False, notes=_notes(made)
    )
    names = tuple(f"Layer {place}" for place in range(1, len(made.layer_errors) + 1))
    errors = Row("Hidden error", tuple(map(_figure, made.layer_errors)))
    by_layer = Table("layers", "By layer", "After each layer.", names, (errors,), has_paper=False)
    return Listing(by_length, "Length"), Listing(by_layer, "")


def _notes(made: ModelComparison) -> tuple[str, ...]:
    if made.head_agreement is None:
        return ()
    return (f"The task's head gives the same answer on {made.head_agreement:.1%} of the texts.",)


def _count(value: int) -> Cell:
    return Cell(float(value), digits=0)


def _figure(value: float) -> Cell:
    return Cell(value, digits=4)
