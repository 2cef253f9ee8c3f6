"""When a datagram came, on CLOCK_MONOTONIC, whatever happens to the one who reads it and to the day's clock."""

import socket
import struct
import time
from contextlib import contextmanager

import pytest

from tandem.stream import arrival

MS = 10**6


def told(came_ns):
    return [(socket.SOL_SOCKET, arrival.SO_TIMESTAMPNS, struct.pack("@ll", *divmod(came_ns, 10**9)))]


@contextmanager
def clocks(monkeypatch, pauses, day_ahead_ns=10**18):
    """A machine whose clocks stand, but for these pauses (ns), one before each reading."""
    rest, now = iter(pauses), [50 * 10**9]

    def monotonic():
        now[0] += next(rest, 0)
        return now[0]

    monkeypatch.setattr(arrival.time, "monotonic_ns", monotonic)
    monkeypatch.setattr(arrival.time, "time_ns", lambda: monotonic() + day_ahead_ns)
    yield now


@pytest.mark.parametrize(
    "pauses", [(), (0, 5 * MS), (0, 0, 5 * MS), (0, 5 * MS, 7 * MS), (0, 5 * MS, 0, 3 * MS, 0, 0, 0)]
)
def test_a_pause_between_readings_is_no_age(monkeypatch, pauses):
    with clocks(monkeypatch, pauses) as now:
        came = now[0] - 30 * MS
        assert arrival.arrival_ns(told(came + 10**18)) == came


@pytest.mark.parametrize("set_by_s", [-3600, -2, 2, 3600])
def test_a_stamp_of_before_the_clock_was_set_is_not_taken(monkeypatch, set_by_s):
    with clocks(monkeypatch, ()) as now:
        assert arrival.arrival_ns(told(now[0] + 10**18 + set_by_s * 10**9)) == now[0]


@pytest.mark.parametrize(
    "ancillary", [[], [(socket.SOL_SOCKET, arrival.SO_TIMESTAMPNS, b"short")], [(0, 8, bytes(16))]]
)
def test_without_a_stamp_it_is_now(monkeypatch, ancillary):
    with clocks(monkeypatch, ()) as now:
        assert arrival.arrival_ns(ancillary) == now[0]


def test_the_kernels_own_stamp_is_of_when_it_came_not_read():
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other,
    ):
        one.bind(("127.0.0.1", 0))
        arrival.stamp(one)
        deadline = time.monotonic() + 60
        while True:
            before = time.monotonic_ns()
            other.sendto(b"x", one.getsockname())
            time.sleep(0.05)  # it lies there unread
            reading = time.monotonic_ns()
            _, ancillary, _, _ = one.recvmsg(16, 256)
            came = arrival.arrival_ns(ancillary)
            if before - MS < came < reading:
                break
            # Where nobody else has stamps, the kernel begins a while after it was asked, and until then stamps what is read.
            assert time.monotonic() < deadline, (before, came, reading)
