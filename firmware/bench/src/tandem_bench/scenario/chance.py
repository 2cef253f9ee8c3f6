"""Seeded randomness by label, and noises that every quantity of a scenario is made from.

A stream belongs to its label alone: another site more, or a longer route, does not change what the others draw.
"""

from __future__ import annotations

import hashlib
import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def stream(seed: int, *label: object) -> np.random.Generator:
    """A generator of its own for ``seed`` and ``label``; the same everywhere (SHA-256, not Python's hash)."""
    text = "\x1f".join([str(seed), *map(str, label)])
    return np.random.Generator(np.random.PCG64(int.from_bytes(hashlib.sha256(text.encode()).digest(), "big")))


def exponential_noise(rng: np.random.Generator, correlation: Array, start: float | None = None) -> Array:
    """Gaussian noise of unit variance; sample i has correlation ``correlation[i]`` (0 to 1) with sample i − 1.

    With exp(−Δd/d₀) it is Gudmundson's shadowing along a route (Electronics Letters 27(23), 1991). ``start`` sets the first
    value.
    """
    fresh = rng.standard_normal(len(correlation))
    spread = np.sqrt(1.0 - correlation**2) * fresh
    value = float(fresh[0]) if start is None else start
    out = [value]
    for rho, step in zip(correlation[1:].tolist(), spread[1:].tolist(), strict=True):
        value = rho * value + step
        out.append(value)
    return np.array(out)


def slow_noise(rng: np.random.Generator, t_s: Array, shortest_s: float, longest_s: float) -> Array:
    """Smooth noise of unit variance: eight sines with periods between the two, evenly spread in their logarithm."""
    periods = shortest_s * (longest_s / shortest_s) ** rng.random(8)
    turns = rng.random(8)
    total = np.zeros_like(t_s)
    for period, turn in zip(periods.tolist(), turns.tolist(), strict=True):
        total += np.sin(2 * math.pi * (t_s / period + turn))
    return total / 2.0
