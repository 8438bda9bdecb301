"""A teacher reads what it can, and a longer row in windows whose middles count."""

import torch

from sparsebert.model import load_model
from sparsebert.training import teacher
from sparsebert.training.fidelity import encoder_states
from sparsebert.training.teacher import Teacher, _windows


def _inputs(*lengths: int) -> dict[str, torch.Tensor]:
    longest = max(lengths)
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(5, 60, (len(lengths), longest), generator=generator)
    real = (torch.arange(longest) < torch.tensor(lengths)[:, None]).long()
    return {"input_ids": ids * real, "attention_mask": real}


def test_a_short_batch_is_read_as_it_is_and_teaches_no_gradient() -> None:
    model = load_model("scratch:tiny", vocab_size=60).eval()
    inputs = _inputs(6, 4)
    states = Teacher(model, window=8).states(inputs)
    with torch.no_grad(), teacher._fastest(torch.device("cpu")):
        expected = encoder_states(model, inputs)
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(states.layers, expected.layers, strict=True))
    assert not any(states.requires_grad for states in states.layers)
    assert not any(parameter.requires_grad for parameter in model.parameters())


def test_every_token_of_a_long_row_counts_once_near_the_middle_of_its_window() -> None:
    windows = _windows(30, 10)
    counted = torch.cat([window.tokens[window.counts] for window in windows])
    assert sorted(counted.tolist()) == list(range(30))
    for number, window in enumerate(windows):
        assert len(window.tokens) == 10
        assert window.tokens[0] == 0
        assert window.tokens[-1] == 29
        inside = window.counts[1:-1].nonzero().flatten().tolist()
        if 0 < number < len(windows) - 1:
            assert min(inside) >= 1  # of eight, the ends are left to the neighbours
            assert max(inside) <= 6


def test_a_row_that_fits_is_one_window() -> None:
    (only,) = _windows(10, 10)
    assert only.tokens.tolist() == list(range(10))
    assert only.counts.all()


def test_states_of_a_long_row_are_those_of_its_windows() -> None:
    model = load_model("scratch:tiny", vocab_size=60, initializer_range=0.5).eval()
    inputs = _inputs(30, 7)
    states = Teacher(model, window=10).states(inputs)
    assert states.layers[-1].shape == (2, 30, model.config.hidden_size)
    window = _windows(30, 10)[1]
    part = {name: tensor[:1, window.tokens] for name, tensor in inputs.items()}
    short = {name: tensor[1:, :7] for name, tensor in inputs.items()}
    with torch.no_grad(), teacher._fastest(torch.device("cpu")):
        expected, alone = encoder_states(model, part).layers[-1][0].float(), encoder_states(model, short).layers[-1][0]
    torch.testing.assert_close(
        states.layers[-1][0, window.tokens[window.counts]], expected[window.counts], atol=0.05, rtol=0.05
    )
    torch.testing.assert_close(states.layers[-1][1, :7], alone.float(), atol=0.05, rtol=0.05)
    assert (states.layers[-1][1, 7:] == 0).all()
