"""Gate: what every learned gate shares, written once in terms of units.

    alpha -> logits [heads, units] -> sample (or mean) -> values [heads, n, n]      what attention uses
                                   -> expected density -> penalty, dual ascent      what makes it sparse
                                   -> freeze()         -> Pattern                   what is kept in the end

A unit is what is kept or dropped as a whole: an offset, an entry, or a pair of entries. `sizes` says how many
entries a unit stands for, `fixed` how many a head keeps whatever is learned.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn

from sparsebert.attention import AttentionArguments, GateValues, Relaxation
from sparsebert.errors import GateError
from sparsebert.gates.distributions import distribution_named, logistic_noise
from sparsebert.gates.freezing import Diagonal, Method, check_wishes, keep_within
from sparsebert.gates.initial_logits import initial_logits
from sparsebert.gates.made import Made
from sparsebert.gates.schedules import Schedule
from sparsebert.gates.scope import Scope, check_scope, scope_of
from sparsebert.gates.settings import preset
from sparsebert.gates.sizes import check_sizes
from sparsebert.patterns import Anchor, Pattern, full
from sparsebert.patterns.entries import Entries

logger = logging.getLogger(__name__)

T = TypeVar("T")
_NEAR = 0.02  # of a target sparsity: as near as whole lines and a settling lambda come to it
# AdamW for alpha at a rate of its own: no fall of the rate, no clipping beside the weights' gradients; and the
# gradient of a single entry is so small that BERT's epsilon would drown it.
_OWN_RATE: dict[str, Any] = {"schedule": "constant", "clip": False, "eps": 1e-8}


class Gate(nn.Module, ABC):
    """A pattern while it is learned: a float in [0, 1] for every entry, with a gradient.

    layers: 1 for one pattern that serves all layers of a model, or as many as the model has. Heads of all layers then
    share one budget: a layer that needs less gives to one that needs more.
    """

    sizes: Tensor
    dual: Tensor
    step: Tensor

    def __init__(
        self,
        length: int,
        heads: int,
        *,
        layers: int = 1,
        sparsity: float | None = None,
        penalty: float = 0.0,
        steps: int = 1000,
        seed: int = 0,
        anchor: Anchor = "position",
        settings: str = "default",
        **changes: Any,
    ) -> None:
        super().__init__()
        check_sizes(length, heads, layers, sparsity, penalty, steps)
        self.length, self.heads, self.layers, self.anchor = length, heads, layers, anchor
        self.sparsity, self.penalty_weight, self.steps = sparsity, penalty, steps
        self.settings = preset(settings, **changes)
        self.distribution = distribution_named(self.settings.distribution)
        sizes = self.lay_out_units()
        self.alpha = nn.Parameter(initial_logits(self.all_heads, len(sizes), self.settings, seed))
        self.register_buffer("sizes", torch.from_numpy(sizes.astype(np.int64)), persistent=False)
        self.register_buffer("dual", torch.zeros((), dtype=torch.float64))  # lambda of the target sparsity
        self.register_buffer("step", torch.zeros((), dtype=torch.int64))
        self._noise: Tensor | None = None
        self._noise_of: tuple[int, int, int, torch.device] | None = None  # which draw it is
        self.drawn_at = (0, 0, -1)  # seed, step, micro of the sample in use
        self._fresh = False
        self.holds_sample = False  # forwards share the sample in use until resample() draws the next
        self._made = Made()
        self._scope: Scope | None = None
        if sparsity is not None:
            self._check_reachable(sparsity, self._always_kept)  # now, not after the training

    @property
    def all_heads(self) -> int:
        """Heads of all layers, the first layer's first: the rows of alpha and of every sample."""
        return self.layers * self.heads

    def of_layer(self, name: str, rows: Tensor, layer: int) -> Tensor:
        """One layer's heads of what a forward made by that name; with one layer for all, they are every layer's."""
        # Split once: the gradient of a slice would be zeros for all other layers, made and added up a layer.
        by_layer = self.cached((name, "by layer"), lambda: torch.split(rows, self.heads))
        return by_layer[layer if self.layers > 1 else 0]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_made": Made()}  # belongs to one forward, and its graph cannot be copied

    # What each kind of gate says about itself

    @abstractmethod
    def lay_out_units(self) -> Int64[np.ndarray, " units"]:
        """How many entries each unit stands for. Called once, when length, heads and settings are known: a kind of gate
        refuses here what it cannot do, and makes what it looks up later."""

    @property
    @abstractmethod
    def fixed(self) -> int:
        """Entries of a head that are kept whatever is learned."""

    @property
    @abstractmethod
    def on_diagonal(self) -> Bool[np.ndarray, " units"]:
        """Units that lie on the diagonal."""

    @abstractmethod
    def logits(self) -> Float[Tensor, "all_heads units"]:
        """The log-odds of keeping each unit."""

    @abstractmethod
    def spread(self, units: Float[Tensor, "all_heads units"]) -> Float[Tensor, "all_heads n n"]:
        """Unit values at their entries; what is always kept is 1."""

    @abstractmethod
    def pattern_of(self, keep: Bool[np.ndarray, "all_heads units"]) -> Pattern:
        """The pattern that keeps these units and what is always kept."""

    @abstractmethod
    def units_of(self, entries: Entries) -> Int64[np.ndarray, " entries"]:
        """The unit of each flat entry i * n + j; -1 where it is always kept."""

    @abstractmethod
    def attention_arguments(self, pattern: Pattern | None, layer: int) -> AttentionArguments:
        """What attention of one of the model's layers, counted from 0, runs under: the sample in use, inside a pattern
        that the model has or that this layer looks no further than."""

    @abstractmethod
    def parameter_groups(self, weights_rate: float) -> list[dict[str, Any]]:
        """Groups for AdamW, with alpha's own learning rate."""

    def alpha_group(self, parameters: list[nn.Parameter], weights_rate: float, share: float = 1.0) -> dict[str, Any]:
        """One group at a share of alpha's rate; without a rate of its own alpha is treated as the weights are."""
        if self.settings.rate is None:
            return {"params": parameters, "lr": weights_rate * share, "weight_decay": 0.0}
        return {"params": parameters, "lr": self.settings.rate * share, "weight_decay": 0.0, **_OWN_RATE}

    # Inside a pattern

    @property
    def inside(self) -> Pattern | None:
        """The pattern that the gate is learned inside of; None: everywhere."""
        return None if self._scope is None else self._scope.pattern

    def restrict(self, pattern: Pattern | None) -> None:
        """Learn inside a pattern: entries outside it count nowhere and are never kept. None: everywhere."""
        scope = None
        if pattern is not None:
            check_scope(pattern, self)
            scope = scope_of(pattern, self)
        self._scope = scope
        self.forget()

    @property
    def _counts(self) -> Tensor:
        """Entries that each unit stands for, of each head where these differ."""
        return self.sizes if self._scope is None else self._scope.sizes.to(self.sizes.device)

    @property
    def _always_kept(self) -> int:
        """Entries of all heads that are kept whatever is learned."""
        return self.all_heads * self.fixed if self._scope is None else self._scope.fixed

    # Sampling

    @property
    def relaxation(self) -> Relaxation:
        return self.settings.relaxation

    @property
    def c(self) -> float:
        return self.settings.c

    @property
    def temperature(self) -> float:
        return self.settings.temperature.at(int(self.step), self.steps)

    def resample(self, seed: int, step: int, micro: int = 0) -> None:
        """Draw the noise of one micro-batch; every layer and every sequence of it share the sample."""
        self.step.fill_(step)
        self.drawn_at = (seed, step, micro)
        device = self.sizes.device
        of = (seed, step, micro, device)
        if self.settings.sampling != "mean" and self._noise_of != of:  # what a run's micro-batches share is drawn once
            size = self.all_heads, len(self.sizes)
            self._noise = logistic_noise(*size, seed=seed, step=step, micro=micro, device=device)
            self._noise_of = of
        self._fresh = True
        self.forget()

    def before_forward(self, training: bool) -> None:
        """Called before each forward of an attached model: every training forward sees a sample of its own."""
        self.train(training)
        if training and not (self._fresh or self.holds_sample):
            seed, step, micro = self.drawn_at
            self.resample(seed, int(self.step), micro + 1 if step == int(self.step) else 0)
        self._fresh = False
        self.forget()

    def forget(self) -> None:
        """Compute the sample in use anew: its graph was used up by a backward pass."""
        self._made.clear()

    def units(self) -> Float[Tensor, "all_heads units"]:
        """The sample in use, one value a unit; without noise in evaluation."""
        return self.cached("units", self._sample)

    def values(self) -> Float[Tensor, "all_heads n n"]:
        """The sample in use at its entries, computed once for all layers."""
        return self.cached("values", lambda: self.spread(self.units()))

    def dense_arguments(self, pattern: Pattern | None, layer: int) -> AttentionArguments:
        """What attention of a layer runs under with [heads, n, n] gate values."""
        if pattern is None and self.anchor == "token":
            # A pattern that excludes nothing carries the anchor.
            pattern = self.cached("anchor", lambda: full(self.length).anchored("token"))
        values = self.of_layer("values", self.values(), layer)
        return AttentionArguments(pattern, gate=GateValues(values, self.relaxation, self.c))

    def _sample(self) -> Tensor:
        hard = self.settings.sampling == "hard"
        if self._noise is None or not self.training:
            return self.distribution.mean(self.logits(), hard=hard)
        return self.distribution.sample(self.logits(), self._noise, self.temperature, hard=hard)

    def cached(self, name: Any, make: Callable[[], T]) -> T:
        """What `make` gives, made once for a forward."""
        return self._made.get(self, name, make)

    # Sparsity

    def probabilities(self) -> Float[Tensor, "all_heads units"]:
        """How likely each unit is kept."""
        return self.distribution.kept_probability(self.logits(), self.temperature)

    def expected_density(self) -> Float[Tensor, ""]:
        """The share of entries kept on average, over all n²."""
        return self._density_of(self.probabilities())

    def _density_of(self, units: Tensor) -> Tensor:
        learned = (units * self._counts).sum(-1).mean()
        return (learned + self._always_kept / self.all_heads) / self.length**2

    def target_density(self, step: int | None = None) -> float | None:
        """Where the density should be at a step: led down over the first part of the run."""
        if self.sparsity is None:
            return None
        share = self._always_kept / (self.all_heads * self.length**2)
        possible = 1 if self._scope is None else self._scope.pattern.density
        start = share + (possible - share) * self.settings.initial_density
        path = Schedule("linear", start, min(1.0 - self.sparsity, start), self.settings.lead)
        return path.at(int(self.step) if step is None else step, self.steps)

    def penalty(self) -> Float[Tensor, ""]:
        """What to add to the loss, once per optimiser step (the mean over micro-batches and ranks).

        lambda times the sum of |M| over heads x n x n (the paper), or, towards a target sparsity, an augmented
        Lagrangian whose lambda after_step() moves.
        """
        target = self.target_density()
        if target is None and self.penalty_weight == 0:
            return self.sizes.new_zeros((), dtype=torch.float32)
        expected = self.settings.penalty_on == "expected" or self.settings.sampling == "mean"
        likely = self.probabilities()
        density = self._density_of(likely if expected else self.units())
        if target is None:
            return self.penalty_weight * self.all_heads * self.length**2 * density
        gap = self._priced(density, likely) - target
        return float(self.dual) * gap + 0.5 * self.settings.stiffness * gap.square()

    def _priced(self, density: Tensor, likely: Tensor) -> Tensor:
        """The density, with a gradient in which no unit is cheaper than `least_price` allows.

        A line far from the diagonal has few entries. At that price it would be kept whether or not it helps, and a
        longer input, where it is a line like any other, would pay for it. Single entries are all alike: a price above
        one leads them to their target more strongly.
        """
        least = self.settings.least_price * self.length
        if not least:
            return density
        lacking = (least - self._counts).clamp(min=0) * (self._counts > 0)
        extra = (likely * lacking).sum(-1).mean() / self.length**2
        return density + (extra - extra.detach())

    @torch.no_grad()
    def after_step(self, step: int) -> None:
        """Dual ascent on lambda towards the target, and on to the next step."""
        self.step.fill_(step)
        target = self.target_density()
        if target is not None:
            gap = float(self.expected_density()) - target
            self.dual.add_(self.settings.dual_rate / self.steps * gap).clamp_(min=0.0)
        self.step.fill_(step + 1)
        self.forget()

    # Freezing

    @torch.no_grad()
    def freeze(
        self,
        sparsity: float | None = None,
        *,
        method: Method | None = None,
        diagonal: Diagonal = "learned",
        assured: float = 0.5,
    ) -> Pattern:
        """The pattern learned so far.

        sparsity: the nearest reachable pattern to it, however far training got (see gates/freezing.py how heads share
        the entries, `assured` being the part of an even share every head gets). None: the gate's own target, refused
        before training has reached it. Without a target, method "threshold" keeps what is likelier kept than not,
        "sample" takes the draw in use. diagonal: "keep" or "drop" it whatever was learned.
        """
        check_wishes(sparsity, method, diagonal, assured)
        logits = self.logits().double().cpu().numpy()
        forced = np.broadcast_to(self.on_diagonal & (diagonal == "keep"), logits.shape)
        barred = np.broadcast_to(self.on_diagonal & (diagonal == "drop"), logits.shape)
        wanted = sparsity
        if sparsity is None and method is None and self.sparsity is not None:
            wanted = self.sparsity
            self._require_reached()
        if wanted is None:
            keep = self._undirected(method or self.settings.freezing, logits)
        else:
            keep = self._nearest(wanted, np.where(forced | barred, -np.inf, logits), forced, diagonal, assured)
        pattern = self.pattern_of((keep | forced) & ~barred)
        if self._scope is not None:
            pattern = pattern & self._scope.pattern
        return pattern.without_diagonal() if diagonal == "drop" else pattern

    def _undirected(self, method: Method, logits: np.ndarray) -> np.ndarray:
        if method == "threshold":
            return logits > 0
        seed, step, micro = self.drawn_at
        device = torch.device("cpu")
        noise = logistic_noise(*logits.shape, seed=seed, step=step, micro=max(micro, 0), device=device)
        return np.asarray(logits + noise.double().numpy() > 0)

    def _nearest(
        self, sparsity: float, scores: np.ndarray, forced: np.ndarray, diagonal: Diagonal, assured: float
    ) -> np.ndarray:
        entries = self.all_heads * self.length**2
        sizes = self._counts.cpu().numpy()
        always = self._always_kept - (self._always_on_diagonal() if diagonal == "drop" else 0)
        always += int((forced * sizes).sum())
        scores = np.where(sizes == 0, -np.inf, scores)
        budget = round((1.0 - sparsity) * entries) - always
        self._check_reachable(sparsity, always)
        return keep_within(scores, sizes, max(budget, 0), entries=entries, assured=assured)

    def _check_reachable(self, sparsity: float, always: int) -> None:
        """Half a point beyond what is always kept is still the nearest pattern; more is a misunderstanding."""
        entries = self.all_heads * self.length**2
        if always - (1.0 - sparsity) * entries > 0.005 * entries:
            raise GateError(
                f"sparsity {sparsity:.4f} cannot be reached: {always} of {entries} entries are always kept; "
                f"ask for at most {1 - always / entries:.4f}"
            )

    def _always_on_diagonal(self) -> int:
        """Entries of all heads' diagonals that are kept whatever is learned."""
        if self._scope is not None:
            return self._scope.fixed_on_diagonal
        return self.all_heads * (self.length - int(self.sizes.cpu().numpy()[self.on_diagonal].sum()))

    def _require_reached(self) -> None:
        """Refuse to pass off as learned what the target would merely be cut to."""
        if int(self.step) >= self.steps:
            self.warn_if_cut()
        elif how_far := self._shortfall():
            cut = f"freeze(sparsity={self.sparsity:g})"
            raise GateError(f"{how_far}; train on, or cut it to what you choose with {cut}")

    def warn_if_cut(self) -> None:
        """Say where freezing cuts what training has not led to its target."""
        if how_far := self._shortfall():
            logger.warning(
                "%s, to which the pattern is cut; more steps or a higher rate of alpha would reach it", how_far
            )

    def _shortfall(self) -> str | None:
        """How far training is from its target; None: near enough, or there is none."""
        reached = 1.0 - float(self.expected_density().detach())
        if self.sparsity is None or reached >= self.sparsity - _NEAR:
            return None
        far = f"the gate expects a sparsity of {reached:.3f}; its target is {self.sparsity:.3f}"
        return f"after {int(self.step)} of {self.steps} steps {far}"
