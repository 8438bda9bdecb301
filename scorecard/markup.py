"""S4: a study whose names, labels and texts try to be code, opened as a page in Chromium."""

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

from scorecard.row import Row, Trial, require
from sparsebert.patterns import star
from sparsebert.report.writing import write_report
from tests.browser.conftest import ARGUMENTS
from tests.report.synthetic import World, write_study

PAYLOADS = [
    "<script>window.harm=1</script>",
    '<img src=x onerror="window.harm=1">',
    "'\"><svg onload=window.harm=1>",
    "</script><script>window.harm=1</script>",
    "</style><script>window.harm=1</script>",
    "</title><script>window.harm=1</script>",
    "<!--<script>window.harm=1//-->",
    "javascript:window.harm=1",
    "&lt;script&gt;window.harm=1&lt;/script&gt;<script>window.harm=1</script>",
    "${window.harm=1}`;window.harm=1;//",
    "\u2028window.harm=1;//",
    '<iframe srcdoc="<script>parent.harm=1</script>"></iframe>',
    '<a href="javascript:window.harm=1" autofocus onfocus="window.harm=1">x</a>',
    "]]><script>window.harm=1</script>",
]


def hostile_names(trial: Trial) -> None:
    payload = PAYLOADS[trial.number]
    study, page = trial.folder / "study", trial.folder / "report.html"
    write_study(World(length=32, heads=2, seeds=2, prefix=payload, tasks=("rte",)), study)
    _everywhere(study, payload)
    write_report(study, page)
    shown = f"{star(length=8)._repr_html_()}{_named(payload)._repr_html_()}"
    (trial.folder / "notebook.html").write_text(f"<!doctype html><meta charset=utf-8>{shown}")
    for path in (page, trial.folder / "notebook.html"):
        _open(path, payload)


def _named(payload: str) -> Any:
    return dataclasses.replace(star(length=8), rule={"builder": payload})


def _everywhere(study: Path, payload: str) -> None:
    """The payload in every text of study.json that is a label."""
    path = study / "study.json"
    found = json.loads(path.read_text())
    for run in found.get("runs", []):
        run["label"] = payload + str(run.get("label", ""))
    path.write_text(json.dumps(found))


def _open(path: Path, payload: str) -> None:
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium") or shutil.which("chromium-browser")
    require(program, "there is no chromium on this machine")
    requests: list[str] = []
    with sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=program, args=ARGUMENTS)
        page = browser.new_page()
        page.on("request", lambda request: requests.append(request.url))
        page.on("dialog", lambda dialog: requests.append(f"a dialog: {dialog.message}"))
        page.goto(path.as_uri())
        for button in page.query_selector_all("button, summary, th")[:40]:
            if button.is_visible():
                button.click(timeout=2000, no_wait_after=True)
        page.wait_for_timeout(200)
        harm = page.evaluate("window.harm")
        browser.close()
    require(harm is None, f"{payload!r} was run in {path.name}")
    beyond = [url for url in requests if url != path.as_uri() and not url.startswith(("data:", "blob:"))]
    require(not beyond, f"{payload!r}: {path.name} asked for {beyond[:3]}")


ROWS = [
    Row(
        "S4",
        "the report and the notebook view of a study whose names and labels hold HTML and scripts",
        "escaped; Chromium runs nothing",
        len(PAYLOADS),
        hostile_names,
        unit="payloads",
    )
]
