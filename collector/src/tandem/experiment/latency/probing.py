"""Send questions over one path at an even pace and take the answers' times, which the kernel stamps; and from these times the figures.

Sent and arrived are on our clock, received and returned on the server's. What both ends' CLOCK_MONOTONIC give without being
compared is the round-trip time (less the server's own time) and how the one-way times vary, here above the least of the stream.
Absolute one-way times need two synchronised clocks, and are off by up to their errors.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from tandem.experiment.latency.reflector import Answer, Comparison, question, read_answer
from tandem.experiment.results import distribution, share
from tandem.stream.arrival import arrival_ns, stamp

_LONGEST = 2048


@dataclass(frozen=True, slots=True)
class Heard:
    """One answer and when it came, CLOCK_MONOTONIC ns."""

    answer: Answer
    arrived_ns: int


@dataclass(slots=True)
class Stream:
    """What came of one path's questions. ``sent_ns`` by sequence, None where the machine could not send (the path was down)."""

    sent_ns: list[int | None] = field(default_factory=list)
    heard: dict[int, Heard] = field(default_factory=dict)
    duplicates: int = 0
    foreign: int = 0
    late_ms_max: float = 0.0
    error: str | None = None
    sent_bytes: int = 0
    received_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """``interval_s`` between questions of ``size`` bytes for ``seconds``; then ``linger_s`` for what is under way."""

    interval_s: float
    size: int
    seconds: float
    linger_s: float


def probe(
    interface: str,
    address: tuple[str, int],
    key: bytes,
    session: bytes,
    number: int,
    plan: Plan,
    stopped: Callable[[], bool],
) -> Stream:
    """Ask over ``interface`` as stream ``number``. OSError when there is no such interface or route."""
    found = Stream()
    with socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET, socket.SOCK_DGRAM) as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode() + b"\0")
        stamp(made)
        made.connect(address)
        made.setblocking(False)
        begun = time.monotonic_ns()
        total = max(1, round(plan.seconds / plan.interval_s))
        ends = begun + int((plan.seconds + plan.linger_s) * 1e9)
        while not stopped():
            now = time.monotonic_ns()
            done = len(found.sent_ns) >= total
            if now >= ends or (done and len(found.heard) >= total):
                break
            due = ends if done else begun + int(len(found.sent_ns) * plan.interval_s * 1e9)
            if now >= due:
                found.late_ms_max = max(found.late_ms_max, (now - due) / 1e6)
                _ask(made, key, session, number, plan.size, found)
                continue
            if select.select([made], [], [], min(0.2, (due - now) / 1e9))[0]:
                _hear(made, key, session, number, found)
    return found


def _ask(made: socket.socket, key: bytes, session: bytes, number: int, size: int, found: Stream) -> None:
    sent_ns = time.monotonic_ns()
    raw = question(key, session, number, len(found.sent_ns), sent_ns, size)
    try:
        made.send(raw)
    except OSError as error:  # ICMP of an earlier one, or no route just now
        found.error = error.strerror
        found.sent_ns.append(None)
        return
    found.sent_ns.append(sent_ns)
    found.sent_bytes += size


def _hear(made: socket.socket, key: bytes, session: bytes, number: int, found: Stream) -> None:
    try:
        raw, ancillary, _, _ = made.recvmsg(_LONGEST, 256)
    except BlockingIOError:
        return
    except OSError as error:
        found.error = error.strerror  # ICMP: nobody listens there; others may still be answered
        return
    arrived = arrival_ns(ancillary)
    found.received_bytes += len(raw)
    answer = read_answer(key, session, raw)
    if answer is None or answer.stream != number or answer.sequence >= len(found.sent_ns):
        found.foreign += 1
    elif answer.sequence in found.heard:
        found.duplicates += 1
    else:
        found.heard[answer.sequence] = Heard(answer, arrived)


def figures(stream: Stream, comparison: Comparison) -> dict[str, Any]:
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
        "up_ms": _absolute(ups, comparison, 1),
        "down_ms": _absolute(downs, comparison, -1),
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
    sent = sum(at is not None for at in stream.sent_ns[: last.sequence + 1])
    return max(0, sent - last.count), max(0, last.count - len(stream.heard) - stream.duplicates)


def _above(values: dict[int, float]) -> list[float]:
    least = min(values.values(), default=0.0)
    return [v - least for v in values.values()]


def _steps(values: dict[int, float]) -> list[float]:
    """Between neighbours that both came: how much they differ (RFC 3393), without sign."""
    return [abs(values[n + 1] - values[n]) for n in values if n + 1 in values]


def _absolute(values: dict[int, float], comparison: Comparison, sign: int) -> dict[str, Any] | None:
    if not comparison.absolute or comparison.ahead_ns is None:
        return None
    return distribution([v - sign * comparison.ahead_ns / 1e6 for v in values.values()])
