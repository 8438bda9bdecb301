"""Draws are functions of their key alone."""

from sparsebert import draws


def test_the_same_key_gives_the_same_numbers_and_any_other_key_different_ones() -> None:
    def first(seed: int, stream: str, step: int, row: int) -> float:
        return float(draws.generator(seed, stream, step, row).random())

    assert first(1, "a", 2, 3) == first(1, "a", 2, 3)
    others = {first(0, "a", 2, 3), first(1, "b", 2, 3), first(1, "a", 3, 3), first(1, "a", 2, 4)}
    assert len(others | {first(1, "a", 2, 3)}) == 5


def test_rows_do_not_overlap_however_much_is_drawn() -> None:
    long = draws.generator(0, "a", 0, 0).integers(0, 2**63, 10_000)
    assert not set(long) & set(draws.generator(0, "a", 0, 1).integers(0, 2**63, 10_000))


def test_seeds_for_other_generators_fit_in_63_bits() -> None:
    seeds = {draws.seed_for(0, "torch", step) for step in range(100)}
    assert len(seeds) == 100
    assert all(0 <= seed < 2**63 for seed in seeds)
