"""The receiver's thread against a gpsd of ours on the loopback, and a gpsd of the collector's own as a child."""

import os
import signal
import socket
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from support.fake_gpsd import FakeGpsd, iso
from support.waiting import until
from tandem.position import receiver
from tandem.position.receiver import Gpsd, GpsdMissingError, Observer, Receiver, RunningGpsd, State
from tandem.position.zones import Privacy, Zones
from tandem.schema.record import Record


@pytest.fixture
def server() -> Iterator[FakeGpsd]:
    made = FakeGpsd()
    yield made
    made.close()


class Kept:
    """A receiver and what it gave."""

    def __init__(self, source: RunningGpsd, lost_after_s: float = 3600.0) -> None:
        self.records: list[Record] = []
        self.state = State("no_gpsd")
        offset = time.time_ns() - time.monotonic_ns()
        observer = Observer(Privacy("full", 0.01, Zones([], b"", Random(1))), lambda ns: ns + offset, lost_after_s)
        self.receiver = Receiver(source, observer, self.records.extend, self._is)
        self.receiver.start()

    def _is(self, state: State) -> None:
        self.state = state

    def of(self, measurement: str) -> list[Record]:
        return [r for r in self.records if r.measurement == measurement]


def test_fixes_become_records(server):
    begun_ns = time.monotonic_ns()
    kept = Kept(RunningGpsd("127.0.0.1", server.port))
    server.say(b'{"class":"SKY","device":"d","hdop":1.1,"nSat":9,"uSat":7}\r\n{"class":"TP')
    server.fix(eph=7.5)  # cut by what came before: one broken line
    server.fix(eph=7.5)
    until(lambda: len(kept.of("position")) == 1)
    (row,) = kept.of("position")
    assert row.fields["horizontal_error_m"] == 7.5
    assert row.fields["fix_age_ms"] >= 100
    assert begun_ns < row.monotonic_ns + int(row.fields["fix_age_ms"] * 1e6) <= time.monotonic_ns()
    until(lambda: kept.state.state == "fix")
    assert kept.receiver.broken == 1
    assert server.requests == [b'?WATCH={"enable":true,"json":true};\n']
    kept.receiver.stop()
    kept.receiver.stop()


def test_nobody_there_is_told_once(monkeypatch, caplog):
    monkeypatch.setattr(receiver, "FIRST_BACK_OFF_S", 0.01)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    tries: list[float] = []
    connect = socket.create_connection

    def counting(*args: Any) -> socket.socket:
        tries.append(time.monotonic())
        return connect(*args)

    monkeypatch.setattr(socket, "create_connection", counting)
    kept = Kept(RunningGpsd("127.0.0.1", port))
    until(lambda: len(tries) >= 3)
    kept.receiver.stop()
    assert len([r for r in caplog.records if r.levelname == "WARNING"]) == 1
    assert kept.state.state == "no_gpsd"


def test_a_receiver_of_records_that_fails_ends_nothing(server, caplog):
    kept = Kept(RunningGpsd("127.0.0.1", server.port))
    failing = [True]

    def taking(records: list[Record]) -> None:
        if failing[0]:
            failing[0] = False
            raise RuntimeError("no room")
        kept.records.extend(records)

    monkey = kept.receiver
    monkey._records = taking  # the callback is what is tested
    server.fix()
    until(lambda: not failing[0])
    server.fix(time=iso(time.time_ns() + 10**9))
    until(lambda: bool(kept.records))
    kept.receiver.stop()
    assert "could not be handed over" in caplog.text


FAKE = """#!/bin/sh
echo "$$ $*" >>{log}
exec sleep 1000
"""


@pytest.fixture
def fake_gpsd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program, log = tmp_path / "gpsd", tmp_path / "started"
    program.write_text(FAKE.format(log=log))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("TANDEM_GPSD", str(program))
    log.touch()
    return log


def started(log: Path) -> list[list[str]]:
    return [line.split() for line in log.read_text().splitlines()]


def test_our_own_gpsd_is_started_for_its_device_again_when_it_dies_and_ended(fake_gpsd, tmp_path, monkeypatch):
    monkeypatch.setattr(receiver, "FIRST_BACK_OFF_S", 0.0)
    device = tmp_path / "ttyACM0"
    own = Gpsd(lambda: str(device))
    assert own.look() is None  # not plugged in
    device.touch()
    assert own.look() is None  # started, but not listening yet
    where = own.look()
    assert where is not None
    until(lambda: len(started(fake_gpsd)) == 1)
    assert own.look() == where
    assert started(fake_gpsd)[0][1:] == ["-N", "-n", "-D", "0", "-S", str(where[1]), str(device)]
    first = own.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    until(lambda: own.look() is not None and own.pid != first)
    until(lambda: len(started(fake_gpsd)) == 2)
    device.rename(tmp_path / "other")  # unplugged, and something else under its name
    device.touch()
    second = own.pid
    assert own.look() is None
    assert own.pid not in (None, second)
    until(lambda: len(started(fake_gpsd)) == 3)
    device.unlink()
    assert own.look() is None
    assert own.pid is None
    own.stop()
    for row in started(fake_gpsd):
        assert not Path(f"/proc/{row[0]}").exists()


def test_our_own_gpsd_ends_with_the_thread_that_started_it(fake_gpsd, tmp_path):
    """As after a kill of the collector: nobody calls stop."""
    own = Gpsd(lambda: str(tmp_path))

    def short_life() -> None:
        own.look()
        until(lambda: len(started(fake_gpsd)) == 1)

    thread = threading.Thread(target=short_life)
    thread.start()
    thread.join()
    pid = own.pid
    assert pid is not None
    process = own._process
    assert process is not None
    assert process.wait(60) == -signal.SIGTERM
    own.stop()


def test_a_missing_gpsd_is_one_line(monkeypatch):
    monkeypatch.setenv("TANDEM_GPSD", "no-such-gpsd")
    with pytest.raises(GpsdMissingError, match="no-such-gpsd is missing; hint: install the package gpsd"):
        Gpsd(lambda: None)
