"""What the fuzzers share: ``--seconds`` and ``--seed``, and rounds until the time is over.

Each exits with 1 on a finding, and ends with one line that says what was tried."""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Iterator


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


def documents(
    about: str | None,
    made: Callable[[random.Random], bytes],
    read: Callable[[bytes], object],
    refusal: type[Exception],
) -> int:
    """A whole fuzzer of a reader: each document that is ``made`` is read, or refused by one line; the exit status."""
    args = parser(about or "").parse_args()
    chance, size, good, slowest_s = random.Random(args.seed), 0, 0, 0.0
    for number in rounds(args.seconds):  # noqa: B007  told at the end
        document = made(chance)
        begun_s = time.perf_counter()
        try:
            read(document)
            good += 1
        except refusal as error:
            if "\n" in str(error):
                print(f"more than one line: {error!r} of {document!r}")
                return 1
        slowest_s = max(slowest_s, time.perf_counter() - begun_s)
        size += len(document)
    tried = f"{number + 1} documents, {size} bytes: {good} read, the others one error"
    print(f"seed {args.seed}: {tried}; the slowest {slowest_s:.3f} s")
    return 0
