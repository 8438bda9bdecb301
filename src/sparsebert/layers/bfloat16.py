"""Can this processor do what it says? Some virtual machines advertise AMX and die of its first instruction."""

import functools
import subprocess
import sys
from pathlib import Path

import torch

from sparsebert.errors import ConfigError

# Large enough that the product is handed to oneDNN's fastest path.
_PRODUCT = "import torch; torch.ones(64, 384, dtype=torch.bfloat16) @ torch.ones(384, 384, dtype=torch.bfloat16)"


@functools.cache
def require_bfloat16() -> None:
    """Refuse bfloat16 on a processor where a product in it ends the process: tried in a process of its own."""
    if _advertises_amx() and subprocess.run([sys.executable, "-c", _PRODUCT], check=False).returncode < 0:
        raise ConfigError(
            "a product in bfloat16 is an illegal instruction on this processor, although it advertises AMX; set "
            "ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 in the environment, or leave precision at float32"
        )


def has_fast_bfloat16() -> bool:
    """Whether products in bfloat16 are this processor's own, and so faster than in float32; false where they kill."""
    if not (torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()):
        return False
    try:
        require_bfloat16()
    except ConfigError:
        return False
    return True


def require_fast_bfloat16() -> None:
    """Refuse bfloat16 for inference on a processor that would have to widen every number first."""
    require_bfloat16()
    if not has_fast_bfloat16():
        raise ConfigError(
            "this processor has no instructions for bfloat16 (AVX512-BF16 or AMX) and would be slower with it than "
            "with float32; stay in float32, or call quantize(model) for int8"
        )


def _advertises_amx() -> bool:
    about = Path("/proc/cpuinfo")  # of Linux
    return about.exists() and " amx_tile" in about.read_text()
