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
class Constants:
    """The numbers in the published equations; a test changes one to see that it matters."""

    lia_cap: float = 1.0  # increase of at most cap / w: RFC 6356, 3
    lia_power: float = 2.0  # of the round-trip time in alpha's numerator
    olia_share: float = 1.0  # alpha is share / (number of paths * size of the set)
    balia_gain: float = 4.0  # (gain + alpha) / 5
    balia_cut: float = 1.5  # w/2 * min(alpha, cut)
    decrease: float = 0.5


PUBLISHED = Constants()


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


def wrong(step: Step, constants: Constants = PUBLISHED, tolerance: float = 0.002) -> str | None:
    """How a recorded step differs from the equations; None when it does not.

    ``tolerance``: relative, of an acknowledgement's whole increase; besides it 2^-24 packets. The fixed point rounds round-trip rates to
    2^-32 packets a microsecond, shares to 2^-30, gains to 2^-40 and BALIA's alpha to 2^-10. A loss must agree to the packet."""
    paths = [Path(p["cwnd"], p["rtt_us"] / 1e6, p["unlost"]) for p in step["paths"]]
    coupled = [p for p in paths if p.w > 0] if step["count"] > 1 else []
    own = paths[step["self"]]
    if step["event"] == LOSS:
        wanted = _after_loss(step, coupled, own, constants)
        return None if abs(step["result"] - wanted) <= 1 else f"threshold {step['result']}, not {wanted:.2f}"
    before = step["cwnd"] + step["credit"] / ONE
    grown = min(step["acked"], max(0, step["ssthresh"] - step["cwnd"]))  # slow start
    rest = step["acked"] - grown
    change = step["result"] + step["credit_after"] / ONE - before - grown
    if not rest:
        return None if change == 0 else f"slow start by {grown} and {change:.4f}"
    wanted_gains = list(_gains(step, coupled, own, constants)) if coupled else [1 / (step["cwnd"] + grown)]
    if step["result"] == LEAST and any(before + rest * gain < LEAST for gain in wanted_gains):
        return None  # OLIA takes no more than that
    if any(abs(change - rest * gain) <= abs(rest * gain) * tolerance + 2**-24 for gain in wanted_gains):
        return None
    return f"{change:.8f}, not {rest * wanted_gains[0]:.8f}"


def _after_loss(step: Step, coupled: list[Path], own: Path, constants: Constants) -> float:
    w = step["cwnd"]
    less = w * constants.decrease
    if step["algorithm"] == BALIA and coupled:
        less = w / 2 * min(max(p.x for p in coupled) / own.x, constants.balia_cut)
    return float(max(w - less, LEAST))


def _gains(step: Step, coupled: list[Path], own: Path, constants: Constants) -> Iterator[float]:
    """Per packet acknowledged. Several where paths are so alike that rounding decides which is the best."""
    total = sum(p.x for p in coupled)
    link = own.x / own.rtt / total**2
    if step["algorithm"] == LIA:
        alike = max(p.w / p.rtt**constants.lia_power for p in coupled)
        yield min(alike / total**2, constants.lia_cap / step["cwnd"])
    elif step["algorithm"] == BALIA:
        alpha = max(p.x for p in coupled) / own.x
        yield link * (1 + alpha) / 2 * (constants.balia_gain + alpha) / 5
    else:
        widest = max(p.w for p in coupled)
        best = max(p.unlost / p.rtt**2 for p in coupled)
        for alike in (1.0, 1 - 1e-6, 1 - 1e-3):
            good = [p for p in coupled if p.unlost / p.rtt**2 >= best * alike]
            collected = [p for p in good if p.w < widest]
            alpha = 0.0
            if collected and own.w == widest:
                alpha = -constants.olia_share / len(coupled) / sum(p.w == widest for p in coupled)
            elif collected and own in collected:
                alpha = constants.olia_share / len(coupled) / len(collected)
            yield link + alpha / own.w
