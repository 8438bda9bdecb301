"""The theorem in pictures: the shifts of one input, the audit, the errors."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sparsebert.patterns.figures import blank_figure
from sparsebert.theory import exact
from sparsebert.theory.audit import AuditedLemma
from sparsebert.theory.grid import Grid

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")  # told apart by every kind of eye
_VERDICTS = {"holds": "#cfe8d5", "fails": "#f4b6a6", "none": "#eeeeee"}


def shifts_figure(grid: Grid, tokens: Sequence[int]) -> "Figure":
    """The levels of one input after every attention layer."""
    names, contexts = ["input"], list(tokens)
    levels = [[float(token) for token in tokens]]
    for step in exact.attention_layers(grid.rows(tokens), grid):
        names.append(step.name)
        contexts = [int(value) for value in exact.levels_of(step.rows, grid)]
        levels.append([float(value) for value in contexts])
    figure = blank_figure(9, 4.6)
    axes = figure.add_subplot()
    # Two tokens often differ by little on this scale; later ones are drawn thinner, so that none hides another.
    for token in range(grid.tokens):
        line = [row[token] for row in levels]
        colour = _COLOURS[token % len(_COLOURS)]
        label = f"token {token + 1}: {tokens[token]} → {contexts[token]:,}"
        axes.step(range(len(line)), line, where="mid", color=colour, linewidth=4.5 - 1.3 * min(token, 3), label=label)
    axes.set_yscale("symlog", linthresh=grid.num_levels, linscale=1.2)
    axes.axhspan(0, grid.num_levels - 1, color="#f3f3f3", zorder=0)
    # To the right of the last selective shift no token is on the grid any more, so that the words hide nothing.
    axes.text(len(names) - 1, (grid.num_levels - 1) / 3, "the grid, 0 .. N-1", ha="right", fontsize=8, color="#555555")
    decades = range(1, len(str(int(max(levels[-1])))), 1 if grid.tokens < 5 else 3)
    axes.set_yticks([0, *(10.0**decade for decade in decades)])
    axes.set_xticks(range(len(names)), names, rotation=90 if len(names) > 9 else 45, fontsize=8)
    axes.set_ylabel("level, in units of delta")
    axes.set_title(f"Selective and global shifts, n = {grid.tokens}, N = {grid.num_levels}", fontsize=11)
    axes.legend(loc="upper left", fontsize=8, frameon=False, bbox_to_anchor=(0.0, 0.97))
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def audit_figure(findings: Sequence[AuditedLemma]) -> "Figure":
    """Claims down, resolutions across; in a cell that fails, how many instances of the claim did."""
    shown = [finding for finding in findings if finding.violations_at]
    columns = sorted({resolution for finding in shown for resolution in finding.violations_at})
    figure = blank_figure(6.4 + 0.62 * len(columns), 1.0 + 0.235 * len(shown))
    axes = figure.add_subplot()
    for row, finding in enumerate(shown):
        for column, resolution in enumerate(columns):
            _cell(axes, row, column, finding.violations_at.get(resolution))
    bounds = shown[0].bounds
    axes.set_xlim(-0.5, len(columns) - 0.5)
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.set_xticks(range(len(columns)), [str(column) for column in columns])
    axes.xaxis.tick_top()
    axes.set_yticks(range(len(shown)), [finding.claim for finding in shown], fontsize=8)
    for label, finding in zip(axes.get_yticklabels(), shown, strict=True):
        label.set_color("#000000" if finding.source == "paper" else "#0072b2")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_title(
        f"1/delta   (n = {bounds.tokens}, d = {bounds.width}; green holds, red fails; blue text: the repair)",
        fontsize=9,
    )
    return figure


def _cell(axes: "Axes", row: int, column: int, violations: int | None) -> None:
    from matplotlib.patches import Rectangle

    kind = "none" if violations is None else "fails" if violations else "holds"
    axes.add_patch(Rectangle((column - 0.47, row - 0.44), 0.94, 0.88, color=_VERDICTS[kind], linewidth=0))
    if violations:
        axes.text(column, row, f"{violations:,}", ha="center", va="center", fontsize=7)


def approximation_figure(study: dict[str, Any]) -> "Figure":
    """Error against delta with marked rows and without, and against the score scale."""
    figure = blank_figure(13, 4.4)
    marked = [part for part in study["delta"] if part["marked"]]
    narrow = [part for part in study["delta"] if not part["marked"]]
    left, middle, right = (figure.add_subplot(1, 3, place) for place in (1, 2, 3))
    floor = study["floor_without_positions"]
    middle.axhline(floor, color="#555555", linestyle=":", linewidth=1)
    label = "no equivariant g below (first times last)"
    middle.text(0.34, floor * 0.98, label, va="top", ha="right", fontsize=7.5, color="#555555")
    _delta_panel(left, marked, "marked rows: error follows the modulus of f")
    _delta_panel(middle, narrow, "no positions: repeated tokens, and order lost")
    _scale_panel(right, study["sharpness"])
    return figure


def _delta_panel(axes: "Axes", parts: Sequence[dict[str, Any]], title: str) -> None:
    for part, colour in zip(parts, _COLOURS, strict=False):
        deltas = [1 / resolution for resolution in part["resolutions"]]
        width = f", d = {part['width']}" if part["width"] > 1 else ""
        label = f"{part['target']}{width}, p = {part['p']:g}: slope {part['last_slope']:.2f}"
        axes.loglog(deltas, part["errors"], "o-", color=colour, markersize=4, linewidth=1.4, label=label)
    axes.set_title(title, fontsize=10)
    _finish(axes, "delta", "d_p(f, g)")
    resolutions = sorted({resolution for part in parts for resolution in part["resolutions"]})
    axes.set_xticks([1 / r for r in resolutions], [f"1/{r}" for r in resolutions], fontsize=8)
    axes.minorticks_off()
    axes.yaxis.set_major_formatter("{x:g}")
    low, high = axes.get_ylim()
    axes.set_ylim(low * 0.95, high * 1.4)  # room for the words
    ticks = [tick for tick in (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0) if low <= tick <= high]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])


def _scale_panel(axes: "Axes", part: dict[str, Any]) -> None:
    for (ramp, errors), colour in zip(part["errors"].items(), _COLOURS, strict=False):
        axes.semilogx(
            part["scales"], errors, "o-", color=colour, markersize=4, linewidth=1.4, label=f"ramp {ramp} delta"
        )
    axes.axhline(part["hardmax"], color="#555555", linestyle=":", linewidth=1, label="hardmax and jumps")
    axes.set_title(f"softmax and ReLUs, {part['target']}, 1/delta = {part['resolution']}", fontsize=10)
    axes.set_xticks([4, 10, 20, 50, 100], ["4", "10", "20", "50", "100"])
    axes.minorticks_off()
    _finish(axes, "score scale (1/temperature), units of 1/delta²", f"d_{part['p']:g}(f, g)")


def _finish(axes: "Axes", across: str, up: str) -> None:
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.legend(fontsize=7.5, frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
