"""Writes results/two-protocols.md from the records of both protocols; where the second has none yet, nothing.

python docs/two_protocols.py [RECORDS_OF_MLM RECORDS_OF_DISTILL PAGE]
"""

import sys
from contextlib import ExitStack
from pathlib import Path

from sparsebert.report.judging.findings import judge
from sparsebert.report.rendering.two_protocols import two_protocols
from sparsebert.studies.record_store import unpacked
from sparsebert.studies.results import load_study

RESULTS = Path(__file__).resolve().parent / "results"


def write(mlm: Path, distill: Path, page: Path) -> None:
    with ExitStack() as opened:
        studies = [load_study(opened.enter_context(unpacked(one)), one) for one in (mlm, distill)]
        one, other = ((study, judge(study)) for study in studies)
        page.write_text(two_protocols(one, other), encoding="utf-8")


if __name__ == "__main__":
    usual = [RESULTS / name for name in ("runs.jsonl.zst", "distill.jsonl.zst", "two-protocols.md")]
    given = [Path(word) for word in sys.argv[1:]] or usual
    if given[1].exists():
        write(*given)
