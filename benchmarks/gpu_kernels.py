"""Do the Triton kernels compile for each GPU, and what do they take? Needs the triton package and no GPU.

    python benchmarks/gpu_kernels.py                          the table of docs/gpu.md
    python benchmarks/gpu_kernels.py --targets 80 --sizes 64  some of it
    python benchmarks/gpu_kernels.py --json FILE              every compiled kernel by itself

What is compiled is what forward and backward launch: their launches are recorded instead of run, and each kernel is
specialised as Triton's own launcher would. Registers and stack (spills) are read from the binary with cuobjdump, the
shared memory from what the launcher would ask for.
"""

import argparse
import json
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, make_backend
from triton.runtime.jit import create_function_from_signature

from sparsebert import patterns
from sparsebert.attention import triton_launch
from sparsebert.attention.triton_index import build
from sparsebert.patterns import Pattern

TARGETS = (75, 80, 90, 100)
SIZES = (32, 64)
TYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
HEADS, LENGTH = 2, 512
Launch = tuple[Any, dict[str, Any], dict[str, Any]]  # kernel, arguments, options
CUOBJDUMP = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"


def kinds() -> dict[str, Pattern]:
    """One pattern for each way through the kernels."""
    offsets = patterns.from_offsets(LENGTH, [[-9, -1, 1, 9], [-2, 0, 2]], border=True)
    lists = patterns.random(LENGTH, HEADS, sparsity=0.95) | patterns.border(LENGTH)
    return {"offsets": offsets, "lists": lists}


def launches(pattern: Pattern, size: int, dtype: torch.dtype, everything: bool) -> Iterator[Launch]:
    """Every kernel that a forward and a backward pass launch, once, with its arguments and options."""
    found: dict[str, Launch] = {}

    def record(kernel: Any, programs: int, pool: dict[str, Any], **options: Any) -> None:
        arguments = {name: pool[name] for name in kernel.arg_names}
        found.setdefault(kernel.__name__, (kernel, arguments, triton_launch.OPTIONS | options))

    query = torch.zeros(2, LENGTH, HEADS, size, dtype=dtype).transpose(1, 2)
    tensors = {"query": query, "key": query.clone(), "value": query.clone()}
    tensors |= {"bias": None, "lengths": None, "seed": None}
    if everything:
        pattern = pattern.anchored("token")
        tensors |= {"bias": torch.zeros(pattern.kept), "lengths": torch.full((2,), 9), "seed": torch.tensor([1])}
    index, dropout = build(pattern, LENGTH, torch.device("cpu")), 0.1 if everything else 0.0
    launched, triton_launch.launch = triton_launch.launch, record
    try:
        output, logsums = triton_launch.forward(index, tensors, 0.125, dropout)
        tensors |= {"output": output, "logsums": logsums, "grad": output.clone()}
        triton_launch.backward(index, tensors, 0.125, dropout)
    finally:
        triton_launch.launch = launched
    yield from found.values()


def compiled(launch: Launch, target: int) -> Any:
    """The kernel, with its binary, that a launch would run on a GPU of this target."""
    kernel, arguments, options = launch
    gpu = GPUTarget("cuda", target, 32)
    backend = make_backend(gpu)
    bind = create_function_from_signature(kernel.signature, kernel.params, backend)
    bound, specialization, _ = bind(**arguments, **options)
    parsed, signature, constants, attributes = kernel._pack_args(backend, options, bound, specialization, options)
    source = ASTSource(kernel, signature, constants, attributes)
    return triton.compile(source, target=gpu, options=parsed.__dict__)


def usage(kernel: Any) -> dict[str, int]:
    """Registers and spilled bytes of the binary, and the shared memory that a launch asks for."""
    text = _cuobjdump("--dump-resource-usage", kernel)
    numbers = dict(re.findall(r"(REG|STACK):(\d+)", text))
    return {name.lower(): int(value) for name, value in numbers.items()} | {"shared": kernel.metadata.shared}


def instructions(kernel: Any) -> Counter[str]:
    """The instructions of one step of a tile's walk, by name."""
    return Counter(innermost_loop(_cuobjdump("-sass", kernel)))


def innermost_loop(listing: str) -> list[str]:
    """Names of the instructions between the last backward branch's target and the branch: the walk over a line."""
    lines = re.findall(r"/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)([^;]*);", listing)
    loops = []
    for at, name, rest in lines:
        target = re.search(r"0x([0-9a-f]+)", rest)
        if name.startswith("BRA") and target and int(target[1], 16) < int(at, 16):
            loops.append((int(target[1], 16), int(at, 16)))
    if not loops:
        return []
    begin, end = max(loops, key=lambda loop: loop[1] - loop[0])
    return [name for at, name, _ in lines if begin <= int(at, 16) <= end]


def _cuobjdump(what: str, kernel: Any) -> str:
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(kernel.asm["cubin"])
        file.flush()
        return subprocess.run([str(CUOBJDUMP), what, file.name], check=True, capture_output=True, text=True).stdout


def rows(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    for kind, pattern in kinds().items():
        for everything in (False, True):
            for size in options.sizes:
                for name in options.types:
                    for launch in launches(pattern, size, TYPES[name], everything):
                        for target in options.targets:
                            about = {"kernel": launch[0].__name__, "pattern": kind, "everything": everything}
                            about |= {"size": size, "type": name, "target": target}
                            yield about | usage(compiled(launch, target))


def table(found: list[dict[str, Any]]) -> None:
    """A line a kernel and pattern: the most that any type takes, by target."""
    targets = sorted({row["target"] for row in found})
    print(f"| kernel | pattern | head size | with | {' | '.join(f'sm_{target}' for target in targets)} |")
    print(f"|---|---|---|---|{'---|' * len(targets)}")
    keys = dict.fromkeys((row["kernel"], row["pattern"], row["size"], row["everything"]) for row in found)
    for key in keys:
        cells = []
        for target in targets:
            mine = [row for row in found if row["target"] == target and _key(row) == key]
            most = {name: max(row[name] for row in mine) for name in ("reg", "stack", "shared")}
            cells.append(f"{most['reg']} / {most['stack']} / {most['shared']}")
        kernel, kind, size, everything = key
        print(f"| {kernel} | {kind} | {size} | {'everything' if everything else ''} | {' | '.join(cells)} |")


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["kernel"], row["pattern"], row["size"], row["everything"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--targets", type=int, nargs="+", default=list(TARGETS))
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--types", nargs="+", default=list(TYPES), choices=list(TYPES))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = list(rows(options))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    print(
        f"triton {triton.__version__}, {len(found)} kernels compiled, {triton_launch.OPTIONS['num_warps']} warps each."
    )
    print(f"Registers a thread / bytes spilled / bytes of shared memory, the most of {', '.join(options.types)}:\n")
    table(found)


if __name__ == "__main__":
    main()
