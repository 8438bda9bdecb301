import pytest

from sparsebert import gates, patterns
from sparsebert.errors import ConfigError, GateError, PatternError
from sparsebert.memory import require_memory


def test_what_no_machine_has_is_refused_and_what_fits_is_not() -> None:
    require_memory(1.0, "a byte", "nothing")
    with pytest.raises(ConfigError, match=r"a universe needs at least .* GiB of memory .*; choose a smaller one"):
        require_memory(1e30, "a universe", "choose a smaller one")


@pytest.mark.parametrize("gate", [gates.Structured, gates.Unstructured, gates.Soft])
def test_a_gate_that_cannot_be_held_is_refused_before_it_is_made(gate: type[gates.Gate]) -> None:
    with pytest.raises(GateError, match="10000000 x 10000000 entries"):
        gate(10_000_000, 12)  # type: ignore[arg-type,call-arg]


@pytest.mark.parametrize("name", ["full", "random", "strided", "fixed"])
def test_a_pattern_that_cannot_be_held_is_refused_before_it_is_made(name: str) -> None:
    with pytest.raises(PatternError, match=f"{name} of length 10000000.*GiB"):
        patterns.named(name, 10_000_000)


def test_heads_that_cannot_be_held_are_refused_before_they_are_made() -> None:
    with pytest.raises(PatternError, match="choose fewer heads"):
        patterns.star(128, heads=10**12)
