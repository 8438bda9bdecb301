import pytest

from sparsebert.errors import ConfigError
from sparsebert.training import FitConfig


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("num_steps", 0),
        ("micro_batches", 0),
        ("warmup_steps", -1),
        ("max_grad_norm", -0.5),
        ("schedule", "cosine"),
        ("precision", "float16"),
        ("checkpoint_every", "often"),
        ("peer_timeout", float("nan")),
        ("max_skipped", True),
        ("warmup_steps", 6),
        ("betas", (0.9, 1.0)),
        ("betas", 0.9),
        ("num_steps", 2.5),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused_by_name(setting: str, value: object) -> None:
    with pytest.raises(ConfigError, match=setting):
        FitConfig(**{"num_steps": 5, setting: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(("wanted", "ranks", "found"), [(1, 1, 1), (1, 2, 2), (2, 2, 2), (3, 2, 4), (4, 3, 6)])
def test_micro_batches_are_rounded_up_to_what_the_ranks_can_share(wanted: int, ranks: int, found: int) -> None:
    assert FitConfig(num_steps=1, micro_batches=wanted).for_ranks(ranks).micro_batches == found
