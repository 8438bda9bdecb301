"""A setting is what its annotation says, from Python and as text alike."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

from sparsebert.errors import ConfigError, GateError
from sparsebert.gates.schedules import Schedule
from sparsebert.settings import (
    Count,
    Declared,
    InnerShare,
    Positive,
    check,
    declared,
    fits,
    read,
    refuse_unknown,
    words,
)


@dataclass(frozen=True)
class Oven:
    heat: Positive  # degrees above the room's
    minutes: Count = 30
    mode: Literal["fan", "grill"] = "fan"  # which element is on

    def __post_init__(self) -> None:
        check(self)


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("12", int, 12),
        ("1e3", int, 1000),
        ("1", float, 1.0),
        ("2e-5", float, 2e-5),
        ("True", bool, True),
        ("no", bool, False),
        ("fan", Literal["fan", "grill"], "fan"),
        ("2", Literal[1, 2], 2),
        ("none", float | None, None),
        ("0.5", float | None, 0.5),
        ("[0.9, 0.99]", tuple[float, float], (0.9, 0.99)),
        ("0.9,0.99", tuple[float, float], (0.9, 0.99)),
        ("rte, mrpc", tuple[str, ...], ("rte", "mrpc")),
        ("[]", tuple[str, ...], ()),
        ("1,2", Sequence[int] | None, [1, 2]),
        ('{"a": 2}', dict[str, Count], {"a": 2}),
        ('"text"', str, "text"),
        ("a/b", Path, Path("a/b")),
        ('["linear", 1.0, 0.4]', Schedule, ["linear", 1.0, 0.4]),
    ],
)
def test_text_becomes_a_value_of_the_declared_type(text: str, kind: Any, value: object) -> None:
    found = read(text, kind)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("abc", int),
        ("1.5", int),
        ("inf", int),
        ("nan", float),
        ("", float),
        ("0", Count),
        ("maybe", bool),
        ("2", bool),
        ("oven", Literal["fan", "grill"]),
        ("abc", float | None),
        ("none", float),
        ("0.9", tuple[float, float]),
        ("0.9,x", tuple[float, float]),
        ("[1", tuple[int, ...]),
        ('{"a": 0}', dict[str, Count]),
        ("[1]", dict[str, Any]),
        ("abc", Schedule),
        ('["linear", 1.0]', Schedule),
        ("true", Schedule),
    ],
)
def test_text_that_spells_no_such_value_is_refused(text: str, kind: Any) -> None:
    with pytest.raises(ConfigError, match=r"^heat is .*; expected "):
        Declared("heat", kind).read(text)


def test_a_dataclass_holds_its_fields_to_their_annotations_and_says_what_they_mean() -> None:
    with pytest.raises(ConfigError, match=r"^heat is 0; expected a number above 0 \(degrees above the room's\)$"):
        Oven(heat=0)
    with pytest.raises(ConfigError, match=r"^minutes is 2.5; expected a whole number of at least 1$"):
        Oven(heat=1, minutes=2.5)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"^mode is 'oven'; expected fan or grill \(which element is on\)$"):
        Oven(heat=1, mode="oven")  # type: ignore[arg-type]


def test_the_arguments_of_a_function_are_declared_by_its_signature() -> None:
    def window(length: int, *, radius: int = 1) -> None: ...

    assert list(declared(window)) == ["radius"]
    with pytest.raises(ConfigError, match="radius is 'abc'; expected a whole number"):
        declared(window)["radius"].read("abc")


@pytest.mark.parametrize(
    ("value", "kind", "does"),
    [
        (True, int, False),
        (1, float, True),
        (1, bool, False),
        (float("inf"), float, False),
        (0.0, InnerShare, False),
        (1.0, InnerShare, False),
        ((1, 2), tuple[int, ...], True),
        ([1, 2], tuple[int, ...], False),
        (1, Literal[True], False),
        (None, int | None, True),
    ],
)
def test_what_fits_an_annotation(value: object, kind: Any, does: bool) -> None:
    assert fits(value, kind) is does


def test_an_annotation_in_words() -> None:
    assert words(tuple[InnerShare, ...]) == "a list, each a number above 0 and below 1"
    assert words(Count | None) == "a whole number of at least 1, or none"
    assert words(dict[str, Count]) == "a JSON object, each value a whole number of at least 1"


def test_an_unknown_name_is_refused_with_the_closest_known_one() -> None:
    refuse_unknown("rate", {"rate"})
    with pytest.raises(GateError, match=r"^a gate has no setting 'ratee'; did you mean rate\?$"):
        refuse_unknown("ratee", {"rate", "lead"}, GateError, "a gate has no setting")
    with pytest.raises(ConfigError, match=r"^there is no setting 'colour'; expected one of lead, rate$"):
        refuse_unknown("colour", {"rate", "lead"})
