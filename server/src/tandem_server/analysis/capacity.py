"""What a link offered over a span of time."""

from __future__ import annotations

import numpy as np

from tandem_server.analysis.truth import Array, Link


def mean_held(t_s: Array, values: Array, start_s: float, end_s: float) -> float | None:
    """Mean over [start, end] of a quantity whose values each hold until the next; before the first, the first holds.

    None without values or when the span is empty. Exact: the integral of the steps over the span's length.
    """
    if len(t_s) == 0 or not end_s > start_s:
        return None
    inside = (t_s > start_s) & (t_s < end_s)
    edges = np.concatenate(([start_s], t_s[inside], [end_s]))
    held = np.maximum(np.searchsorted(t_s, edges[:-1], side="right") - 1, 0)
    return float(np.sum(values[held] * np.diff(edges)) / (end_s - start_s))


def offered_bit_per_s(links: list[Link | None], start_s: float, end_s: float) -> float | None:
    """Sum over the links of their mean downlink capacity, outages as nothing; None when a link is unknown or none is given."""
    total = 0.0
    for link in links:
        mean = None if link is None else mean_held(link.t_s, link.down_bit_per_s, start_s, end_s)
        if mean is None:
            return None
        total += mean
    return total if links else None
