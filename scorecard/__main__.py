"""`python -m scorecard`: run the scorecard, or the rest of it, and write the page."""

import argparse
import os
import tempfile
from pathlib import Path

from scorecard import shim


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m scorecard", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/results/reliability.md"), help="the page")
    parser.add_argument(
        "--state",
        type=Path,
        default=Path(tempfile.gettempdir()) / "sparsebert-faults",
        help="folder of the outcomes so far: a row that was interrupted goes on from there",
    )
    parser.add_argument("--rows", default="", help="names with commas; else all but L1 and what the page has finished")
    parser.add_argument("--trials-scale", type=float, default=1.0, help="share of the trials of each row")
    parser.add_argument("--fast", action="store_true", help="only the trials that are part of the test suite")
    parser.add_argument("--again", action="store_true", help="run trials that failed once more")
    parser.add_argument("--anew", action="store_true", help="run finished rows too, from their first trial on")
    options = parser.parse_args()
    os.environ.update(OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1", MPLBACKEND="Agg", TOKENIZERS_PARALLELISM="false")
    shim.loaded(options.state)

    from scorecard.reliability import read_page, write_page
    from scorecard.rows import ROWS
    from scorecard.runner import State, run_row
    from scorecard.warm import warm_up

    names = [row.name for row in ROWS]
    unknown = set(filter(None, options.rows.split(","))) - set(names)
    if unknown:
        parser.error(f"no rows {sorted(unknown)}; there are {', '.join(names)}")
    page = {} if options.anew else read_page(options.out)
    finished = {row.name for row in ROWS if row.name in page and page[row.name].is_finished(row)}
    wanted = options.rows.split(",") if options.rows else [name for name in names if name not in (*finished, "L1")]
    if not wanted:
        parser.exit(message=f"{options.out} has every row but L1 as finished; --rows or --anew runs them again\n")
    warm_up()
    state = State(options.state)
    for row in ROWS:
        if row.name in wanted:
            if options.anew:
                state.forget(row)
            run_row(row, state, scale=options.trials_scale, fast=options.fast, again=options.again)
            write_page(ROWS, state, options.out)


if __name__ == "__main__":
    main()
