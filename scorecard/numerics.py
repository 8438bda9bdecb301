"""N1 to N4: numbers that are right, finite, and the same after a save."""

import os
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import torch
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from torch import Tensor

from scorecard.row import Figures, Row, Trial, require
from sparsebert import attend, gates, patterns
from sparsebert.attention import Inputs, attend_checked, checked_inputs, choose
from sparsebert.attention.sparse_library import ISA_VARIABLE, ISAS, is_built, library
from sparsebert.errors import TrainingError
from sparsebert.model import load_model
from sparsebert.model.families import HEADS
from sparsebert.training import Losses, fit
from sparsebert.training.pretraining import PretrainingObjective
from tests.attention.cases import Case, answers, attention_cases, rounding
from tests.training.cases import LENGTH, MadeUpBatches, short_fit, small_bert

# N1

_EXAMPLES = 100
_DTYPES = {"sdpa": [torch.float32, torch.float64], "sparse": [torch.float32, torch.float64, torch.bfloat16]}
_RELAXATIONS = ("log", "additive", "multiplicative")


def _ratio(oracle: list[Tensor], found: list[Tensor], dtype: torch.dtype, terms: int) -> float:
    """The worst error as a share of what rounding may cost."""
    worst = 0.0
    for right, answer in zip(oracle, found, strict=True):
        require(answer.isfinite().all(), "an answer is not finite")
        if right.numel():
            worst = max(worst, float((right - answer).abs().max()) / rounding(right, dtype, terms))
    return worst


def oracle_holds(trial: Trial) -> Figures:
    worst = 0.0
    backends = ["sdpa", "sparse"] if is_built() else ["sdpa"]
    isas = ISAS[: library().sb_best_isa() + 1] if is_built() else ISAS[:1]

    @seed(trial.number)
    @settings(max_examples=_EXAMPLES, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(attention_cases(longest=64, widths=(8, 5, 16, 40, 1)), st.data())
    def check(case: Case, data: st.DataObject) -> None:
        nonlocal worst
        os.environ[ISA_VARIABLE] = data.draw(st.sampled_from(isas))
        oracle, ratios = answers(case, "reference", torch.float64), {}
        terms = case.length * case.batch + case.width  # of a sum over entries, and of a dot product
        for backend in backends:
            dtype = data.draw(st.sampled_from(_DTYPES[backend]))
            found = answers(case, backend, dtype)
            ratios[f"{backend}, {dtype}"] = _ratio(oracle, found, dtype, terms)
        size = case.length if case.pattern is None else case.pattern.length
        gate = torch.rand(case.heads, size, size, generator=torch.Generator().manual_seed(case.seed)).double()
        relaxation = data.draw(st.sampled_from(_RELAXATIONS))
        settings_ = {"gate": gate, "relaxation": relaxation, "c": 30.0}
        oracle = answers(case, "reference", torch.float64, **settings_)
        found = answers(case, "gated", torch.float64, **settings_)
        ratios[f"gated, {relaxation}"] = _ratio(oracle, found, torch.float64, 64 * terms)
        for way, ratio in ratios.items():
            require(ratio <= 1.0, f"{case}: {way}: {ratio:.2f} times what rounding may cost")
        worst = max(worst, *ratios.values())

    check()
    return {"worst": worst}


# N2


def _finite(tensors: dict[str, Tensor | None], what: str) -> None:
    for name, tensor in tensors.items():
        require(tensor is not None and bool(tensor.isfinite().all()), f"{what}: {name} is not finite")


_SHAPES = {"empty rows": (12, 2), "length 1": (1, 2), "one head": (12, 1), "all padding": (12, 3)}
_BACKENDS = ("reference", "sdpa", "sparse", "auto")
_GATES: dict[str, type[Any]] = {
    "structured": gates.Structured,
    "unstructured": gates.Unstructured,
    "soft": gates.Soft,
}
_EDGES: list[tuple[Any, ...]] = [
    *product(_SHAPES, _BACKENDS),
    *product(_GATES, _RELAXATIONS, ("soft", "hard", "mean"), ("gumbel_sigmoid", "hard_concrete")),
]
_TEMPERATURES = (1e-3, 1e-2, 0.1, 1.0, 10.0)
_ALPHAS = (0.0, 1e4, -1e4, "mixed")


def edge(trial: Trial) -> None:
    case = _EDGES[trial.number]
    _edge_of_attention(*case) if len(case) == 2 else _edge_of_gate(*case)


def _edge_of_attention(shape: str, backend: str) -> None:
    length, heads = _SHAPES[shape]
    sparsities = (1.0, 0.9) if shape == "empty rows" else (0.0, 0.5, 1.0)
    for sparsity, anchor, magnitude in product(sparsities, ("position", "token"), (1.0, 1e4)):
        pattern = patterns.random(length, heads, sparsity=sparsity, seed=1).anchored(anchor)
        lengths = torch.tensor([0, 0] if shape == "all padding" else [length, length // 2])
        leaves = [(magnitude * torch.randn(2, heads, length, 8)).requires_grad_() for _ in range(3)]
        output = attend(*leaves, pattern=pattern, lengths=lengths, backend=backend)
        output.sum().backward()  # type: ignore[no-untyped-call]
        what = f"{shape}, {backend}, sparsity {sparsity}, {anchor}, scores of {magnitude:g}"
        named = zip(("query", "key", "value"), (leaf.grad for leaf in leaves), strict=True)
        _finite({"output": output, **dict(named)}, what)
        if sparsity == 1.0 or shape == "all padding":
            require(not output.any(), f"{what}: nothing to attend to, yet the output is not zero")


def _edge_of_gate(kind: str, relaxation: str, sampling: str, distribution: str) -> None:
    for temperature, alpha, anchor in product(_TEMPERATURES, _ALPHAS, ("position", "token")):
        settings_ = {"relaxation": relaxation, "distribution": distribution, "temperature": temperature}
        if kind != "soft":
            settings_ |= {"sampling": sampling, "sparsity": 0.6}
        gate = _GATES[kind](12, 2, steps=10, anchor=anchor, **settings_).train()
        with torch.no_grad():
            for parameter in gate.parameters():
                parameter.copy_(
                    1e4 * torch.randn_like(parameter) if alpha == "mixed" else torch.full_like(parameter, float(alpha))
                )
        gate.resample(0, 3)
        leaves = [torch.randn(2, 2, 12, 8).requires_grad_() for _ in range(3)]
        lengths = torch.tensor([12, 0])
        output = attend_checked(checked_inputs(*leaves, gate.attention_arguments(None, 0), lengths))
        total = output.square().sum() + gate.penalty()
        total.backward()  # type: ignore[no-untyped-call]
        gate.after_step(3)
        what = f"{kind}, {relaxation}, {sampling}, {distribution}, temperature {temperature:g}, alpha {alpha}, {anchor}"
        grads = {name: torch.zeros(1) if p.grad is None else p.grad for name, p in gate.named_parameters()}
        _finite({"output": output, "total": total, **grads, **dict(gate.named_buffers())}, what)
        _finite({"density": gate.expected_density(), "query": leaves[0].grad}, what)
        gate.freeze(sparsity=0.5)


# N3


class _Broken(PretrainingObjective):
    """Puts a NaN somewhere at some steps."""

    place: str = "loss"
    steps: tuple[int, ...] = ()
    hooks: list[Any]

    def forward(self, step: int, micro: int) -> Losses:
        broken = step in self.steps
        while self.hooks:
            self.hooks.pop().remove()
        table = self.model.bert.embeddings.word_embeddings.weight
        if broken and self.place == "embedding":
            with torch.no_grad():
                table[5:] = float("nan")
        losses = super().forward(step, micro)
        if broken and self.place == "loss":
            return Losses(losses.total * float("nan"), losses.parts, losses.tokens)
        if broken and self.place == "gradient":
            self.hooks.append(table.register_hook(lambda grad: grad * float("nan")))
        return losses


_NAN_CASES = [*product(("loss", "gradient", "embedding"), ((0,), (4,), (3, 4, 5), tuple(range(2, 12))))]


def not_a_number(trial: Trial) -> Figures:
    place, steps = _NAN_CASES[trial.number]
    objective = _Broken(
        small_bert(), MadeUpBatches, MadeUpBatches(0, 1, "held out"), num_held_out=1, learning_rate=1e-3
    )
    objective.place, objective.steps, objective.hooks = place, steps, []
    stopped = ""
    try:
        fit(objective, short_fit(max_skipped=4), trial.folder / "run")
    except TrainingError as error:
        stopped = str(error)
    _no_nan_saved(trial.folder / "run")
    must_stop = place == "embedding" or len(steps) > 4
    require(bool(stopped) == must_stop, f"{place} at {steps}: {'stopped: ' + stopped if stopped else 'ran to its end'}")
    if stopped:
        require(any(f"step {number}" in stopped for number in range(1, 13)), f"no step is named in {stopped!r}")
    else:
        lines = (trial.folder / "run" / "metrics.jsonl").read_text().splitlines()
        skipped = [number for number, line in enumerate(lines) if '"skipped": true' in line]
        require(skipped == list(steps), f"{place} at {steps}: skipped {skipped}")
    return {"stopped": float(bool(stopped))}


def _no_nan_saved(out: Path) -> None:
    from safetensors.torch import load_file

    for path in out.rglob("*.safetensors"):
        for name, tensor in load_file(path).items():
            require(not tensor.is_floating_point() or tensor.isfinite().all(), f"{path.name} holds a NaN in {name}")


# N4

_PATTERNS: dict[str, Callable[[], Any]] = {
    "none": lambda: None,
    "star": lambda: patterns.star(length=LENGTH),
    "big bird, token": lambda: patterns.big_bird(LENGTH, heads=2, seed=3).anchored("token"),
    "explicit": lambda: patterns.from_keep(patterns.random(LENGTH, 2, sparsity=0.6, seed=4).keep()),
}
_SAVED = [*product(HEADS, _PATTERNS)]


def saved_and_loaded(trial: Trial) -> None:
    head, name = _SAVED[trial.number]
    pattern, folder = _PATTERNS[name](), trial.folder / "model"
    model = load_model("scratch:tiny", head, vocab_size=60, pattern=pattern).eval()  # type: ignore[arg-type]
    model.save_pretrained(folder)
    again = load_model(str(folder), head).eval()  # type: ignore[arg-type]
    shape = (2, 3, LENGTH) if head == "multiple_choice" else (2, LENGTH)
    tokens = torch.randint(5, 60, shape, generator=torch.Generator().manual_seed(0))
    real = torch.ones(shape, dtype=torch.long)
    real[..., LENGTH - 3 :] = 0
    with torch.no_grad():
        before, after = (one(input_ids=tokens, attention_mask=real) for one in (model, again))
    for left, right in zip(before.to_tuple(), after.to_tuple(), strict=True):
        require(torch.equal(left, right), f"{head}, {name}: outputs differ")
    require(again.pattern == model.pattern, f"{head}, {name}: another pattern came back")
    require(type(again) is type(model), f"{head}: came back as {type(again).__name__}")
    require(_backend(again) == _backend(model), f"{head}, {name}: another backend is chosen")


def _backend(model: Any) -> str:
    part = torch.zeros(1, 2, LENGTH, 64)
    return choose(Inputs(part, part, part, model.pattern, None, 0.0, 1.0, None, None)).backend


ROWS = [
    Row(
        "N1",
        "sdpa, sparse on each instruction set, gated against the float64 oracle, both directions (flex is for GPUs)",
        "within rounding",
        30,
        oracle_holds,
        unit="hypothesis cases",
        each=_EXAMPLES,
        words=lambda figures: (
            f"the worst error is {max(one['worst'] for one in figures):.2f} of what rounding may cost"
        ),
    ),
    Row(
        "N2",
        "empty rows, all padding, length 1, one head; gates at temperatures 1e-3..10 and alpha up to ±1e4",
        "0 NaN or Inf",
        len(_EDGES),
        edge,
        chunk=20,
        fast=(0, 2, 7, 16, 35, 40, 60),
        unit="groups of cases",
        words=lambda _: f"{len(_TEMPERATURES) * len(_ALPHAS) * 2} combinations in each group of gates",
    ),
    Row(
        "N3",
        "NaN in a loss, a gradient, an input embedding; once, for three steps, for good",
        "run stops or skips with the step named; no checkpoint with NaN",
        len(_NAN_CASES),
        not_a_number,
        chunk=4,
        fast=(1, 5, 9),
        unit="cases",
        words=lambda figures: f"{int(sum(one['stopped'] for one in figures))} stopped, the others skipped the step",
    ),
    Row(
        "N4",
        "save, load, run: every class under four patterns",
        "bit-identical, same pattern, same backend",
        len(_SAVED),
        saved_and_loaded,
        chunk=12,
        unit="models",
    ),
]
