"""The findings table of the README, from results/findings.json."""

import json
from pathlib import Path
from typing import Any

from sparsebert.report.rendering.markdown import plain

FINDINGS = Path(__file__).resolve().parent / "results" / "findings.json"
CLAIMS = range(1, 10)  # what else the paper says in words is in results/evidence.md


def findings() -> str:
    found = {one["number"]: one for one in json.loads(FINDINGS.read_text(encoding="utf-8"))}
    rows = [_row(found[number]) for number in CLAIMS]
    return "\n".join(["| | claim | effect | 95 % interval | seeds | verdict |", "|---|---|---|---|---|---|", *rows])


def _row(one: dict[str, Any]) -> str:
    effect = interval = ""
    if one["effect"] is not None:
        effect = f"{one['effect']:+.3f} {one['unit']}"
        interval = f"{one['low']:+.3f} to {one['high']:+.3f}"
    verdict = f"**{one['verdict']}**" + (f": {plain(one['note'])}" if one["note"] else "")
    return f"| {one['number']} | {plain(one['statement'])} | {effect} | {interval} | {one['seeds']} | {verdict} |"
