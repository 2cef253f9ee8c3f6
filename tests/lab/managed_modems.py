"""A bus, the real ModemManager on it, and simulated modems that it reaches by its test interface: no root, no USB, no service."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from jeepney import DBusAddress, new_method_call
from jeepney.io.blocking import open_dbus_connection

from support.modem_on_fake_clock import UNHEARD, write_timeline
from support.running_kit import play_fault
from tandem.modem.mm_bus import Bus
from tandem.modem.mm_poller import ManagedPoller
from tandem.modem.poll import Poll

CONFIG = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>unix:path={socket}</listen><policy context="default">
<allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>
"""
TICK_S = 0.1


def program() -> Path:
    """The ModemManager to use; the test is skipped where there is none."""
    named = os.environ.get("TANDEM_MODEMMANAGER") or str(
        Path(__file__).parents[2] / "build/modemmanager/usr/sbin/ModemManager"
    )
    found = named if os.access(named, os.X_OK) else shutil.which("ModemManager")
    if found is None or shutil.which("dbus-daemon") is None:
        pytest.skip("no ModemManager or no dbus-daemon: ./kit test takes them from the distribution's packages")
    return Path(found)


@dataclass
class Polled:
    """The polls of one poller. A condition on them can be awaited."""

    made: list[Poll] = field(default_factory=list)
    states: list[tuple[str, str]] = field(default_factory=list)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def add(self, poll: Poll) -> None:
        with self._changed:
            self.made.append(poll)
            self._changed.notify_all()

    def state(self, state: str, detail: str) -> None:
        with self._changed:
            self.states.append((state, detail))
            self._changed.notify_all()

    def wait(self, condition: Callable[[], bool], seconds: float = 60.0) -> None:
        """Until ``condition`` holds; looked at after each poll and each state."""
        with self._changed:
            assert self._changed.wait_for(condition, seconds), (self.states, self.made[-3:])


class Desk:
    """Bus, ModemManager, modems. What it starts it ends."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder, self._stack = folder, stack
        self.program = program()
        self.address = f"unix:path={folder / 'bus'}"
        self._root = self.program.parents[2]
        self.manager: subprocess.Popen[bytes] | None = None
        self.modems: dict[str, subprocess.Popen[str]] = {}
        self.ports: dict[str, str] = {}
        config = folder / "bus.conf"
        config.write_text(CONFIG.format(socket=folder / "bus"))
        bus = subprocess.Popen(
            ["dbus-daemon", f"--config-file={config}", "--nofork", "--print-address=1"], stdout=subprocess.PIPE
        )
        stack.callback(_end, bus)
        assert bus.stdout is not None
        assert bus.stdout.readline()

    def start_manager(self) -> None:
        """ModemManager, and the modems that it is told of: it forgets them when it ends."""
        libraries = next(iter(sorted(self._root.glob("usr/lib/*/ModemManager"))))
        arguments = ["--test-session", "--test-enable", "--test-no-udev", "--test-no-suspend-resume", "--debug"]
        with (self.folder / "modemmanager.log").open("ab") as log:
            self.manager = subprocess.Popen(
                [str(self.program), *arguments, f"--test-plugin-dir={libraries}"],
                env=os.environ
                | {
                    "DBUS_SESSION_BUS_ADDRESS": self.address,
                    "DBUS_SYSTEM_BUS_ADDRESS": self.address,
                    "LD_LIBRARY_PATH": str(libraries.parent),
                },
                stdout=log,
                stderr=log,
            )
        self._stack.callback(_end, self.manager)
        with open_dbus_connection(self.address) as connection:
            name = "org.freedesktop.ModemManager1"
            bus = DBusAddress("/org/freedesktop/DBus", "org.freedesktop.DBus", "org.freedesktop.DBus")
            until = time.monotonic() + 60
            while not connection.send_and_get_reply(new_method_call(bus, "NameHasOwner", "s", (name,))).body[0]:
                assert time.monotonic() < until
                assert self.manager.poll() is None, self.log()
                time.sleep(0.02)
        for modem, port in self.ports.items():
            self._tell(modem, port)

    def kill_manager(self) -> None:
        assert self.manager is not None
        self.manager.kill()
        self.manager.wait()

    def modem(self, name: str, ticks: list[dict[str, Any]], epoch_ns: int, *faults: dict[str, Any]) -> str:
        """A modem that ModemManager knows by the device that is returned, and its twin on a terminal: ``terminal(name)``."""
        timeline, schedule = self.folder / f"{name}.jsonl", self.folder / f"{name}.faults"
        write_timeline(timeline, ticks, name, usual=UNHEARD)
        schedule.write_text("".join(json.dumps(fault) + "\n" for fault in faults))
        port = f"abstract:{name}{os.getpid()}"
        for kind, where in (("managed", ("--socket", port)), ("at", ("--link", str(self.terminal(name))))):
            process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "tandem_bench", "modem", "--family", "generic"),
                    *("--timeline", str(timeline), "--epoch-ns", str(epoch_ns), "--faults", str(schedule), *where),
                    *("--control", str(self.folder / f"{name}-{kind}.sock")),
                ],
                stdout=subprocess.PIPE,
                text=True,
            )
            self._stack.callback(_end, process)
            self.modems[f"{name}-{kind}"] = process
            assert process.stdout is not None
            assert process.stdout.readline().startswith("ready")
        self.ports[name] = port
        if self.manager is not None:
            self._tell(name, port)
        return f"/virtual/{name}"

    def terminal(self, name: str) -> Path:
        """The port of the twin that the AT back-end polls."""
        return self.folder / f"{name}.tty"

    def wish(self, modem: str, wish: dict[str, Any]) -> None:
        play_fault(self.folder / f"{modem}.sock", wish)

    def _tell(self, name: str, port: str) -> None:
        test = DBusAddress(
            "/org/freedesktop/ModemManager1", "org.freedesktop.ModemManager1", "org.freedesktop.ModemManager1.Test"
        )
        with open_dbus_connection(self.address) as connection:
            message = new_method_call(test, "SetProfile", "ssas", (name, "generic", [port]))
            assert connection.send_and_get_reply(message, timeout=60).body == ()

    def poller(self, name: str, period_s: float, into: Polled, **more: Any) -> ManagedPoller:
        """The D-Bus back-end at one modem, by its device."""
        poller = ManagedPoller(
            name, name, name, period_s, into.add, on_state=into.state, open_bus=lambda fd: Bus(fd, self.address), **more
        )
        self._stack.callback(poller.stop)
        poller.start()
        return poller

    def log(self) -> str:
        return (self.folder / "modemmanager.log").read_text(errors="replace")


def _end(process: subprocess.Popen[Any]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    if process.stdout is not None:
        process.stdout.close()


@contextmanager
def desk(folder: Path) -> Iterator[Desk]:
    """Everything ends with it."""
    with ExitStack() as stack:
        yield Desk(folder, stack)
