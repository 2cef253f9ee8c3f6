"""From the times of a stream to its figures. Pure.

Sent and arrived are on our clock, received and returned on the server's. What both ends' CLOCK_MONOTONIC give without being
compared is the round-trip time (less the server's own time) and how the one-way times vary, here above the least of the stream.
Absolute one-way times need two synchronised clocks, and are off by up to their errors.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from tandem.experiment.distribution import distribution, share
from tandem.experiment.latency.clocks import Comparison
from tandem.experiment.latency.probing import Stream


def figures(stream: Stream, clocks: Comparison) -> dict[str, Any]:
    """Of one stream."""
    heard = [stream.heard[n] for n in sorted(stream.heard)]
    sent = sum(at is not None for at in stream.sent_ns)
    rtts, ups, downs, stays = dict[int, float](), dict[int, float](), dict[int, float](), list[float]()
    for h in heard:
        a, number = h.answer, h.answer.sequence
        at = stream.sent_ns[number]
        if at is None:
            continue
        stay = a.returned_ns - a.received_ns
        rtts[number] = (h.arrived_ns - at - stay) / 1e6
        ups[number], downs[number] = (a.received_ns - at) / 1e6, (h.arrived_ns - a.returned_ns) / 1e6
        stays.append(stay / 1e6)
    up, down = _lost(stream)
    return {
        "sent": sent,
        "not_sent": len(stream.sent_ns) - sent,
        "received": len(rtts),
        "lost_share": share(sent - len(rtts), sent),
        "lost_up": up,
        "lost_down": down,
        "duplicates": stream.duplicates,
        "reordered": sum(later.arrived_ns < earlier.arrived_ns for earlier, later in pairwise(heard)),
        "rtt_ms": distribution(list(rtts.values())),
        "rtt_jitter_ms": distribution(_steps(rtts)),
        "up_variation_ms": distribution(_above(ups)),
        "down_variation_ms": distribution(_above(downs)),
        "up_jitter_ms": distribution(_steps(ups)),
        "down_jitter_ms": distribution(_steps(downs)),
        "up_ms": _absolute(ups, clocks, 1),
        "down_ms": _absolute(downs, clocks, -1),
        "server_ms": distribution(stays),
        "late_ms_max": round(stream.late_ms_max, 3),
        "error": stream.error,
    }


def _lost(stream: Stream) -> tuple[int | None, int | None]:
    """Lost on the way up and on the way down, of what was sent until the last question that was answered; None without an answer.
    The server's count is of what had come by then, so a question that overtook others counts them as lost up."""
    if not stream.heard:
        return None, None
    last = stream.heard[max(stream.heard)].answer
    asked = sum(at is not None for at in stream.sent_ns[: last.sequence + 1])
    return max(0, asked - last.count), max(0, last.count - len(stream.heard) - stream.duplicates)


def _above(values: dict[int, float]) -> list[float]:
    least = min(values.values(), default=0.0)
    return [v - least for v in values.values()]


def _steps(values: dict[int, float]) -> list[float]:
    """Between neighbours that both came: how much they differ (RFC 3393), without sign."""
    return [abs(values[n + 1] - values[n]) for n in values if n + 1 in values]


def _absolute(values: dict[int, float], clocks: Comparison, sign: int) -> dict[str, Any] | None:
    if not clocks.absolute or clocks.ahead_ns is None:
        return None
    return distribution([v - sign * clocks.ahead_ns / 1e6 for v in values.values()])
