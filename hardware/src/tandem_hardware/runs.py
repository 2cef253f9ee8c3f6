"""How long one run takes and what it moves: a small sum of assumed rates, for a power budget. What a campaign costs is told by
``tandem campaign check``, which knows more experiments and looks closer. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tandem.schema.campaign import Campaign, Draw, Step
from tandem.schema.campaign_sequence import Arm

RATE_BIT_PER_S = 10e6
"""Of a path that the campaign says nothing about."""
RTT_S = 0.06
FIRST_FLIGHT = 14_600
"""Bytes that a sender may have under way at first; doubled each round trip."""


@dataclass(frozen=True, slots=True)
class Took:
    """``bytes``: over each path, in the order of the campaign's roles, both directions."""

    seconds: float
    bytes: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class _Link:
    roles: tuple[str, ...]
    rates: tuple[float, ...]
    rtt_s: float

    @property
    def total(self) -> float:
        return sum(self.rates)

    def shared(self, size: float) -> tuple[float, ...]:
        """``size`` over all paths, as their rates are."""
        return tuple(size * rate / self.total for rate in self.rates)

    def transfer_s(self, size: float, rate: float) -> float:
        """Connecting, the sender's beginning, and what the rate takes."""
        return self.rtt_s * (2 + math.log2(1 + size / FIRST_FLIGHT)) + size * 8 / rate


_Values = Mapping[str, Any]


def run_of(campaign: Campaign, step: Step, arm: Arm) -> Took:
    """A run of one arm; a drawn value counts with its mean."""
    p = {name: _mean(value) if isinstance(value, Draw) else value for name, value in arm.parameters.items()}
    way = "up" if p.get("mode") == "oneway" else "down"
    made = [arm.shape.get(role, {}) for role in campaign.roles]
    rates = tuple(
        min(shape.get("rate_bit_per_s", math.inf), shape.get(f"{way}_bit_per_s", math.inf), assumed)
        for role, shape in zip(campaign.roles, made, strict=True)
        for assumed in (campaign.assumed_bit_per_s.get(role, RATE_BIT_PER_S),)
    )
    late_ms = max((sum(s.get(k, 0.0) for k in ("rtt_ms", "down_delay_ms", "up_delay_ms")) for s in made), default=0.0)
    return _KINDS.get(step.experiment, _other)(p, _Link(campaign.roles, rates, RTT_S + late_ms / 1000))


def _mean(law: Draw) -> float:
    return _log_mean(law.low, law.high) if law.law == "log_uniform" else (law.low + law.high) / 2


def _log_mean(low: float, high: float) -> float:
    return (high - low) / math.log(high / low) if low < high else low


def _download(p: _Values, link: _Link) -> Took:
    """By one path, by all, or each by itself and then all."""
    kind, together = p.get("kind"), p.get("pairing") == "simultaneous"
    pause_s, path = _plain(p, "pause_s", 2.0), p.get("path")
    used = [kind != "tcp" or path is None or path in (role, "random") for role in link.roles]
    if p.get("seconds") is not None:
        seconds = _plain(p, "seconds", 0.0)
        full = tuple(rate * seconds / 8 * on for rate, on in zip(link.rates, used, strict=True))
        if kind is not None or together:
            return Took(seconds, full)
        return Took((len(link.rates) + 1) * (seconds + pause_s), tuple(2 * one for one in full))
    size = _plain(p, "bytes", 0.0)
    if kind == "mptcp":
        return Took(link.transfer_s(size, link.total), link.shared(size))
    if kind == "tcp":
        slowest = min((rate for rate, on in zip(link.rates, used, strict=True) if on), default=RATE_BIT_PER_S)
        return Took(link.transfer_s(size, slowest), tuple(size * on for on in used))
    each = _each_then_all(size, link)
    if together:
        seconds = max(link.transfer_s(one, rate) for one, rate in zip(each.bytes, link.rates, strict=True))
        return Took(seconds, each.bytes)
    return Took(each.seconds + pause_s * len(link.rates), each.bytes)


def _each_then_all(size: float, link: _Link) -> Took:
    seconds = sum(link.transfer_s(size, rate) for rate in link.rates) + link.transfer_s(size, link.total)
    return Took(seconds, tuple(size + one for one in link.shared(size)))


def _bandwidth(p: _Values, link: _Link) -> Took:
    seconds, rounds = _plain(p, "seconds", 60.0), _plain(p, "repetitions", 1.0)
    apart = max((len(link.rates) + 2) * (seconds + 3 * link.rtt_s), _plain(p, "interval_s", 0.0))
    return Took(rounds * apart, tuple(rounds * 3 * rate * seconds / 8 for rate in link.rates))


def _delay(p: _Values, link: _Link) -> Took:
    size, rounds = _log_mean(_plain(p, "min_bytes", 1e3), _plain(p, "max_bytes", 1e7)), _plain(p, "repetitions", 1.0)
    one = _each_then_all(size, link)
    return Took(rounds * one.seconds, tuple(rounds * moved for moved in one.bytes))


def _dash(p: _Values, link: _Link) -> Took:
    """What is played, and ten round trips before it."""
    seconds = _plain(p, "seconds", 600.0)
    return Took(seconds + 10 * link.rtt_s, link.shared(min(link.total, 15e6) * seconds / 8))


def _pageload(p: _Values, link: _Link) -> Took:
    """A page: 2 MB, twenty round trips and 3 s of a browser."""
    told = str(p.get("pages") or "one")
    pages = _plain(p, "first", 1000.0) if told == "all" else told.count(",") + 1.0
    loads = pages * _plain(p, "repetitions", 1.0) * (2 if p.get("browser") == "both" else 1)
    each_s = 3 + 20 * link.rtt_s + _plain(p, "pause_s", 0.0)
    return Took(loads * (each_s + 16e6 / link.total), link.shared(loads * 2e6))


def _reachability(p: _Values, link: _Link) -> Took:
    """A name: a question of 250 bytes and pings of 240 over each path."""
    names, pings, ways = _plain(p, "first", 1e4), _plain(p, "pings", 10.0), len(link.rates)
    return Took(
        names * ways * pings / _plain(p, "ping_hz", 50.0), tuple(names * (250 + ways * pings * 240) for _ in link.rates)
    )


def _other(p: _Values, link: _Link) -> Took:
    seconds = next((_plain(p, name, 60.0) for name in ("seconds", "duration_s", "deadline_s") if name in p), 60.0)
    return Took(seconds, (_plain(p, "bytes", 1e5),) * len(link.rates))


_KINDS: Mapping[str, Callable[[_Values, _Link], Took]] = {
    "download": _download,
    "bandwidth": _bandwidth,
    "delay": _delay,
    "dash": _dash,
    "pageload": _pageload,
    "reachability": _reachability,
}


def _plain(p: _Values, name: str, default: float) -> float:
    value = p.get(name)
    return float(value) if isinstance(value, int | float) else default
