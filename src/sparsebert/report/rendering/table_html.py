"""Tables as HTML: ours with the paper's below it, sortable, and each number a link to its runs."""

from sparsebert.report.rendering.figures.svg import Link
from sparsebert.report.rendering.markup import Markup, join, tag
from sparsebert.report.rendering.tables import Cell, Row, Table, said


def table_html(table: Table, link: Link, first: str = "") -> Markup:
    """A heading row, a body for each group, and a button for CSV (which the script fills in)."""
    head = tag(
        "tr",
        _heading(first, 0),
        *(_heading(title, place) for place, title in enumerate(table.columns, 1)),
    )
    groups = list(dict.fromkeys(row.group for row in table.rows))
    bodies = [_body(table, group, link) for group in groups]
    return tag(
        "div",
        tag(
            "div",
            tag("h3", table.title),
            tag("button", "CSV", type="button", class_="csv", data_name=table.key, aria_label=f"{table.title} as CSV"),
            class_="table-head",
        ),
        tag("p", table.caption, _key(table), class_="caption"),
        tag("div", tag("table", tag("thead", head), *bodies, id=f"table-{table.key}"), class_="scroll", tabindex="0"),
        *(tag("p", note, class_="note") for note in table.notes),
        class_="table-box",
    )


def _key(table: Table) -> Markup | None:
    if not table.has_paper:
        return None
    return join(
        " ", tag("span", "Large: ours; ", class_="ours-key"), tag("span", "small: the paper's.", class_="paper")
    )


def _heading(title: str, column: int) -> Markup:
    button = tag("button", title or "\N{NO-BREAK SPACE}", type="button", data_column=column, class_="sort")
    return tag("th", button, scope="col", aria_sort="none")


def _body(table: Table, group: str, link: Link) -> Markup:
    title = tag("tr", tag("th", group, colspan=len(table.columns) + 1, scope="colgroup"), class_="group")
    rows = [_row(row, table.has_paper, link) for row in table.rows if row.group == group]
    return tag("tbody", title if group else None, *rows)


def _row(row: Row, has_paper: bool, link: Link) -> Markup:
    label = tag("th", row.label, scope="row", data_value=row.label)
    return tag("tr", label, *(_cell(cell, has_paper, link) for cell in row.cells))


def _cell(cell: Cell, has_paper: bool, link: Link) -> Markup:
    words, where = said(cell.value, cell.digits), link(cell.runs)
    reach = cell.half_width
    spread = None if reach is None else tag("span", f"±{reach}", class_="spread", title="95 % interval over seeds")
    ours: Markup | str = words
    if where and cell.value is not None:
        ours = tag("a", words, href=where, data_runs=" ".join(cell.runs), class_="ours")
    elif cell.value is not None:
        ours = tag("span", words, class_="ours")
    alone = cell.value is None and cell.paper is not None  # the paper's number needs no dash above it
    is_empty = cell.value is None and cell.paper is None
    below = tag("span", said(cell.paper, cell.digits), class_="paper") if has_paper and not is_empty else None
    return tag(
        "td",
        tag("span", None if alone else ours, spread, below, class_="pair") if has_paper or spread else ours,
        data_value=_raw(cell.value),
        data_paper=_raw(cell.paper) if has_paper else None,
        class_="text" if isinstance(cell.value, str) and not has_paper else None,
    )


def _raw(value: float | str | None) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else f"{value:.6g}"
