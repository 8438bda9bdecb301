"""Holds a wheel to what it may be: python release/contents.py WHEEL

One kernel and no other library inside, for any Python 3 on a manylinux platform; it asks for nothing that such a
platform does not have, but for libgomp.so.1, which torch brings (docs/decisions/wheel.md).
"""

import io
import re
import sys
import zipfile
from pathlib import Path

KERNEL = "sparsebert/attention/_sparse_kernel.so"
NAME = re.compile(r"sparsebert-[\w.]+-py3-none-(manylinux_\d+_\d+|manylinux\d+)_(x86_64|aarch64)(\.\w+)*\.whl")
# PEP 600 promises all of these but the first.
ALLOWED = {"libgomp.so.1", "libstdc++.so.6", "libgcc_s.so.1", "libm.so.6", "libc.so.6", "libpthread.so.0"}
LOADERS = {"ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}


def problems(wheel: Path) -> list[str]:
    """What is wrong with the wheel, in sentences."""
    found = []
    if not NAME.fullmatch(wheel.name):
        found.append(f"the wheel is called {wheel.name}; expected py3-none and a manylinux platform")
    with zipfile.ZipFile(wheel) as archive:
        libraries = [name for name in archive.namelist() if re.search(r"\.so(\.|$)", name)]
        if libraries != [KERNEL]:
            return [*found, f"the wheel holds the libraries {libraries}; expected {KERNEL} alone"]
        needed = needs(archive.read(KERNEL))
    foreign = sorted(needed - ALLOWED - LOADERS)
    if foreign:
        found.append(f"the kernel asks for {', '.join(foreign)}, which manylinux does not promise")
    if "libgomp.so.1" not in needed:
        found.append("the kernel does not ask for libgomp.so.1 by that name, so it would not share torch's copy")
    return found


def needs(library: bytes) -> set[str]:
    """The libraries that a library asks for when it is loaded."""
    from elftools.elf.dynamic import DynamicSection  # comes with auditwheel
    from elftools.elf.elffile import ELFFile

    sections = ELFFile(io.BytesIO(library)).iter_sections()
    return {
        tag.needed
        for section in sections
        if isinstance(section, DynamicSection)
        for tag in section.iter_tags()
        if tag.entry.d_tag == "DT_NEEDED"
    }


if __name__ == "__main__":
    said = problems(Path(sys.argv[1]))
    print("\n".join(said) or f"{Path(sys.argv[1]).name}: one kernel, no other library, nothing foreign asked for")
    sys.exit(1 if said else 0)
