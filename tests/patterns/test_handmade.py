"""The six hand-made patterns: pictures drawn by hand, and the paper's figures at n = 128."""

import pytest

from sparsebert import patterns
from sparsebert.errors import PatternError

LENGTHS = (16, 64, 128, 256, 512)


def test_star_keeps_neighbours_and_the_first_token() -> None:
    assert patterns.star(length=4).picture() == "####\n###.\n####\n#.##"


def test_strided_keeps_near_distances_and_multiples_of_the_stride() -> None:
    assert patterns.strided(length=6, stride=3).picture() == (
        "####..\n"  #
        "#####.\n"
        "######\n"
        "######\n"
        ".#####\n"
        "..####"
    )


def test_fixed_keeps_the_own_block_and_the_last_column_of_every_block() -> None:
    assert patterns.fixed(length=6, stride=3).picture() == (
        "###..#\n"  #
        "###..#\n"
        "###..#\n"
        "..####\n"
        "..####\n"
        "..####"
    )


def test_log_sparse_keeps_distances_that_double() -> None:
    assert patterns.log_sparse(length=6).picture() == (
        "###.#.\n"  #
        "####.#\n"
        "#####.\n"
        ".#####\n"
        "#.####\n"
        ".#.###"
    )


def test_longformer_keeps_a_window_and_the_given_globals() -> None:
    assert patterns.longformer(length=5, radius=1, globals_at=[3]).picture() == (
        "##.#.\n"  #
        "####.\n"
        ".###.\n"
        "#####\n"
        "...##"
    )


@pytest.mark.parametrize(
    ("name", "kept"), [("strided", 4852), ("fixed", 4480), ("log_sparse", 1666), ("star", 634), ("full", 128 * 128)]
)
def test_kept_entries_at_128_are_the_papers(name: str, kept: int) -> None:
    pattern = patterns.named(name, 128)
    assert pattern.kept == kept
    assert pattern.without_diagonal().kept == kept - 128


@pytest.mark.parametrize(("reading", "kept"), [("text", 1124), ("table", 1844)])
def test_longformer_at_128_with_globals_inside_and_apart(reading: str, kept: int) -> None:
    pattern = patterns.named("longformer", 128, reading=reading, globals_at=[40, 90])
    assert pattern.kept == kept
    assert pattern.without_diagonal().kept == kept - 128


def test_longformer_draws_its_globals_per_head() -> None:
    pattern = patterns.longformer(128, heads=4, seed=3)
    assert len({tuple(pattern.entries(head)) for head in range(4)}) == 4
    assert all(1844 <= len(pattern.entries(head)) <= 1864 for head in range(4))


def test_big_bird_is_93_2_percent_sparse_for_most_seeds() -> None:
    close = [abs(patterns.big_bird(128, seed=seed).sparsity - 0.932) <= 0.001 for seed in range(50)]
    assert sum(close) >= 45


def test_big_bird_draws_each_head_apart_and_the_same_seed_alike() -> None:
    pattern = patterns.big_bird(64, heads=3, seed=5)
    assert pattern == patterns.big_bird(64, heads=3, seed=5)
    assert pattern != patterns.big_bird(64, heads=3, seed=6)
    assert len({tuple(pattern.entries(head)) for head in range(3)}) == 3


@pytest.mark.parametrize("n", LENGTHS)
def test_closed_forms_hold(n: int) -> None:
    powers = (n - 1).bit_length() - 1
    assert patterns.star(n).kept == 5 * n - 6
    assert patterns.fixed(n).kept == n * (n // 4 + 3)
    assert patterns.log_sparse(n).kept == n + 2 * ((powers + 1) * n - (2 ** (powers + 1) - 1))
    near = 2 * sum(n - k for k in (1, 2, 3))
    far = 2 * sum(n - 4 * k for k in range(1, n // 4))
    assert patterns.strided(n).kept == n + near + far
    assert patterns.border(n).kept == 4 * n - 4
    assert patterns.window(n, radius=2).kept == 5 * n - 6


@pytest.mark.parametrize("name", ["strided", "fixed", "log_sparse", "star", "full", "window", "border"])
def test_every_pattern_exists_at_length_one(name: str) -> None:
    assert patterns.named(name, 1).kept == 1


def test_a_star_for_very_long_inputs_costs_what_it_keeps() -> None:
    pattern = patterns.star(65_536, heads=12)
    assert pattern.kept == 12 * (5 * 65_536 - 6)
    assert pattern.keys.nbytes + pattern.row_starts.nbytes < 32 * 2**20


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("window", {"radius": "abc"}),
        ("strided", {"stride": 1.5}),
        ("fixed", {"summary": -1}),
        ("random", {"sparsity": "most"}),
        ("longformer", {"globals_at": [200]}),
        ("longformer", {"num_globals": -1}),
        ("big_bird", {"num_random": True}),
    ],
)
def test_an_argument_that_cannot_be_is_refused_by_name(name: str, arguments: dict[str, object]) -> None:
    with pytest.raises(PatternError, match=f"{name} was given {next(iter(arguments))}="):
        patterns.named(name, 128, **arguments)
