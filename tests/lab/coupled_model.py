"""LIA, OLIA and BALIA as their papers write them, in floating point: what a window's step must come to for given inputs.

Knows nothing of the BPF object's arithmetic. A step is an entry of its map ``tandem_steps``: see ``struct step`` there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

ONE = 1 << 40
LEAST = 2
LIA, OLIA, BALIA = range(3)
ACK, LOSS = range(2)
Step = dict[str, Any]


@dataclass(frozen=True)
class Path:
    """``w``: window in packets; ``rtt``: in s; ``unlost``: OLIA's l, bytes."""

    w: float
    rtt: float
    unlost: float

    @property
    def x(self) -> float:
        """Rate, in packets per second."""
        return self.w / self.rtt


def wrong(step: Step, tolerance: float = 0.002) -> str | None:
    """How a recorded step differs from the equations; None when it does not.

    ``tolerance``: relative, of an acknowledgement's whole increase; besides it 2^-24 packets. The fixed point rounds round-trip rates to
    2^-32 packets a microsecond, shares to 2^-30, gains to 2^-40 and BALIA's alpha to 2^-10. A loss must agree to the packet."""
    paths = [Path(p["cwnd"], p["rtt_us"] / 1e6, p["unlost"]) for p in step["paths"]]
    coupled = [p for p in paths if p.w > 0] if step["count"] > 1 else []
    own = paths[step["self"]]
    if step["event"] == LOSS:
        wanted = _after_loss(step, coupled, own)
        return None if abs(step["result"] - wanted) <= 1 else f"threshold {step['result']}, not {wanted:.2f}"
    before = step["cwnd"] + step["credit"] / ONE
    grown = min(step["acked"], max(0, step["ssthresh"] - step["cwnd"]))  # slow start
    rest = step["acked"] - grown
    change = step["result"] + step["credit_after"] / ONE - before - grown
    if not rest:
        return None if change == 0 else f"slow start by {grown} and {change:.4f}"
    wanted_gains = list(_gains(step, coupled, own)) if coupled else [1 / (step["cwnd"] + grown)]
    if step["result"] == LEAST and any(before + rest * gain < LEAST for gain in wanted_gains):
        return None  # OLIA takes no more than that
    if any(abs(change - rest * gain) <= abs(rest * gain) * tolerance + 2**-24 for gain in wanted_gains):
        return None
    return f"{change:.8f}, not {rest * wanted_gains[0]:.8f}"


def _after_loss(step: Step, coupled: list[Path], own: Path) -> float:
    w = step["cwnd"]
    less = w / 2
    if step["algorithm"] == BALIA and coupled:
        less = w / 2 * min(max(p.x for p in coupled) / own.x, 1.5)
    return float(max(w - less, LEAST))


def _gains(step: Step, coupled: list[Path], own: Path) -> Iterator[float]:
    """Per packet acknowledged. Several where paths are so alike that rounding decides which is the best."""
    total = sum(p.x for p in coupled)
    link = own.x / own.rtt / total**2
    if step["algorithm"] == LIA:
        alike = max(p.w / p.rtt**2 for p in coupled)
        yield min(alike / total**2, 1 / step["cwnd"])  # RFC 6356, 3
    elif step["algorithm"] == BALIA:
        alpha = max(p.x for p in coupled) / own.x
        yield link * (1 + alpha) / 2 * (4 + alpha) / 5
    else:
        widest = max(p.w for p in coupled)
        best = max(p.unlost / p.rtt**2 for p in coupled)
        for alike in (1.0, 1 - 1e-6, 1 - 1e-3):
            good = [p for p in coupled if p.unlost / p.rtt**2 >= best * alike]
            collected = [p for p in good if p.w < widest]
            alpha = 0.0
            if collected and own.w == widest:
                alpha = -1 / len(coupled) / sum(p.w == widest for p in coupled)
            elif collected and own in collected:
                alpha = 1 / len(coupled) / len(collected)
            yield link + alpha / own.w
