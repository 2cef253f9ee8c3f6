"""What is measured in which order: rounds of steps, drawn by a seed. Pure: the same seed gives the same sequence on every machine."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

Spacing = Literal["periodic", "poisson"]


class Step(NamedTuple):
    """One way of moving the bytes: ``tcp`` over ``path`` alone, ``tcp-all`` over each path at once, ``mptcp`` with ``path`` as the
    primary."""

    kind: Literal["tcp", "tcp-all", "mptcp"]
    path: str | None

    @property
    def name(self) -> str:
        """As phases and results say it."""
        return self.kind if self.path is None else f"{self.kind} {self.path}"


@dataclass(frozen=True, slots=True)
class Round:
    """Every step once, in ``order``: what the papers call an experiment. ``gap_s``: from the start of the round before to the start of
    this one (0 for the first). ``bytes``: of each transfer, None where they are timed."""

    number: int
    gap_s: float
    order: tuple[Step, ...]
    bytes: int | None = None

    def told(self) -> dict[str, object]:
        """For the result."""
        told: dict[str, object] = {"gap_s": self.gap_s, "order": [step.name for step in self.order]}
        return told if self.bytes is None else {"bytes": self.bytes, **told}


def steps(paths: Sequence[str], primaries: Sequence[str], *, together: bool) -> tuple[Step, ...]:
    """TCP over each path, TCP over all at once if ``together``, MPTCP with each of ``primaries``."""
    all_at_once = (Step("tcp-all", None),) if together else ()
    return (*(Step("tcp", p) for p in paths), *all_at_once, *(Step("mptcp", p) for p in primaries))


def rounds(
    ways: Sequence[Step],
    count: int,
    seed: int,
    spacing: Spacing,
    interval_s: float,
    sizes: tuple[int, int] | None = None,
) -> tuple[Round, ...]:
    """``count`` rounds, each with an order and a size of its own. ``interval_s``: between two starts, always (``periodic``) or on the
    average of an exponential distribution (``poisson``). ``sizes``: least and greatest number of bytes, both may be drawn."""
    drawn = random.Random(f"tandem rounds {seed}")
    made = []
    for number in range(1, count + 1):
        gap_s = 0.0
        if number > 1 and interval_s > 0:
            gap_s = interval_s if spacing == "periodic" else drawn.expovariate(1 / interval_s)
        size = None if sizes is None else log_uniform(drawn.random(), *sizes)
        order = list(ways)
        drawn.shuffle(order)
        made.append(Round(number, gap_s, tuple(order), size))
    return tuple(made)


def log_uniform(at: float, least: int, greatest: int) -> int:
    """The whole number at ``at`` (0 to 1) of a log-uniform distribution from ``least`` to ``greatest``."""
    value = round(math.exp(math.log(least) + at * (math.log(greatest) - math.log(least))))
    return max(least, min(greatest, value))
