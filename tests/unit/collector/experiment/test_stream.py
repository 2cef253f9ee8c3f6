"""When a datagram came, on CLOCK_MONOTONIC, whatever happens to the one who reads it and to the day's clock."""

import socket
import struct
import threading
import time
from contextlib import contextmanager
from typing import Any

import pytest

from tandem import stream
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


@pytest.fixture
def ends():
    """Two ends of a connection; the other one closes after 60 s, so that a read that does not wake ends the test and not the suite."""
    here, there = socket.socketpair()
    late = threading.Timer(60.0, there.shutdown, (socket.SHUT_RDWR,))
    late.start()
    yield here, there
    late.cancel()
    late.join()
    here.close()
    there.close()


def test_a_read_wakes_and_a_write_where_it_is_asked_for(ends):
    here, there = ends
    stream.wake(here, 0.05)
    with pytest.raises(BlockingIOError):
        here.recv(10)
    there.sendall(b"late")
    assert here.recv(10) == b"late"
    here, _ = ends
    stream.wake(here, 0.05, sending=True)
    with pytest.raises(BlockingIOError):
        here.sendall(bytes(1 << 24))  # more than both ends hold


@pytest.mark.parametrize(("after_s", "told"), [(0.25, (0, 250_000)), (1.5, (1, 500_000)), (1e-6, (0, 1))])
def test_the_kernel_has_it_as_longs_of_this_program(after_s, told):
    given: list[tuple[Any, ...]] = []

    class Recording(socket.socket):
        def setsockopt(self, *arguments: Any) -> None:
            given.append(arguments)

    with Recording() as recording:
        stream.wake(recording, after_s, sending=True)
    assert [option for _, option, _ in given] == [20, 21]  # asm-generic/socket.h; the same on x86 and ARM
    assert {struct.unpack("@ll", value) for _, _, value in given} == {told}
