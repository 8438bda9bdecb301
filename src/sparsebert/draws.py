"""Random draws that can be recomputed: each is a pure function of (seed, stream, step, row).

Nothing is drawn from a state that moves along, so a run that was killed, a second rank, or a curious reader gets
the same numbers without replaying what came before.
"""

import hashlib

import numpy as np


def _words(seed: int, stream: str) -> tuple[int, int]:
    digest = hashlib.blake2b(f"{seed}/{stream}".encode(), digest_size=16).digest()
    return int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little")


def generator(seed: int, stream: str, step: int = 0, row: int = 0) -> np.random.Generator:
    """Numbers for one row of one step of one stream, from Philox (a counter-based generator)."""
    # The two low words count the numbers drawn here; step and row pick disjoint ranges above them.
    counter = [0, 0, row, step]
    return np.random.Generator(np.random.Philox(key=list(_words(seed, stream)), counter=counter))


def seed_for(seed: int, stream: str, step: int = 0, row: int = 0) -> int:
    """A 63-bit seed for generators that are not ours, such as torch's."""
    digest = hashlib.blake2b(f"{seed}/{stream}/{step}/{row}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1
