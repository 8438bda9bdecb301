"""Padding is a run of ones and then zeros, or it is refused: in every way that a model can be run."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from sparsebert import attach, gates, load_model, patterns
from sparsebert.errors import ModelError
from sparsebert.model.padding import padding_as_lengths, real_tokens

N = 12
RIGHT = torch.tensor([[1] * 8 + [0] * 4, [1] * N])
LEFT, HOLED = RIGHT.flip(1), RIGHT.clone()
HOLED[0, 3] = 0
TOKENS = torch.randint(5, 60, (2, N), generator=torch.Generator().manual_seed(0))


def tiny() -> Any:
    pattern = patterns.window(N, radius=2)
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "initializer_range": 0.5}
    return load_model("scratch:tiny", vocab_size=60, pattern=pattern, **sizes).eval()  # type: ignore[arg-type]


def plainly(model: Any) -> Any:
    return model


def without_gradients(model: Any) -> Any:
    return torch.no_grad()(model)


def gated(model: Any) -> Any:
    return attach(model, gates.Soft(length=N, heads=2), inside=True)


def compiled(model: Any) -> Any:
    return torch.compile(model, backend="aot_eager")


def exported(model: Any) -> Any:
    return torch.export.export(model, (), {"input_ids": TOKENS, "attention_mask": torch.ones_like(RIGHT)}).module()


def traced(model: Any) -> Any:
    with torch.no_grad():
        trace: Any = torch.jit.trace(
            model,
            example_kwarg_inputs={"input_ids": TOKENS, "attention_mask": torch.ones_like(RIGHT)},
            strict=False,
            check_trace=False,
        )
    return trace


@pytest.mark.filterwarnings("ignore")  # what torch says of tracing and of breaks in graphs
@pytest.mark.parametrize("way", [plainly, without_gradients, gated, compiled, exported, traced])
def test_padding_on_the_left_or_with_holes_is_refused_however_the_model_runs(way: Callable[[Any], Any]) -> None:
    model = tiny()
    expected = (gated(tiny()) if way is gated else model)(input_ids=TOKENS, attention_mask=RIGHT)[0]
    run = way(model)
    found = run(input_ids=TOKENS, attention_mask=RIGHT)
    found = found["last_hidden_state"] if isinstance(found, dict) else found[0]
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    for padding in (LEFT, HOLED):
        with pytest.raises(Exception, match="run of ones followed by zeros"):
            run(input_ids=TOKENS, attention_mask=padding)


def test_lengths_are_the_ones_of_each_row_and_none_where_all_are_real() -> None:
    lengths = padding_as_lengths(2, N, N, RIGHT)
    assert lengths is not None
    assert lengths.tolist() == [8, N]
    assert padding_as_lengths(2, N, N, torch.ones_like(RIGHT)) is None
    assert padding_as_lengths(2, N, N, None) is None


@pytest.mark.parametrize("shape", [(2, N - 1), (1, N), (2, N, N), (N,)])
def test_padding_of_another_shape_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ModelError, match="shape"):
        padding_as_lengths(2, N, N, torch.ones(shape))


def test_the_operator_is_one_that_torch_can_put_into_graphs() -> None:
    torch.library.opcheck(real_tokens, (RIGHT.bool(),))
