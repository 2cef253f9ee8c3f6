"""The lines that tc is given for one direction: netem for delay and loss, below it tbf for rate and queue. Pure.

    root 1: netem delay, loss  →  1:1 → 10: or 11: tbf rate, byte-limited FIFO

From tc-netem(8) and tc-tbf(8). Both kinds change in place without losing what waits; a queue that an outage drops is thrown away by
putting a new tbf (the other handle) in its place.
"""

from __future__ import annotations

import math

from tandem_bench.link.shaping import Values

MTU = 1514
"""Largest frame of a veth with 1500 bytes of IP, as the queueing disciplines count it."""

CLOSED_BIT_PER_S = 8
"""tbf takes no rate of 0: a byte a second passes no packet for half an hour."""

LIMIT_PACKETS = 100_000
"""Of netem's own line: what is under way. More than 10 Gbit/s can have in 100 ms."""


def bucket_bytes(bit_per_s: float) -> int:
    """tbf's burst: five milliseconds, two frames at least. What a late timer would have to send beyond the bucket is lost to the rate, so
    a small one makes a busy machine's links slow."""
    return max(2 * MTU, math.ceil(bit_per_s / 8 / 200))


def _netem(values: Values) -> str:
    loss = 1.0 if values.outage and values.dropped else values.loss
    share = f" loss {100 * loss:.7g}%" if loss else ""
    return f"netem limit {LIMIT_PACKETS} delay {round(values.delay_us)}us{share}"


def _tbf(values: Values) -> str:
    rate = CLOSED_BIT_PER_S if values.outage else max(CLOSED_BIT_PER_S, round(values.bit_per_s))
    bucket = MTU if values.outage else bucket_bytes(rate)
    return f"tbf rate {rate}bit burst {bucket} limit {max(MTU, round(values.buffer_bytes))}"


class Direction:
    """One device's egress: ``begin`` once, then ``change`` for whatever differs."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._handle = 10
        self._now: Values | None = None
        self._told: tuple[str, str] = ("", "")

    def begin(self, values: Values) -> list[str]:
        """The lines that set it up."""
        self._now, self._told = values, (_netem(values), _tbf(values))
        return [
            f"qdisc replace dev {self._device} root handle 1: {self._told[0]}",
            f"qdisc replace dev {self._device} parent 1:1 handle {self._handle}: {self._told[1]}",
        ]

    def change(self, values: Values) -> list[str]:
        """The lines that make it ``values``; none when nothing differs."""
        before, now = self._now, (_netem(values), _tbf(values))
        lines = [f"qdisc change dev {self._device} root handle 1: {now[0]}"] if now[0] != self._told[0] else []
        dropping = values.outage and values.dropped
        was_dropping = before is not None and before.outage and before.dropped
        if dropping and not was_dropping:
            self._handle = 21 - self._handle
            lines.append(f"qdisc replace dev {self._device} parent 1:1 handle {self._handle}: {now[1]}")
        elif now[1] != self._told[1]:
            lines.append(f"qdisc change dev {self._device} parent 1:1 handle {self._handle}: {now[1]}")
        self._now, self._told = values, now
        return lines
