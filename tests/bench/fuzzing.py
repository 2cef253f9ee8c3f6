"""What the fuzzers share: ``--seconds`` and ``--seed``, and rounds until the time is over.

Each exits with 1 on a finding, and ends with one line that says what was tried."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator


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
