"""A read over which nothing comes ends when it was told to: else a transfer that stalls would never be given up."""

import socket
import struct
import threading
from typing import Any

import pytest

from tandem import stream


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


def test_a_read_wakes_and_what_comes_later_is_read(ends):
    here, there = ends
    stream.wake(here, 0.05)
    with pytest.raises(BlockingIOError):
        here.recv(10)
    there.sendall(b"late")
    assert here.recv(10) == b"late"


def test_a_write_wakes_when_it_is_asked_for(ends):
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
