"""Send questions over one path at an even pace and take the answers' times; the kernel stamps what comes."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from tandem.experiment.latency import datagram
from tandem.stream.arrival import arrival_ns, stamp

_LONGEST = 2048


@dataclass(frozen=True, slots=True)
class Heard:
    """One answer and when it came, CLOCK_MONOTONIC ns."""

    answer: datagram.Answer
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
    raw = datagram.question(key, session, number, len(found.sent_ns), sent_ns, size)
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
    answer = datagram.read_answer(key, session, raw)
    if answer is None or answer.stream != number or answer.sequence >= len(found.sent_ns):
        found.foreign += 1
    elif answer.sequence in found.heard:
        found.duplicates += 1
    else:
        found.heard[answer.sequence] = Heard(answer, arrived)
