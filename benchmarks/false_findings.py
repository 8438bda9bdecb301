"""How often are findings wrong where there is nothing to find? Counts verdicts on synthetic studies of pure noise.

python benchmarks/false_findings.py [TRIALS]

First table: two-sided false alarms of one comparison at 5 %, for the interval in use and for what it was chosen over
(bootstrap over pairs; bootstrap over seeds, then tasks). Second table: families of claims 4 to 9 with any false
`reproduced`, each claim exactly at the edge of its null, at two sizes of the noise that a seed's tasks share.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from sparsebert import draws
from sparsebert.report.judging.findings import judge
from sparsebert.report.judging.statistics import estimate
from tests.report.synthetic import NOTHING, World, make_study

_BLOCKS, _RESAMPLES = 8, 1000


def used(table: np.ndarray, _: np.random.Generator) -> bool:
    pairs = {(str(block), seed): float(value) for (seed, block), value in np.ndenumerate(table)}
    found = estimate(pairs)
    return min(found.p, found.p_against) < 0.05


def over_pairs(table: np.ndarray, random: np.random.Generator) -> bool:
    flat = table.ravel()
    return _excludes_zero(flat[random.integers(0, flat.size, (_RESAMPLES, flat.size))].mean(1))


def over_seeds_then_tasks(table: np.ndarray, random: np.random.Generator) -> bool:
    seeds, blocks = table.shape
    chosen = random.integers(0, seeds, (_RESAMPLES, seeds, 1))
    return _excludes_zero(table[chosen, random.integers(0, blocks, (_RESAMPLES, seeds, blocks))].mean((1, 2)))


def _excludes_zero(means: np.ndarray) -> bool:
    low, high = np.quantile(means, [0.025, 0.975])
    return bool(low > 0 or high < 0)


def alarms(wrong: Callable[[np.ndarray, np.random.Generator], bool], seeds: int, shared: float, trials: int) -> float:
    random = draws.generator(seeds, f"benchmarks/false findings/{shared}")
    count = 0
    for _ in range(trials):
        table = random.normal(0, 1, (seeds, _BLOCKS)) + random.normal(0, shared, (seeds, 1))
        count += wrong(table, random)
    return count / trials


def false_families(seeds: int, shared: float, trials: int) -> float:
    wrong = 0
    for draw in range(trials):
        world = World(effects=NOTHING, tasks=("qnli", "mrpc", "rte"), seeds=seeds, seed_noise=shared, draw=draw)
        wrong += any(one.verdict == "reproduced" for one in judge(make_study(world)) if 4 <= one.number <= 9)
    return wrong / trials


def main() -> None:
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    print(f"False alarms of one comparison over {_BLOCKS} tasks, {trials} trials, promised 0.05\n")
    print("| seeds | noise shared by a seed's tasks | bootstrap over pairs | over seeds, then tasks | in use |")
    print("|---|---|---|---|---|")
    for seeds in (2, 3, 5, 10):
        for shared in (0.0, 0.5, 1.0):
            rates = [alarms(one, seeds, shared, trials) for one in (over_pairs, over_seeds_then_tasks, used)]
            print(f"| {seeds} | {shared} | {' | '.join(f'{rate:.3f}' for rate in rates)} |", flush=True)
    families = max(trials // 10, 1)
    print(f"\nFamilies of claims 4 to 9 with a false `reproduced`, {families} studies each, promised 0.05\n")
    print("| seeds | shared noise, points | rate |\n|---|---|---|")
    for seeds in (3, 5):
        for shared in (0.1, 0.5):
            print(f"| {seeds} | {shared} | {false_families(seeds, shared, families):.3f} |", flush=True)


if __name__ == "__main__":
    main()
