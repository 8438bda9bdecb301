"""`python -m tests.faults.scorecard`: run the scorecard, or the rest of it, and write the page."""

import argparse
import os
import tempfile
from pathlib import Path

from tests.faults.scorecard import shim


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/results/reliability.md"))
    parser.add_argument("--state", type=Path, default=Path(tempfile.gettempdir()) / "sparsebert-faults")
    parser.add_argument("--rows", default="", help="names with commas; all but L1 where none are given")
    parser.add_argument("--trials-scale", type=float, default=1.0, help="share of the trials of each row")
    parser.add_argument("--fast", action="store_true", help="only the trials that are part of the test suite")
    parser.add_argument("--again", action="store_true", help="run trials that failed once more")
    options = parser.parse_args()
    os.environ.update(OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1", MPLBACKEND="Agg", TOKENIZERS_PARALLELISM="false")
    shim.loaded(options.state)

    from tests.faults.scorecard.reliability import write_report
    from tests.faults.scorecard.rows import ROWS
    from tests.faults.scorecard.runner import State, run_row
    from tests.faults.scorecard.warm import warm_up

    warm_up()

    state = State(options.state)
    wanted = options.rows.split(",") if options.rows else [row.name for row in ROWS if row.name != "L1"]
    unknown = set(wanted) - {row.name for row in ROWS}
    if unknown:
        parser.error(f"no rows {sorted(unknown)}; there are {', '.join(row.name for row in ROWS)}")
    for row in ROWS:
        if row.name in wanted:
            run_row(row, state, scale=options.trials_scale, fast=options.fast, again=options.again)
            write_report(ROWS, state, options.out)


if __name__ == "__main__":
    main()
