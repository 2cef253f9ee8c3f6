"""The DevTools client against a scripted other end."""

import contextlib
import json
import os
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.devtools import DevTools, DevToolsError, RefusedError, TooLateError


class Peer:
    """Both pipes; ``client`` is ours, ``say`` and ``heard`` the browser's end."""

    def __init__(self, **more):
        self.their_read, ours_write = os.pipe()
        ours_read, self.their_write = os.pipe()
        self._ends = [self.their_read, ours_write, ours_read, self.their_write]
        self.client = DevTools(ours_read, ours_write, **more)

    def say(self, *messages):
        raw = b"".join(json.dumps(m).encode() + b"\0" if isinstance(m, dict) else m for m in messages)
        threading.Thread(target=self._write, args=(raw,), daemon=True).start()

    def _write(self, raw):
        with contextlib.suppress(OSError):  # the client may have had enough
            while raw:
                raw = raw[os.write(self.their_write, raw) :]

    def heard(self):
        return [json.loads(raw) for raw in os.read(self.their_read, 1 << 20).split(b"\0") if raw]

    def end(self):
        os.close(self.their_write)
        self._ends.remove(self.their_write)

    def close(self):
        for end in self._ends:
            os.close(end)


@pytest.fixture
def peer():
    made = Peer()
    yield made
    made.close()


def soon():
    return time.monotonic() + 60


def test_a_command_is_answered_and_events_in_between_are_kept(peer):
    peer.say(
        {"method": "Page.loadEventFired", "params": {"timestamp": 1.5}, "sessionId": "S"},
        {"id": 7, "result": {"of": "nobody"}},
        {"id": 1, "result": {"product": "C"}},
        {"method": "Other"},
    )
    assert peer.client.call("Browser.getVersion", {"a": 1}, "S", until_s=soon()) == {"product": "C"}
    assert peer.heard() == [{"id": 1, "method": "Browser.getVersion", "params": {"a": 1}, "sessionId": "S"}]
    first, second = peer.client.event(soon()), peer.client.event(soon())
    assert (first.method, first.params, first.session) == ("Page.loadEventFired", {"timestamp": 1.5}, "S")
    assert (second.method, second.params, second.session) == ("Other", {}, "")
    assert peer.client.event(time.monotonic()) is None


def test_a_refusal_is_an_error_that_the_browser_survives(peer):
    peer.say({"id": 1, "error": {"code": -32000, "message": "No such target"}}, {"id": 2, "result": {}})
    with pytest.raises(RefusedError, match="No such target"):
        peer.client.call("X", until_s=soon())
    assert peer.client.call("Y", until_s=soon()) == {}


def test_an_answer_may_be_taken_later(peer):
    number = peer.client.send("Page.navigate", until_s=soon())
    assert not peer.client.answered(number)
    peer.say({"method": "E"}, {"id": number, "result": {"errorText": "x"}}, {"method": "F"})
    assert peer.client.event(soon()).method == "E"
    assert peer.client.answer(number, until_s=soon()) == {"errorText": "x"}


@pytest.mark.parametrize(
    "raw",
    [
        b"\xff\0",
        b"[]\0",
        b"1\0",
        b"{}\0",
        b'{"method": 1}\0',
        b'{"method": "m", "params": []}\0',
        b"[" * 100_000 + b"\0",
        b"\0",
        b'{"id": 1, "result": []}\0',
    ],
)
def test_what_is_no_message_is_one_error(peer, raw):
    peer.say(raw)
    with pytest.raises(DevToolsError) as caught:
        peer.client.call("X", until_s=soon())
    assert "\n" not in str(caught.value)


def test_waiting_ends_at_an_endless_message_a_full_pipe_and_a_stop():
    with contextlib.closing(Peer(longest=200_000)) as peer:
        peer.say(b"x" * 1_000_000)
        with pytest.raises(DevToolsError, match="more than 200000 bytes"):
            peer.client.call("X", until_s=soon())
    with contextlib.closing(Peer()) as peer, pytest.raises(TooLateError):
        peer.client.send("X", {"a": "b" * 1_000_000}, until_s=time.monotonic() + 0.05)
    with contextlib.closing(Peer(stop=lambda: True)) as peer, pytest.raises(TooLateError, match="stopped"):
        peer.client.call("X", until_s=soon())


def test_a_silent_browser_and_one_that_has_gone_are_told_apart(peer):
    with pytest.raises(TooLateError, match="silent"):
        peer.client.call("X", until_s=time.monotonic() + 0.01)
    peer.end()
    with pytest.raises(DevToolsError, match="gone"):
        peer.client.call("X", until_s=soon())


def ask_until_it_ends(peer):
    while True:
        peer.client.call("X", until_s=soon())


@given(st.lists(st.binary(max_size=40), max_size=6))
def test_any_bytes_are_messages_or_one_error(pieces):
    with contextlib.closing(Peer()) as peer:
        for piece in pieces:
            os.write(peer.their_write, piece + b"\0")
        peer.end()
        with pytest.raises(DevToolsError):
            ask_until_it_ends(peer)
