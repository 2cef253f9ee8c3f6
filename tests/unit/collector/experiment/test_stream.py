"""When a datagram came, on CLOCK_MONOTONIC, whatever happens to the one who reads it and to the day's clock."""

import socket
import struct
import threading
import time
from contextlib import contextmanager

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


def test_a_pause_between_readings_is_no_age(monkeypatch):
    for pauses in ((), (0, 5 * MS), (0, 0, 5 * MS), (0, 5 * MS, 7 * MS), (0, 5 * MS, 0, 3 * MS, 0, 0, 0)):
        with clocks(monkeypatch, pauses) as now:
            came = now[0] - 30 * MS
            assert arrival.arrival_ns(told(came + 10**18)) == came


def test_without_a_stamp_or_with_one_of_before_the_clock_was_set_it_is_now(monkeypatch):
    with clocks(monkeypatch, ()) as now:
        for set_by_s in (-3600, -2, 2, 3600):
            assert arrival.arrival_ns(told(now[0] + 10**18 + set_by_s * 10**9)) == now[0]
        for ancillary in ([], [(socket.SOL_SOCKET, arrival.SO_TIMESTAMPNS, b"short")], [(0, 8, bytes(16))]):
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


def test_the_kernel_takes_it_as_longs_of_this_program_and_never_as_none_at_all():
    """SO_RCVTIMEO and SO_SNDTIMEO of asm-generic/socket.h, the same on x86 and ARM; 0 would be: for ever."""
    size = struct.calcsize("@ll")
    for after_s in (0.25, 1.5, 1e-6):
        with socket.socket() as waking:
            stream.wake(waking, after_s, sending=True)
            kept = [struct.unpack("@ll", waking.getsockopt(socket.SOL_SOCKET, option, size)) for option in (20, 21)]
        assert [seconds + microseconds / 1e6 for seconds, microseconds in kept] == pytest.approx(
            [after_s] * 2, abs=0.01
        )
        assert (0, 0) not in kept
