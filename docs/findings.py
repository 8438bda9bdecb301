"""The findings table of the README, from results/findings.json."""

import json
from pathlib import Path

from sparsebert.report.judging.findings import Finding
from sparsebert.report.rendering.markdown import findings_table

FINDINGS = Path(__file__).resolve().parent / "results" / "findings.json"
COLUMNS = ("#", "claim", "effect", "95 % interval", "unit", "seeds", "verdict")
CLAIMS = range(1, 10)  # what else the paper says in words is in results/evidence.md


def findings() -> str:
    found = [Finding(**one) for one in json.loads(FINDINGS.read_text(encoding="utf-8"))]
    return "\n".join(findings_table((one for one in found if one.number in CLAIMS), COLUMNS))
