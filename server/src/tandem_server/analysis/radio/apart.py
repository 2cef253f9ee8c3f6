"""Which events stand apart from the others of their modem, and which of another modem came with them. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tandem_server.analysis.radio.shapes import Radio, Whole
from tandem_server.analysis.radio.stretches import Truth

NEVER = np.iinfo(np.int64).max // 4
"""Later than anything."""
TOGETHER_NS = 1_000_000_000
"""Events of two modems at most so far from each other are both modems': they are polled once a second."""


@dataclass(frozen=True, slots=True)
class Standing:
    """By event. ``apart``: no other one of its path nearer than the gap. ``next_ns``: when that path's next one came. ``other_ns``: how far
    the nearest event of another path is, ``NEVER`` without one; ``both``: at most ``TOGETHER_NS``."""

    apart: Truth
    next_ns: Whole
    other_ns: Whole

    @property
    def both(self) -> Truth:
        """Whether another modem had one with it."""
        return np.asarray(self.other_ns <= TOGETHER_NS)


def standing(radio: Radio, gap_ns: int) -> Standing:
    """Of all events."""
    count = len(radio.t_ns)
    apart, following = np.ones(count, dtype=bool), np.full(count, NEVER, dtype=np.int64)
    other = np.full(count, NEVER, dtype=np.int64)
    paths = np.array(radio.path, dtype=object)
    for path in dict.fromkeys(radio.path):
        mine = np.flatnonzero(paths == path)
        mine = mine[np.argsort(radio.t_ns[mine], kind="stable")]
        t = radio.t_ns[mine]
        near = np.diff(t) < gap_ns
        apart[mine] = ~(np.append(near, False) | np.append(False, near))
        following[mine[:-1]] = t[1:]
        others = np.sort(radio.t_ns[paths != path])
        if len(others):
            at = np.searchsorted(others, t)
            before = np.where(at > 0, t - others[np.maximum(at - 1, 0)], NEVER)
            after = np.where(at < len(others), others[np.minimum(at, len(others) - 1)] - t, NEVER)
            other[mine] = np.minimum(before, after)
    return Standing(apart, following, other)
