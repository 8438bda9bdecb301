"""Settings are typed where they are declared: an annotation says what a field may hold, a comment what it means.

    num_steps: Count  # optimiser steps, not micro-batches

check(self) in a dataclass's __post_init__ holds its fields to their annotations, whoever fills them in; read() turns
text, such as that of `--set num_steps=100`, into a value of the declared type.
"""

import difflib
import inspect
import json
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from numbers import Integral, Real
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Protocol, Union, get_args, get_origin, get_type_hints, runtime_checkable

from sparsebert.errors import ConfigError, SparseBertError

_YES, _NO, _NOTHING = ("true", "yes", "1"), ("false", "no", "0"), ("none", "null")


@dataclass(frozen=True)
class Range:
    """Bounds of a number, as metadata of its annotation."""

    low: float = -math.inf
    high: float = math.inf
    without_low: bool = False
    without_high: bool = False

    def holds(self, value: float) -> bool:
        above = value > self.low if self.without_low else value >= self.low
        return above and (value < self.high if self.without_high else value <= self.high)

    def words(self) -> str:
        low = f"above {self.low:g}" if self.without_low else f"of at least {self.low:g}"
        high = f"below {self.high:g}" if self.without_high else f"of at most {self.high:g}"
        return " and ".join([low] * math.isfinite(self.low) + [high] * math.isfinite(self.high))


Count = Annotated[int, Range(1)]
Natural = Annotated[int, Range(0)]
Positive = Annotated[float, Range(0, without_low=True)]
NotNegative = Annotated[float, Range(0)]
Share = Annotated[float, Range(0, 1)]
InnerShare = Annotated[float, Range(0, 1, without_low=True, without_high=True)]
ShareBelowOne = Annotated[float, Range(0, 1, without_high=True)]


@runtime_checkable
class FromJson(Protocol):
    """A type of a setting that is more than a number or a word: how it is spelled, and made from that spelling."""

    spelling: str

    def from_json(self, value: Any) -> Any: ...


@dataclass(frozen=True)
class Declared:
    """One setting as its owner declares it."""

    name: str
    kind: Any  # its annotation
    unit: str = ""  # its comment

    def fault(self, value: object) -> str:
        """What to say of a value that does not fit."""
        shown = value if isinstance(value, int | float) else repr(value)
        return f"{self.name} is {shown}; expected {words(self.kind)}" + (f" ({self.unit})" if self.unit else "")

    def read(self, text: str) -> Any:
        try:
            return read(text, self.kind)
        except (ValueError, RecursionError) as error:
            raise ConfigError(self.fault(text)) from error


@cache
def declared(owner: Callable[..., Any]) -> Mapping[str, Declared]:
    """The settings of a dataclass, or the keyword arguments of a function."""
    hints = get_type_hints(owner, include_extras=True)
    if is_dataclass(owner):
        names = [field.name for field in fields(owner)]
    else:
        parameters = inspect.signature(owner).parameters.values()
        names = [parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]
    units = _comments(owner)
    return {name: Declared(name, hints[name], units.get(name, "")) for name in names}


def check(settings: Any, error: type[SparseBertError] = ConfigError) -> None:
    """Hold every field of a dataclass to its annotation."""
    for name, setting in declared(settings.__class__).items():
        if not fits(getattr(settings, name), setting.kind):
            raise error(setting.fault(getattr(settings, name)))


def refuse_unknown(
    name: str, known: Collection[str], error: type[SparseBertError] = ConfigError, what: str = "there is no setting"
) -> None:
    """Refuse a name that is not known, with the closest that is."""
    if name in known:
        return
    close = difflib.get_close_matches(name, known, n=1)
    if close:
        raise error(f"{what} {name!r}; did you mean {close[0]}?")
    choice = f"expected one of {', '.join(sorted(known))}" if known else "there is none to choose from"
    raise error(f"{what} {name!r}; {choice}")


def fits(value: object, kind: Any) -> bool:
    """Whether a value is what an annotation asks for."""
    bare, bounds = _parts(kind)
    origin, inner = get_origin(bare) or bare, get_args(bare)
    if bare is Any:
        return True
    if origin in (Union, UnionType):
        return any(fits(value, one) for one in inner)
    if origin is Literal:
        return any(value == one and type(value) is type(one) for one in inner)
    if origin in (int, float):
        is_number = isinstance(value, Integral if origin is int else Real) and not isinstance(value, bool)
        return is_number and math.isfinite(value) and all(one.holds(value) for one in bounds)  # type: ignore[arg-type]
    if origin is tuple and inner[-1] is not Ellipsis:
        return isinstance(value, tuple) and len(value) == len(inner) and all(map(fits, value, inner))
    if origin in (tuple, Sequence):
        is_list = isinstance(value, tuple if origin is tuple else list | tuple)
        return is_list and all(fits(one, inner[0]) for one in value)  # type: ignore[attr-defined]
    if origin is dict:
        return isinstance(value, dict) and all(fits(k, inner[0]) and fits(v, inner[1]) for k, v in value.items())
    return isinstance(value, origin)


def read(text: str, kind: Any) -> Any:
    """The value that a text spells; a ValueError where it spells none."""
    bare, _ = _parts(kind)
    origin, inner = get_origin(bare) or bare, get_args(bare)
    if origin in (Union, UnionType):
        return _first_that_reads(text, inner)
    value = _read_one(text.strip(), bare, origin, inner)
    # A value with a spelling of its own is kept as it is spelled: run.json must be able to hold it.
    if not isinstance(bare, FromJson) and not fits(value, kind):
        raise ValueError(text)
    return value


def _first_that_reads(text: str, kinds: Sequence[Any]) -> Any:
    for kind in sorted(kinds, key=lambda one: one is not NoneType):
        try:
            return read(text, kind)
        except ValueError:
            continue
    raise ValueError(text)


def _read_one(text: str, bare: Any, origin: Any, inner: tuple[Any, ...]) -> Any:
    if isinstance(bare, FromJson):
        value = json.loads(text)
        bare.from_json(value)
        return value
    if origin is NoneType or origin is bool:
        known = dict.fromkeys(_NOTHING) if origin is NoneType else dict.fromkeys(_YES, True) | dict.fromkeys(_NO, False)
        if text.lower() not in known:
            raise ValueError(text)
        return known[text.lower()]
    if origin is Literal:
        return next((one for one in inner if str(one) == _unquoted(text)), text)
    if origin is int:
        return _whole(text)
    if origin in (tuple, Sequence):
        return _several(text, [inner[0]] if origin is Sequence or inner[-1] is Ellipsis else inner, origin)
    if origin is dict or bare is Any:
        return json.loads(text)
    return origin(_unquoted(text))


def _whole(text: str) -> int:
    """1e3 is a whole number too; 1.5 is none."""
    try:
        return int(text)
    except ValueError:
        number = float(text)
        if not number.is_integer():
            raise
        return int(number)


def _several(text: str, kinds: Sequence[Any], origin: Any) -> Any:
    """[0.9, 0.99], or 0.9,0.99; one kind stands for any number of values."""
    given = json.loads(text) if text.startswith("[") else [part for part in text.split(",") if part.strip()]
    kinds = list(kinds) * len(given) if len(kinds) == 1 else kinds
    if len(given) != len(kinds):
        raise ValueError(text)
    values = [one if isinstance(one, str) else json.dumps(one) for one in given]
    made = [read(value, kind) for value, kind in zip(values, kinds, strict=True)]
    return tuple(made) if origin is tuple else made


def _unquoted(text: str) -> str:
    return str(json.loads(text)) if text.startswith('"') else text


def words(kind: Any) -> str:
    """An annotation for a reader: "a whole number of at least 1"."""
    bare, bounds = _parts(kind)
    origin, inner = get_origin(bare) or bare, get_args(bare)
    limits = "".join(f" {one.words()}" for one in bounds)
    if isinstance(bare, FromJson):
        return bare.spelling
    if origin in (Union, UnionType):
        return ", or ".join(words(one) for one in sorted(inner, key=lambda one: one is NoneType))
    if origin is Literal:
        return " or ".join([", ".join(map(str, inner[:-1])), str(inner[-1])] if len(inner) > 1 else map(str, inner))
    if origin in (tuple, Sequence):
        is_any = origin is Sequence or inner[-1] is Ellipsis
        return f"a list, each {words(inner[0])}" if is_any else f"{len(inner)} values, each {words(inner[0])}"
    names = {int: "a whole number", float: "a number", bool: "true or false", str: "text", NoneType: "none"}
    values = f", each value {words(inner[1])}" if inner and inner[-1] is not Any else ""
    names |= {dict: f"a JSON object{values}", Path: "a path", Any: "any value"}
    return names.get(origin, getattr(origin, "__name__", str(origin))) + limits


def _parts(kind: Any) -> tuple[Any, list[Range]]:
    """The bare type of an annotation, and the bounds that go with it."""
    if get_origin(kind) is not Annotated:
        return kind, []
    bare, *metadata = get_args(kind)
    return bare, [one for one in metadata if isinstance(one, Range)]


def _comments(owner: Callable[..., Any]) -> dict[str, str]:
    """The comment behind each field, inherited ones too, or parameter, where the source is at hand."""
    found: dict[str, str] = {}
    for one in reversed(getattr(owner, "__mro__", (owner,))):
        try:
            source = inspect.getsource(one)
        except (OSError, TypeError):
            continue
        found |= re.findall(r"^ +(\w+): [^#\n]*?  # (.+)$", source, re.MULTILINE)
    return found
