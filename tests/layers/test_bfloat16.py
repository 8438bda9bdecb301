"""Whether a processor is asked for bfloat16 that it has."""

import pytest

from sparsebert.errors import ConfigError
from sparsebert.layers import bfloat16


def test_a_processor_without_bfloat16_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bfloat16, "has_fast_bfloat16", lambda: False)
    monkeypatch.setattr(bfloat16, "require_bfloat16", lambda: None)
    with pytest.raises(ConfigError, match=r"no instructions for bfloat16.*quantize"):
        bfloat16.require_fast_bfloat16()
