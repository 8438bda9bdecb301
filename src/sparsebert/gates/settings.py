"""How a gate is learned, and the presets: what was measured to work for two kinds of loss, the paper, its code.

docs/decisions/gate-presets.md says why each preset is as it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

from sparsebert.attention import Relaxation
from sparsebert.errors import GateError
from sparsebert.gates.distributions import DistributionName
from sparsebert.gates.schedules import Schedule, constant
from sparsebert.settings import InnerShare, NotNegative, Positive, Range, Share, check, declared, refuse_unknown

Sampling = Literal["mean", "soft", "hard"]  # mean: no noise at all, the soft P of the importance analysis
PenaltyOn = Literal["expected", "sampled"]
Freezing = Literal["threshold", "sample"]
Path = Literal["auto", "dense", "sparse"]


@dataclass(frozen=True)
class Settings:
    """Everything about a gate that is chosen, not learned."""

    relaxation: Relaxation = "log"  # how gate values enter the attention weights
    c: Positive = 10_000.0  # of the additive form, Q = -c (1 - P)
    sampling: Sampling = "soft"
    distribution: DistributionName = "gumbel_sigmoid"
    temperature: Schedule = field(default_factory=lambda: Schedule("linear", 1.0, 0.4))
    penalty_on: PenaltyOn = "expected"  # the density the penalty sees: the probabilities' or the sample's
    rate: Positive | None = 5e-2  # learning rate of alpha; None: the weights' own
    entry_share: NotNegative = 0.2  # of the rate, for terms that belong to one entry while others are shared
    initial_density: InnerShare = 0.5  # of what is learned
    initial_noise: NotNegative = 0.0  # standard deviation of alpha at the start
    border: bool = True  # first and last row and column always kept (structured)
    pooled: bool = False  # entries depart from what their offset and their two positions share (unstructured)
    symmetric: bool = True  # i to j is kept when j to i is (unstructured)
    lead: Annotated[float, Range(0, 1, without_low=True)] = (
        0.6  # share of the steps over which the target density is led to its end
    )
    dual_rate: NotNegative = 200.0  # of lambda, per unit of density; divided by the number of steps
    stiffness: NotNegative = 100.0  # quadratic term of the augmented Lagrangian, per squared unit of density
    path: Path = "auto"  # structured: [heads, n, n] values, or only the sampled lines; auto: sparse beyond 256
    explore: Share = 0.02  # chance that an offset that is off is drawn in (sparse path only)
    freezing: Freezing = "threshold"  # where no sparsity is asked for
    learned_border: bool = False  # each side of the border is kept or dropped like a line (structured)
    least_price: NotNegative = 0.0  # of a unit in the penalty, as entries per position: short lines are not free
    directed: bool = False  # lines (or what pooled entries share) before the diagonal and behind it are apart

    def __post_init__(self) -> None:
        check(self, GateError)
        if min(self.temperature.start, self.temperature.end) <= 0:
            raise GateError("the temperature must stay above 0; for gates without noise choose sampling='mean'")
        if self.learned_border and not self.border:
            raise GateError("learned_border is asked for with border=False; sides are learned where there is a border")


_PAPER = Settings(
    relaxation="additive",
    sampling="hard",
    temperature=constant(1.0),
    penalty_on="sampled",
    rate=None,
    initial_noise=1e-3,
    pooled=False,
)
PRESETS: dict[str, Settings] = {
    "default": Settings(),
    # For a gate that a dense teacher leads: little noise in the loss, so alpha may move faster and samples end sharper.
    "distilled": Settings(
        rate=1e-1,
        temperature=Schedule("linear", 1.0, 0.1),
        learned_border=True,
        least_price=0.5,
        directed=True,
        pooled=True,
        symmetric=False,
        entry_share=1.0,
    ),
    "paper": _PAPER,
    # The released code forgets to force the border, and saves whatever its last random draw was.
    "official": replace(_PAPER, border=False, freezing="sample"),
}


# Settings that one kind of gate has no use for: given all the same they are a misunderstanding.
_OF_ENTRIES = {"pooled", "symmetric", "entry_share"}
_OF_LINES = {"border", "path", "explore", "learned_border"}
_OF_SAMPLES = {"sampling", "penalty_on", "lead", "dual_rate", "stiffness", "freezing"}
_UNUSED_BY = {
    "structured": _OF_ENTRIES,
    "unstructured": _OF_LINES,
    "soft": _OF_LINES | _OF_SAMPLES | {"least_price", "temperature"},
}


def refuse_unused(kind: str, settings: Settings, changes: Mapping[str, Any]) -> None:
    """Refuse changes that a kind of gate would take without a word and without an effect."""
    unused = dict.fromkeys(_UNUSED_BY.get(kind, ()), "")
    if kind in ("unstructured", "soft"):  # what nothing is shared by has no direction and no own part
        if not settings.pooled:
            unused["entry_share"] = " unless it is pooled"
        if settings.symmetric or not settings.pooled:
            unused["directed"] = " unless it is pooled and not symmetric"
    for name in sorted(unused.keys() & changes.keys()):
        raise GateError(f"{name} is given, which a gate of kind {kind} does not use{unused[name]}; leave it out")


def preset(name: str, **changes: Any) -> Settings:
    """A preset by name, with single settings changed."""
    if name not in PRESETS:
        raise GateError(f"there is no preset {name!r}; expected one of {', '.join(PRESETS)}")
    known = declared(Settings)
    for change in changes:
        refuse_unknown(change, known, GateError, "a gate has no setting")
    if "temperature" in changes and not isinstance(changes["temperature"], Schedule):
        try:
            changes["temperature"] = Schedule.from_json(changes["temperature"])
        except ValueError as error:
            raise GateError(known["temperature"].fault(changes["temperature"])) from error
    if changes.get("border") is False:  # a preset's sides are no one's wish where there is no border
        changes.setdefault("learned_border", False)
    return replace(PRESETS[name], **changes)
