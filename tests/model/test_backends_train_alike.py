"""minilm trained in float64 through the C++ kernel follows the loss curve it has through torch's own attention."""

import pytest
import torch

from sparsebert import load_model, patterns
from sparsebert.attention import sparse_library

STEPS, ROWS, LENGTH, HEADS = 30, 2, 32, 12


def loss_curve(backend: str) -> list[float]:
    torch.manual_seed(0)
    quiet = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    model = load_model("minilm", "masked_lm", attention_backend=backend, **quiet).double().train()
    model.set_pattern(patterns.from_offsets(LENGTH, [[-1, 1, 3 + head] for head in range(HEADS)], border=True))
    model.requires_grad_(False)
    weights = list(model.bert.encoder.requires_grad_(True).parameters())  # words stay: they cost time and show nothing
    optimiser = torch.optim.AdamW(weights, lr=1e-4, fused=True)
    draw = torch.Generator().manual_seed(1)
    losses = []
    for _ in range(STEPS):
        tokens = torch.randint(1000, 20_000, (ROWS, LENGTH), generator=draw)
        real = torch.ones_like(tokens)
        real[1, 20:] = 0
        loss = model(input_ids=tokens, attention_mask=real, labels=tokens.masked_fill(real == 0, -100)).loss
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    return losses


def test_thirty_steps_of_minilm_have_the_same_losses_in_float64() -> None:
    if not sparse_library.is_built():
        pytest.skip("the C++ kernel was not built: no C++ compiler")
    expected, found = loss_curve("sdpa"), loss_curve("sparse")
    assert expected[-1] < expected[0]
    assert max(abs(one - other) for one, other in zip(expected, found, strict=True)) < 1e-8
