"""A modem for the poller's tests: a pseudo-terminal behind a link, with answers from a table."""

import contextlib
import os
import select
import threading
import tty
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tandem.modem.poll import Poll

IDENTITY = {"AT+CGMI": "Quectel", "AT+CGMM": "EC25", "AT+CGMR": "EC25EFAR06A06M4G"}
POLL = 'AT+QENG="servingcell";+QCSQ'
LINES = (
    '+QENG: "servingcell","NOCONN","LTE","FDD",244,91,5A2C30B,211,1300,3,5,5,1A2B,-95,-10,-66,12,33',
    '+QCSQ: "LTE",-66,-95,119,-10',
)


def be_patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No deadline passes because the machine is busy."""
    monkeypatch.setattr("tandem.modem.poller.DEADLINE_SHARE", 3000.0)
    monkeypatch.setattr("tandem.modem.session.FIRST_DEADLINE_S", 300.0)
    monkeypatch.setattr("tandem.modem.session.COMMAND_DEADLINE_S", 300.0)


def rsrp(poll: Poll) -> float | None:
    return poll.reading.rsrp_dbm if poll.reading is not None else None


def good(poll: Poll) -> bool:
    return poll.failure is None and rsrp(poll) is not None


@contextlib.contextmanager
def polling(poller: Any) -> Iterator[Any]:
    """While it polls."""
    poller.start()
    try:
        yield poller
    finally:
        poller.stop(60)


class Collected:
    """What a thread makes, polls mostly; a condition on it can be awaited."""

    def __init__(self) -> None:
        self.made: list[Any] = []
        self._changed = threading.Condition()

    def add(self, thing: Any) -> None:
        with self._changed:
            self.made.append(thing)
            self._changed.notify_all()

    def wait(self, condition: Callable[[list[Any]], bool]) -> list[Any]:
        with self._changed:
            assert self._changed.wait_for(lambda: condition(self.made), 120), self.made[-5:]
            return list(self.made)


class ScriptedModem:
    """``lines`` are the poll's; ``error`` answers the poll with an error instead; ``answers``
    are those of other commands, with their final results."""

    def __init__(self, link: Path) -> None:
        self.link = link
        self.heard: list[str] = []
        self.lines: tuple[str, ...] = LINES
        self.error: str | None = None
        self.answers: dict[str, str] = {}
        self.echo = True
        self.hung = threading.Event()
        self._changed = threading.Condition()
        self._stop_read, self._stop_write = os.pipe()
        self.plug()

    def plug(self) -> None:
        """Be there, under a number of its own; the link leads to it."""
        self._master, self._slave = os.openpty()
        tty.setraw(self._slave)
        self.device = os.ttyname(self._slave)
        self.echo = True
        spare = self.link.with_suffix(".new")
        spare.symlink_to(self.device)
        spare.replace(self.link)
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def unplug(self) -> None:
        """Vanish with the link."""
        os.write(self._stop_write, b"x")
        self._thread.join(60)
        os.read(self._stop_read, 1)
        self.link.unlink()
        os.close(self._slave)
        os.close(self._master)

    def close(self) -> None:
        self.unplug()
        os.close(self._stop_read)
        os.close(self._stop_write)

    def say(self, line: str) -> None:
        os.write(self._master, f"\r\n{line}\r\n".encode())

    def wait_heard(self, command: str, times: int = 1) -> None:
        """Until ``command`` was heard so often."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.heard.count(command) >= times, 60), self.heard

    def _serve(self) -> None:
        pending = b""
        while True:
            ready, _, _ = select.select([self._master, self._stop_read], [], [])
            if self._stop_read in ready:
                return
            pending += os.read(self._master, 1024)
            if self.hung.is_set():
                continue
            *commands, pending = pending.split(b"\r")
            for raw in commands:
                self._answer(raw.decode())

    def _answer(self, command: str) -> None:
        with self._changed:
            self.heard.append(command)
            self._changed.notify_all()
        text = f"{command}\r\r\n" if self.echo else "\r\n"
        if command == "ATE0":
            self.echo = False
        if command in self.answers:
            text += f"{self.answers[command]}\r\n"
        elif command in IDENTITY:
            text += f"{IDENTITY[command]}\r\n\r\nOK\r\n"
        elif command == "AT+CMEE?":
            text += "+CMEE: 1\r\n\r\nOK\r\n"
        elif command != POLL:
            text += "OK\r\n"
        elif self.error is not None:
            text += f"{self.error}\r\n"
        else:
            text += "".join(f"{line}\r\n" for line in (*self.lines, "", "OK"))
        os.write(self._master, text.encode())
