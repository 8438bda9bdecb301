"""What every page shares: one file that holds its style, script and data, and fetches nothing."""

import hashlib
import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from sparsebert.importance.figures import heat_range
from sparsebert.report.judging.findings import Finding
from sparsebert.report.rendering.figures.axes import Axis
from sparsebert.report.rendering.figures.images import data_uri
from sparsebert.report.rendering.figures.layout import lay_out, told_point
from sparsebert.report.rendering.tables import raw, said, signed

Link = Callable[[tuple[str, ...]], str | None]  # from runs to a relative link


def document(template: str, link: Link, scripts: Iterable[str], data: Mapping[str, Any], **names: Any) -> str:
    """A template filled in. scripts: files of templates/. data: what they read, by the id of its element."""
    style, script = asset("report.css"), "\n".join(asset(name) for name in scripts)
    return (
        environment(link)
        .get_template(template)
        .render(
            policy=policy(style, script),
            style=Markup(style),
            script=Markup(script),
            data={key: embedded(value) for key, value in data.items()},
            **names,
        )
    )


def environment(link: Link) -> Environment:
    """Templates in which text is escaped, and a name that does not exist is an error."""
    made = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for function in (data_uri, heat_range, interval_axis, lay_out, raw, said, signed, told_point):
        made.globals[function.__name__] = function
    made.globals["link"] = link
    return made


def asset(name: str) -> str:
    return (Path(__file__).parent / "templates" / name).read_text(encoding="utf-8")


def interval_axis(finding: Finding) -> Axis:
    """Zero in the middle, and room for the interval and the margin."""
    reach = 1.15 * max(abs(finding.low or 0.0), abs(finding.high or 0.0), finding.margin or 0.0) or 1.0
    return Axis(-reach, reach, 0, 150)


def policy(style: str, script: str) -> str:
    """Nothing but this very style and script, and images that are inside the page."""
    return (
        "default-src 'none'; img-src data:; "
        f"style-src '{_hash(style)}'; script-src '{_hash(script)}'; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return "sha256-" + b64encode(hashlib.sha256(text.encode()).digest()).decode()


def embedded(value: Any) -> Markup:
    """JSON that cannot end the element it stands in."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))
