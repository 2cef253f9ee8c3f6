"""A browser's process, and the DevTools client against a scripted other end."""

import contextlib
import json
import os
import stat
import sys
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem import devtools as family
from tandem.devtools import Browser, DevTools, DevToolsError, NoBrowserError, RefusedError, TooLateError, find

SCRIPT = Path(__file__).with_name("scripted_browser.py")


@pytest.fixture
def program(tmp_path):
    """A program that plays one word of the script."""

    def make(word):
        file = tmp_path / f"chromium-{word}"
        file.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{SCRIPT}" {word}\n')
        file.chmod(file.stat().st_mode | stat.S_IXUSR)
        return str(file)

    return make


def soon():
    return time.monotonic() + 120


def left(browser):
    """What still runs of it."""
    return [
        pid for pid in family.members(str(browser._folder)) if Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    ]


def test_it_is_found_by_the_variable_then_by_name_and_never_as_a_snap(tmp_path, monkeypatch):
    for name, text in (("chromium", "#!/bin/sh\nexec /snap/bin/chromium\n"), ("google-chrome", "#!/bin/sh\n")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("TANDEM_CHROMIUM", raising=False)
    assert find() == str(tmp_path / "google-chrome")
    monkeypatch.setenv("TANDEM_CHROMIUM", str(tmp_path / "chromium"))
    assert find() == str(tmp_path / "chromium")
    monkeypatch.setenv("TANDEM_CHROMIUM", "/nowhere")
    assert find() is None


def test_it_comes_up_and_everything_of_it_goes(program):
    with contextlib.closing(Browser(program("family"), [])) as browser:
        assert browser.page(soon()) == "S"
        until_s = soon()
        while len(left(browser)) != 3:  # a process that is between fork and exec is not known by its environment
            assert time.monotonic() < until_s, left(browser)
            time.sleep(0.02)
        assert browser.sandbox is (os.geteuid() != 0)
    assert left(browser) == []
    assert not browser._folder.exists()


def test_one_that_does_not_come_up_says_why(program):
    for word, why, within_s in (
        ("dies", "FATAL: it died", 120),
        ("nonsense", "no JSON", 120),
        ("silent", "silent", 0.2),
    ):
        with contextlib.closing(Browser(program(word), [])) as browser, pytest.raises(NoBrowserError, match=why):
            browser.page(time.monotonic() + within_s)
        assert left(browser) == []


def test_the_profile_of_one_that_was_killed_is_removed_by_the_next_and_others_stay(program, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("tandem.devtools._YOUNG_S", -1.0)
    (tmp_path / "tandem-browser-dead").mkdir()
    (tmp_path / "tandem-browser-dead/lock").touch()
    (tmp_path / "tandem-browser-other").mkdir()  # without a lock it is not ours
    first, second = Browser(program("silent"), []), None
    try:
        second = Browser(program("silent"), [])
        left = {folder.name for folder in tmp_path.glob("tandem-browser-*")}
        assert left == {first._folder.name, second._folder.name, "tandem-browser-other"}
    finally:
        first.close()
        if second is not None:
            second.close()


def test_what_is_no_program_is_one_line(tmp_path):
    before = set(Path("/proc/self/fd").iterdir())
    with pytest.raises(NoBrowserError, match="hint: TANDEM_CHROMIUM names another"):
        Browser(str(tmp_path / "nothing"), [])
    assert len(set(Path("/proc/self/fd").iterdir())) <= len(before)


# --- the DevTools client against a scripted other end


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


def test_what_is_no_message_is_one_error():
    rows = [b"\xff", b"1", b"{}", b'{"method": 1}', b'{"method": "m", "params": []}', b"[" * 100_000, b""]
    for raw in (*rows, b'{"id": 1, "result": []}'):
        with contextlib.closing(Peer()) as peer:
            peer.say(raw + b"\0")
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
