"""What a terminal can show is found out, and no more is sent to it."""

import codecs
import fcntl
import io
import json
import os
import pty
import re
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from test_watch_view import STATUS

from tandem.app.daemon.status_socket import encode, listen
from tandem.cli.view.screen import screen
from tandem.cli.view.terminal import Glyphs, Shown, Terminal, charset, own_environment, terminal


def test_the_locale_says_which_characters_there_are():
    for environment, expected in (
        ({}, "ascii"),
        ({"LANG": "C"}, "ascii"),
        ({"LANG": "en_GB.UTF-8"}, "utf-8"),
        ({"LANG": "C.UTF-8", "LC_ALL": "POSIX"}, "ascii"),
        ({"LANG": "en_GB.UTF-8", "LC_ALL": "", "LC_CTYPE": "de_DE.ISO-8859-1"}, "iso8859-1"),
        ({"LANG": "de_DE.ISO-8859-15@euro"}, "iso8859-15"),
        ({"LANG": "xx.nobody-has-this"}, "ascii"),
    ):
        assert charset(environment) == expected


@pytest.mark.parametrize(
    ("term", "more", "expected"),
    [
        ("xterm-256color", {}, Terminal(True, True, "ascii")),
        ("vt100", {}, Terminal(True, False, "ascii")),
        ("dumb", {}, Terminal(False, True, "ascii")),
        ("of-the-year-2040", {"LANG": "C.UTF-8"}, Terminal(True, True, "utf-8")),
        ("xterm-256color", {"NO_COLOR": "1"}, Terminal(True, False, "ascii")),
    ],
)
def test_terminfo_says_what_can_be_drawn(term, more, expected):
    # curses asks terminfo once in the life of a process
    asked = f"import sys; from tandem.cli.view.terminal import terminal; print(terminal(sys.stdin, {{'TERM': {term!r}, **{more}}}))"
    leader, follower = pty.openpty()
    try:
        told = subprocess.run([sys.executable, "-c", asked], stdin=follower, capture_output=True, text=True, check=True)
    finally:
        os.close(leader)
        os.close(follower)
    assert told.stdout.strip() == repr(expected)


def test_what_is_no_terminal_takes_no_screen_and_the_environment_is_that_of_the_start(monkeypatch):
    assert not terminal(io.StringIO(), {"TERM": "xterm"}).screen
    monkeypatch.setenv("LC_CTYPE", "of-python's-own")
    assert own_environment().get("LC_CTYPE") != "of-python's-own"
    assert own_environment()["PATH"]


@given(st.text())
def test_no_text_commands_a_terminal_or_is_more_than_ascii_where_that_is_all(text):
    shown = Glyphs("ascii").text(text)
    assert shown.isascii()
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", shown)
    utf8 = Glyphs("utf-8").text(text)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", utf8)


@given(st.text(st.characters(categories=["L", "N", "P", "S"])))
def test_what_stands_in_is_as_wide(text):
    assert [cell_len(Glyphs("ascii").text(c)) for c in text] == [cell_len(c) for c in text]


@pytest.mark.parametrize("name", ["ascii", "iso8859-1", "cp437"])
def test_the_whole_screen_fits_another_charset(name):
    status = {**STATUS, "probe": "Köln\x1b[2J", "trouble": "the disk \N{SNOWMAN}"}
    console = Console(file=io.StringIO(), width=80, height=24, force_terminal=True, color_system=None)
    with console.capture() as captured:
        console.print(Shown(screen(status, 80, 24), Glyphs(name)), height=24)
    shown = captured.get()
    shown.encode(name)
    assert "\x1b[2J" not in shown
    assert ("Köln" in shown) == (name != "ascii")
    assert "-91 dBm!" in shown
    assert all(len(line) <= 80 for line in shown.splitlines())


class Collector:
    """Serves statuses on a socket, as a collector does."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._listening = listen(path)
        self._listening.setblocking(True)
        self.connection: socket.socket | None = None
        self.joined = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        self.connection, _ = self._listening.accept()
        assert json.loads(self.connection.recv(4096)) == {"op": "watch"}
        self.tell(STATUS)
        self.joined.set()

    def tell(self, status: dict[str, Any]) -> None:
        self.connection.sendall(encode(status))

    def end(self) -> None:
        self.connection.close()
        self._listening.close()


class Watcher:
    """``tandem watch`` on a pseudo-terminal."""

    def __init__(self, path: Path, rows: int, columns: int, *options: str, **environment: str) -> None:
        self.leader, follower = pty.openpty()
        self.resize(rows, columns)
        own = re.compile("LC_.*|LANG|NO_COLOR|COLUMNS|LINES")
        kept = {name: value for name, value in os.environ.items() if not own.fullmatch(name)}
        self.program = subprocess.Popen(
            [sys.executable, "-m", "tandem", "watch", "--socket", str(path), *options],
            stdin=follower,
            stdout=follower,
            stderr=subprocess.PIPE,
            env={**kept, **environment},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # so that a change of size is told
        )
        os.close(follower)
        self.shown = ""
        # "replace": a signal can end a write within a character, as on any terminal
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.leader, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def until(self, words: str, seconds: float = 60.0) -> str:
        """What was written since the last call, once ``words`` are among it."""
        os.set_blocking(self.leader, False)
        deadline = time.monotonic() + seconds
        while words not in plain(self.shown):
            assert time.monotonic() < deadline, (words, plain(self.shown)[-3000:])
            try:
                self.shown += self._decoder.decode(os.read(self.leader, 65536))
            except BlockingIOError:
                time.sleep(0.02)
            except OSError:  # EIO: the program has closed its side
                assert words in plain(self.shown), (words, plain(self.shown)[-3000:])
        shown, self.shown = self.shown, ""
        return shown


def plain(shown: str) -> str:
    """Without what moves the cursor and colours."""
    return re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", shown)


@pytest.fixture
def collector(tmp_path):
    made = Collector(tmp_path / "status.sock")
    yield made
    made.end()


def ended(watcher: Watcher) -> tuple[int, str]:
    _, errors = watcher.program.communicate(timeout=60)
    os.close(watcher.leader)
    return watcher.program.returncode, errors.decode()


def test_it_draws_follows_a_new_size_at_once_and_leaves_the_terminal_as_it_was(collector):
    watcher = Watcher(collector.path, 24, 80, TERM="xterm-256color", LANG="C.UTF-8")
    first = watcher.until("pcap 34.0 MB")
    assert "\x1b[?1049h" in first
    assert "╭─ a Alpha · EC25" in plain(first)
    assert "\x1b[31m" in first
    watcher.resize(40, 120)
    wide = watcher.until("captures 34.0 MB")  # is written from 100 columns on; no status came since
    assert "fell back" in plain(wide)
    collector.tell({**STATUS, "trouble": "the disk is full"})
    watcher.until("! the disk is full")
    collector.end()
    last = watcher.until("\x1b[?1049l")
    assert "\x1b[?25h" in last
    assert ended(watcher) == (0, "tandem: the collector ended\n")


def test_a_collector_that_falls_silent_is_told_of(collector):
    watcher = Watcher(collector.path, 24, 80, TERM="xterm-256color", LANG="C.UTF-8")
    watcher.until("NO WORD FOR")
    collector.tell(STATUS)
    frames = map(plain, watcher.until("up 1:02:03").split("\x1b[H"))
    assert "NO WORD" not in next(frame for frame in frames if "up 1:02:03" in frame)
    watcher.program.send_signal(signal.SIGTERM)
    watcher.until("\x1b[?1049l")
    assert ended(watcher)[0] == 0


def test_a_monochrome_terminal_in_a_plain_locale_gets_ascii_and_no_colour(collector):
    watcher = Watcher(collector.path, 24, 80, TERM="vt100", LANG="C")
    shown = watcher.until("pcap 34.0 MB")
    assert shown.isascii()
    assert not re.search(r"\x1b\[(\d+;)*(3[0-9]|9[0-7])m", shown)
    assert "+- a Alpha . EC25 -" in plain(shown)
    assert "no answer!!" in plain(shown)
    assert "RSRP -91 dBm!" in plain(shown)
    collector.end()
    ended(watcher)


@pytest.mark.parametrize(("options", "environment"), [((), {"TERM": "dumb"}), (("--plain",), {"TERM": "xterm"})])
def test_plain_lines_where_no_screen_is_wanted_or_possible(collector, options, environment):
    watcher = Watcher(collector.path, 24, 80, *options, **environment)
    shown = watcher.until("waiting")
    assert "\x1b" not in shown
    assert shown.isascii()
    assert "b/Beta handover eNB 1234/2 > 1240/1" in shown
    collector.end()
    assert ended(watcher) == (0, "")


def test_json_is_a_status_a_line(collector):
    watching = subprocess.Popen(
        [sys.executable, "-m", "tandem", "watch", "--socket", str(collector.path), "--json"], stdout=subprocess.PIPE
    )
    assert collector.joined.wait(60)
    collector.tell({**STATUS, "uptime_s": 1.0})
    assert json.loads(watching.stdout.readline()) == STATUS
    assert json.loads(watching.stdout.readline())["uptime_s"] == 1.0
    collector.end()
    assert watching.wait(60) == 0
    watching.stdout.close()
