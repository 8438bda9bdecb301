"""A rule is how a pattern was made, a builder or an operation on rules, and rebuilds it at any length."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sparsebert.errors import PatternError
from sparsebert.patterns import builders, handmade
from sparsebert.patterns.layers import per_layer
from sparsebert.patterns.pattern import Pattern, Rule
from sparsebert.settings import Declared, declared, refuse_unknown

BUILDERS: dict[str, Callable[..., Pattern]] = {
    builder.__name__: builder
    for builder in (
        builders.full,
        builders.window,
        builders.border,
        builders.window_border,
        builders.random,
        builders.from_offsets,
        handmade.strided,
        handmade.fixed,
        handmade.log_sparse,
        handmade.star,
        handmade.longformer,
        handmade.big_bird,
    )
}
_OPERATIONS: dict[str, Callable[..., Pattern]] = {
    "union": lambda left, right: left | right,
    "intersection": lambda left, right: left & right,
    "without_diagonal": lambda one: one.without_diagonal(),
    "layers": lambda *parts: per_layer(parts),
}
_LENGTH = 128  # of a pattern for which none is given
_MAX_DEPTH = 64  # of operations on operations; a file that claims more is hostile


def names() -> tuple[str, ...]:
    """Patterns that a name alone is enough to build."""
    return tuple(name for name in BUILDERS if name != "from_offsets")


def named(name: str, length: int, heads: int = 1, **arguments: Any) -> Pattern:
    """The pattern of that name, e.g. named("star", 128); refuses names and arguments it does not know."""
    known = arguments_of(name)
    for argument in arguments:
        refuse_unknown(argument, known, PatternError, f"{name} has no argument")
    return BUILDERS[name](length, heads, **arguments)


def find(name: str, length: int | None = None, heads: int = 1, **arguments: Any) -> Pattern:
    """A saved pattern, as long as it was saved; or the one of that name, of this length (128 if none is given)."""
    if not Path(name).is_file():
        return named(name, _LENGTH if length is None else length, heads, **arguments)
    if arguments:
        raise PatternError(f"{name} is a saved pattern; {', '.join(arguments)} would only apply to a builder's name")
    return Pattern.load(name)


def arguments_of(name: str) -> Mapping[str, Declared]:
    """What the builder of that name takes beside length and heads."""
    refuse_unknown(name, names(), PatternError, "there is no pattern called")
    return declared(BUILDERS[name])


def rebuild(rule: Rule, length: int, depth: int = 0) -> Pattern:
    """The pattern a rule gives at a length."""
    if depth > _MAX_DEPTH or not isinstance(rule, dict):
        raise PatternError(f"{str(rule)[:80]!r} is not a rule; expected a builder with arguments, or an operation")
    try:
        if "operation" in rule:
            parts = [rebuild(part, length, depth + 1) for part in rule["of"]]
            return _OPERATIONS[rule["operation"]](*parts)
        # A list of offsets says by itself how many heads there are.
        heads = {} if rule["builder"] == "from_offsets" else {"heads": rule["heads"]}
        return BUILDERS[rule["builder"]](length, **heads, **rule["arguments"])
    except (KeyError, TypeError, ValueError) as error:
        raise PatternError(f"the rule {str(rule)[:200]} cannot be rebuilt: {error}") from error
