"""Builds the C++ kernel of backend="sparse"; everything else about the package is in pyproject.toml.

kernel.cpp and int8_kernel.cpp are compiled once per instruction set, each with its own flags; the library picks one at
run time, so the result runs on any processor of the platform. Without a suitable compiler the install succeeds and the
kernel is left out (docs/decisions/kernel-build.md).
"""

import platform
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

X86 = platform.machine().lower() in ("x86_64", "amd64")
# No -ffast-math: NaN must stay NaN and minus infinity must mean "excluded". What it would bring here is had without
# it: sums are written in the order they run in, and contraction to fused multiply-adds is asked for by itself.
FLAGS = ["-O3", "-std=c++17", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast", "-fvisibility=hidden"]
FLAGS += ["-g0", "-Wno-psabi", "-fopenmp"]
INSTRUCTION_SETS = {"portable": []}
if X86:
    INSTRUCTION_SETS |= {
        "avx2": ["-mavx2", "-mfma", "-mf16c"],
        "avx512": [
            "-mavx512f",
            "-mavx512dq",
            "-mavx512bw",
            "-mavx512vl",
            "-mfma",
            "-mf16c",
            "-mprefer-vector-width=512",
        ],
    }


class BuildKernel(build_ext):
    """One object file per instruction set, one plain shared library that ctypes loads."""

    def get_ext_filename(self, fullname: str) -> str:
        return str(Path(*fullname.split(".")).with_suffix(".so"))

    def build_extension(self, ext: Extension) -> None:
        build = Path(self.build_temp)
        objects = []
        for name, flags in INSTRUCTION_SETS.items():
            objects += self.compiler.compile(
                ["csrc/kernel.cpp", "csrc/int8_kernel.cpp"],
                output_dir=str(build / name),
                macros=[("SB_RUN", f"run_{name}"), ("SB_RUN_ROWS", f"run_rows_{name}")],
                extra_postargs=FLAGS + flags,
                depends=ext.depends,
            )
        objects += self.compiler.compile(
            ["csrc/interface.cpp", "csrc/call.cpp", "csrc/index.cpp", "csrc/int8_call.cpp", "csrc/steps.cpp"],
            output_dir=str(build),
            extra_postargs=FLAGS,
            depends=ext.depends,
        )
        # No dependency on the C++ runtime's symbols beyond the standard library; OpenMP is the one torch has loaded.
        self.compiler.link_shared_object(
            objects, self.get_ext_fullpath(ext.name), extra_postargs=["-fopenmp"], target_lang="c++"
        )


class PlatformWheel(bdist_wheel):
    """The kernel is loaded by ctypes and knows nothing of Python: one wheel a platform serves every Python 3."""

    def get_tag(self) -> tuple[str, str, str]:
        _, _, platform_tag = super().get_tag()
        return "py3", "none", platform_tag


setup(
    ext_modules=[
        Extension(
            "sparsebert.attention._sparse_kernel",
            sources=[
                f"csrc/{name}.cpp"
                for name in ("kernel", "interface", "call", "index", "int8_kernel", "int8_call", "steps")
            ],
            depends=sorted(str(header) for header in Path("csrc").glob("*.h")),
            language="c++",
            optional=True,
        )
    ],
    cmdclass={"build_ext": BuildKernel, "bdist_wheel": PlatformWheel},
)
