"""HTML and SVG built from parts: text is escaped unless it is already markup."""

import os
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Child = str | Markup | float | int | None


def tag(name: str, *children: Child, **attributes: Any) -> Markup:
    """An element; attributes of None are left out, a trailing underscore and inner ones are turned to HTML's."""
    words = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value), quote=True)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{words}>{join(*children)}</{name}>")


def join(*children: Child) -> Markup:
    return Markup(
        "".join(part if isinstance(part, Markup) else escape(str(part)) for part in children if part is not None)
    )


def void(name: str, **attributes: Any) -> Markup:
    """An element without an end, such as img."""
    return Markup(tag(name, **attributes).removesuffix(f"</{name}>"))


def relative_link(target: Path, page: Path) -> str:
    """From the page to a file or folder; quoted, and never something that a browser takes for a scheme."""
    way = os.path.relpath(target.resolve(), page.resolve().parent)
    return f"./{quote(Path(way).as_posix())}{'' if target.is_file() else '/'}"
