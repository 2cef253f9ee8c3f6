"""What the fuzzers share: ``--seconds`` and ``--seed``, rounds until the time is over, wounds of JSON and of bytes.

Each exits with 1 on a finding, and ends with one line that says what was tried."""

from __future__ import annotations

import argparse
import copy
import random
import time
from collections.abc import Iterator, Sequence
from typing import Any

JUNK: tuple[Any, ...] = (
    None, True, -1, 0, 2**70, 1.5, float("inf"), "", "x" * 400, "x" * 3000, "..", "../../etc/passwd", "a/../../b", "/etc/x", "\x00",
    "a\x00", "é\u2028", [], {}, [[]], [{}] * 50, "0" * 64,
)  # fmt: skip


def parser(about: str) -> argparse.ArgumentParser:
    """With the two options that all have."""
    made = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--seconds", type=float, default=60.0, help="how long; default: %(default)g")
    made.add_argument("--seed", type=int, default=1, help="default: %(default)s")
    return made


def rounds(seconds: float) -> Iterator[int]:
    """0, 1, 2 … for so long; at least one."""
    end_s, number = time.monotonic() + seconds, 0
    while number == 0 or time.monotonic() < end_s:
        yield number
        number += 1


def changed(chance: random.Random, told: Any, changes: int) -> Any:
    """A copy of what JSON tells with so many values replaced, moved or removed, anywhere."""
    told = copy.deepcopy(told)
    for _ in range(changes):
        at = told
        while isinstance(at, dict | list) and at:
            key: Any = chance.choice(list(at) if isinstance(at, dict) else range(len(at)))
            if isinstance(at[key], dict | list) and at[key] and chance.random() < 0.7:
                at = at[key]
                continue
            if chance.random() < 0.2:
                del at[key]
            elif type(at[key]) is int and chance.random() < 0.3:
                at[key] += chance.choice((-1, 1, 1 << 31, -(1 << 31)))
            else:
                at[key] = copy.deepcopy(chance.choice(JUNK))
            break
    return told


def scratched(chance: random.Random, raw: bytes, tokens: Sequence[bytes] = (b"",), most: int = 8) -> bytes:
    """Up to ``most`` places, of a byte or of many, are a token, another byte, or there twice."""
    made = bytearray(raw)
    for _ in range(chance.randint(0, most)):
        at = chance.randrange(len(made) + 1)
        to = min(len(made), at + chance.choice((0, 1, 1, 2, 5, 30, chance.randrange(len(made) + 1))))
        made[at:to] = chance.choice((chance.choice(tokens), bytes(made[at:to]) * 2, bytes([chance.randrange(256)])))
    return bytes(made)
