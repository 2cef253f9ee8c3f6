"""Which numbers may be given out while some boots' records are passed over. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Range = tuple[int, int | None]
"""First and last number; None: no end."""


def between(passing: Sequence[Range]) -> list[Range]:
    """The numbers from 0 on that are not in ``passing``, which is in order."""
    left: list[Range] = []
    first = 0
    for low, high in passing:
        if low > first:
            left.append((first, low - 1))
        if high is None:
            return left
        first = max(first, high + 1)
    return [*left, (first, None)]


def places(files: Iterable[int], passing: Sequence[Range], *, newest: bool) -> list[tuple[int, int, int | None]]:
    """Where to look, in turn: each file (by its first number) with each range of numbers that may be had."""
    found = [(file, *part) for file in sorted(files) for part in between(passing)]
    return found[::-1] if newest else found
