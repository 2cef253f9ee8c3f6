"""A download by itself: who closes as soon as he has what he asked for has not gone away, and how often the sender is looked at."""

import contextlib
import itertools
import select
import socket
import time
from types import SimpleNamespace

import pytest

from tandem_server.endpoint.download import Download
from tandem_server.endpoint.request import Ask
from tandem_server.endpoint.sampler import Sampler


@pytest.fixture
def pair():
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as client:
        serving, _ = listener.accept()
        with serving:
            yield serving, client


def close_and_wait(serving, client, wanted):
    """The client reads so much and closes; returns when this end has seen it."""
    while wanted > 0:
        wanted -= len(client.recv(wanted))
    client.close()
    seen = select.poll()
    seen.register(serving, select.POLLRDHUP)
    assert seen.poll(60_000)


class Budget:
    """Without end; ``after`` is called when something was sent."""

    def __init__(self, after):
        self.after = after

    def take(self, wanted_bytes):
        return wanted_bytes

    def give_back(self, unused_bytes):
        del unused_bytes
        self.after()


def download(serving, ask, after, on_sample=lambda _: None):
    return Download(serving, Sampler(serving), ask, Budget(after), on_sample, lambda: False, 30.0)


def test_the_sender_is_looked_at_ten_times_a_second(pair, monkeypatch):
    """By a clock that goes on by 10 ms with every look at it."""
    serving, client = pair
    now_s, samples = itertools.count(1000, 0.01), []
    monkeypatch.setattr(
        "tandem_server.endpoint.download.time", SimpleNamespace(monotonic=lambda: next(now_s), sleep=time.sleep)
    )
    client.setblocking(False)

    def read():
        with contextlib.suppress(BlockingIOError):
            while client.recv(1 << 20):
                pass

    one = download(serving, Ask(None, 2.05), read, samples.append)
    assert one.run(b"abc") == "complete"
    # Until the client's kernel has acknowledged all it goes on looking: how long that takes is the machine's.
    looked_s = next(now_s) - 1000
    assert looked_s > 2.05
    assert 10 * looked_s - 3 <= len(samples) <= 10 * looked_s + 3


def test_all_was_sent_and_the_client_has_closed_before_we_look_again(pair):
    serving, client = pair
    one = download(serving, Ask(1000, None), lambda: close_and_wait(serving, client, 1003))
    assert one.run(b"abc") == "complete"
    assert one.acked_at_s is not None


def test_who_closes_before_has_gone(pair):
    serving, client = pair
    one = download(serving, Ask(5000, None), lambda: close_and_wait(serving, client, 3))
    one._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    assert one.run(b"abc" + bytes(10_000_000)) == "client gone"


def test_a_look_that_comes_late_sees_first_that_the_client_has_closed(pair, monkeypatch):
    """What was queued has no reader any more once a timed download's client has closed: not a missing acknowledgement."""
    serving, client = pair
    monkeypatch.setattr("tandem_server.endpoint.download._DRAIN_S", 0.2)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    one = download(serving, Ask(None, 0.1), lambda: None)
    asleep = time.sleep

    def late(_seconds):
        client.close()
        asleep(0.5)

    monkeypatch.setattr("tandem_server.endpoint.download.time.sleep", late)
    assert one.run(b"abc") == "complete"
