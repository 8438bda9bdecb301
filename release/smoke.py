"""What an installed wheel must do, in an environment that has nothing but it: python release/smoke.py

The package comes from the environment, not from a clone; its command answers; the kernel runs on every instruction set
of this processor and agrees with the oracle; OpenMP is torch's own copy; a pattern comes back from its file.
"""

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

import sparsebert
from sparsebert import Pattern, attend, patterns
from sparsebert.attention import sparse_library

COMPILERS = ("cc", "gcc", "g++", "c++", "clang", "clang++")
ENVIRONMENT = Path(sys.prefix).resolve()


def the_package_is_the_installed_one() -> str:
    place = Path(sparsebert.__file__).resolve()
    assert place.is_relative_to(ENVIRONMENT), f"sparsebert is imported from {place}, not from {ENVIRONMENT}"
    found = [name for name in COMPILERS if shutil.which(name)]
    return f"sparsebert {sparsebert.__version__}, Python {sys.version.split()[0]}, torch {torch.__version__}, " + (
        f"compilers in PATH: {', '.join(found)}" if found else "no compiler in PATH"
    )


def the_command_answers() -> str:
    program = Path(sys.executable).parent / "sparsebert"
    for words in (["--help"], ["pattern", "star", "--length", "16"]):
        done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"sparsebert {' '.join(words)} ended with {done.returncode}:\n{done.stderr}"
    return "sparsebert --help and sparsebert pattern answer"


def the_kernel_agrees_with_the_oracle() -> str:
    assert sparse_library.is_built(), "the wheel holds no kernel: it was built without a C++ compiler"
    pattern = patterns.big_bird(length=96, heads=4, seed=0)
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(3, 2, 4, 96, 32, generator=generator).requires_grad_()
    lengths = torch.tensor([96, 41])
    expected = _output_and_gradient(inputs.double(), pattern, lengths, "reference")
    able = sparse_library.ISAS[: int(sparse_library.library().sb_best_isa()) + 1]
    worst = 0.0
    for name in able:
        os.environ[sparse_library.ISA_VARIABLE] = name
        found = _output_and_gradient(inputs, pattern, lengths, "sparse")
        differences = [(one - other).abs().max().item() for one, other in zip(found, expected, strict=True)]
        worst = max(worst, *differences)
        assert worst < 1e-4, f"the kernel for {name} differs from the oracle by {worst:.1e}"
    del os.environ[sparse_library.ISA_VARIABLE]
    return f"the kernel runs on {', '.join(able)}; forward and backward within {worst:.1e} of float64"


def _output_and_gradient(
    inputs: torch.Tensor, pattern: Pattern, lengths: torch.Tensor, backend: str
) -> tuple[torch.Tensor, torch.Tensor]:
    output = attend(*inputs.unbind(), pattern=pattern, lengths=lengths, backend=backend)
    (gradient,) = torch.autograd.grad(output.square().sum(), inputs)
    return output.detach().double(), gradient.double()


def openmp_is_the_copy_of_torch() -> str:
    """The wheel brings no OpenMP runtime: its kernel must be bound to the one that torch has loaded."""
    loaded = ctypes.CDLL(str(Path(sparse_library.__file__).with_name("_sparse_kernel.so")))
    # A name is looked up in what the kernel itself was bound to.
    address = ctypes.cast(loaded.omp_get_max_threads, ctypes.c_void_p).value
    assert address is not None
    home = next(path for start, end, path in _mapped() if start <= address < end)
    ours = Path(torch.__file__).parent / "lib" / "libgomp.so.1"
    assert home == ours, f"the kernel's OpenMP is {home}; expected torch's own, {ours}"
    return "OpenMP is torch's own libgomp.so.1"


def _mapped() -> list[tuple[int, int, Path]]:
    """First and last address, and file, of everything in memory that came from a file."""
    lines = [line.split(maxsplit=5) for line in Path("/proc/self/maps").read_text().splitlines()]
    spans = [(line[0].split("-"), line[5]) for line in lines if len(line) == 6]
    return [(int(start, 16), int(end, 16), Path(path)) for (start, end), path in spans]


def a_pattern_comes_back_from_its_file() -> str:
    pattern = patterns.longformer(length=64, heads=2, seed=3)
    with tempfile.TemporaryDirectory() as folder:
        pattern.save(Path(folder) / "pattern.safetensors")
        assert Pattern.load(Path(folder) / "pattern.safetensors") == pattern
    return "a pattern comes back from its file"


if __name__ == "__main__":
    for check in (
        the_package_is_the_installed_one,
        the_command_answers,
        the_kernel_agrees_with_the_oracle,
        openmp_is_the_copy_of_torch,
        a_pattern_comes_back_from_its_file,
    ):
        print(f"smoke: {check()}", flush=True)
