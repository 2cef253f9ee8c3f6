"""A lab of two network namespaces, probe and server, joined by two links with a rate (a, b). No names are used, so none can collide.

Each namespace lives as long as a process that holds it; closing the lab ends those processes and with them everything inside.
The server's address 203.0.113.10 is reached over either link. Addresses: probe 10.71.1.1 and 10.71.2.1, next hops 10.71.N.2.
"""

from __future__ import annotations

import ctypes
import os
import select
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, TypeVar

import pytest

from support import rated_links
from tandem.mptcp import sysctls
from tandem.mptcp.paths import Path as ProbePath
from tandem.mptcp.paths import Paths
from tandem.mptcp_abi import v094

SERVER = "203.0.113.10"
PATHS = (ProbePath("a", "tmp5-a", "10.71.1.2"), ProbePath("b", "tmp5-b", "10.71.2.2"))
ADDRESS = {"a": "10.71.1.1", "b": "10.71.2.1"}
_CLONE_NEWNET = 0x40000000
REPOSITORY = Path(__file__).resolve().parents[2]
T = TypeVar("T")


def why_not() -> str | None:
    """What this machine lacks for the lab; None when nothing."""
    if os.geteuid() != 0:
        return "root is needed for network namespaces"
    if not Path("/proc/sys/net/mptcp/enabled").exists() and not v094.present():
        return "this kernel has no Multipath TCP"
    return None


def lab_with(*programs: str, lack: str | None = None) -> list[pytest.MarkDecorator]:
    """For ``pytestmark``: skipped where the lab, one of these programs or what ``lack`` names is missing."""
    lack = why_not() or lack or next((f"{name} is not installed" for name in programs if not shutil.which(name)), None)
    return [pytest.mark.lab, pytest.mark.skipif(lack is not None, reason=str(lack))]


class Space:
    def __init__(self) -> None:
        hold = "echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6; ip link set lo up && echo up && exec cat"
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._holder = subprocess.Popen(["unshare", "--mount", "--net", "sh", "-c", hold], **pipes, text=True)
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline() == "up\n"
        self.pid = self._holder.pid
        self.enter = ["nsenter", "-t", str(self.pid), "-n", "-m", "--"]

    def run(self, command: str) -> str:
        """Run a shell command inside; its output. AssertionError with its error when it fails."""
        done = subprocess.run([*self.enter, "sh", "-ec", command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout

    def python(self, code: str, user: int, capabilities: str) -> str:
        """Run Python ``code`` inside as ``user`` with nothing but these capabilities; its output."""
        kept = (
            ["--bounding-set=-all," + capabilities]
            if user == 0
            else [f"--reuid={user}", f"--regid={user}", "--clear-groups"]
        )
        ambient = [] if user == 0 else [f"--ambient-caps=-all,{capabilities}"]
        drop = ["setpriv", *kept, f"--inh-caps=-all,{capabilities}", *ambient]
        path = f"PYTHONPATH={REPOSITORY}/collector/src:{REPOSITORY}/tests"
        command = [*self.enter, *drop, "env", path, sys.executable, "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def link(self, name: str, address: str, other: Space, there: str, its: str, *, upwards: bool = True) -> None:
        """A link with a rate from interface ``name`` here, which has ``address``, to ``there`` of ``other``, which has ``its``; both are
        up. ``upwards``: as ``rated_links.join`` has it."""
        rated_links.join(self.pid, name, other.pid, there, upwards=upwards)
        for space, interface, host in ((other, there, its), (self, name, address)):
            space.run(
                f"ip addr add {host} dev {interface} {'nodad' if ':' in host else ''} && ip link set {interface} up"
            )

    def inside(self, action: Callable[[], T]) -> T:
        """Call ``action`` in a thread that is inside this network namespace; sockets and children made there stay in it."""
        outcome: list[T] = []
        errors: list[BaseException] = []

        def thread() -> None:
            try:
                with open(f"/proc/{self.pid}/ns/net") as file:  # noqa: PTH123  a file descriptor is what setns wants
                    if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), _CLONE_NEWNET) != 0:
                        raise OSError(ctypes.get_errno(), "setns")
                outcome.append(action())
            except BaseException as error:  # noqa: BLE001  handed to the caller below
                errors.append(error)

        worker = threading.Thread(target=thread)
        worker.start()
        worker.join()
        if errors:
            raise errors[0]
        return outcome[0]

    def close(self) -> None:
        """End the holder: the namespace goes with its last process."""
        assert self._holder.stdin is not None
        assert self._holder.stdout is not None
        self._holder.stdin.close()
        self._holder.wait(60)
        self._holder.stdout.close()


class Lab:
    """The two namespaces, wired. ``upwards``: as ``rated_links.join`` has it."""

    def __init__(self, *, upwards: bool = True) -> None:
        self.probe, self.server = Space(), Space()
        self.kept: list[socket.socket] = []
        """Sockets that live as long as the lab."""
        self.server.run(f"ip addr add {SERVER}/32 dev lo")
        for number, name in enumerate("ab", start=1):
            ends = (f"10.71.{number}.1/24", self.server, f"tmp5-{name}s", f"10.71.{number}.2/24")
            self.probe.link(f"tmp5-{name}", *ends, upwards=upwards)

    def close(self) -> None:
        for connection in self.kept:
            connection.close()
        self.probe.close()
        self.server.close()


class Spaces(Protocol):
    probe: Space
    server: Space


@contextmanager
def lab(*, upwards: bool = True) -> Iterator[Lab]:
    made = Lab(upwards=upwards)
    try:
        yield made
    finally:
        made.close()


def up(made: Spaces, wanted: Sequence[ProbePath] = PATHS) -> Paths:
    """``wanted`` applied and up (a fresh link gets its carrier up to a second late). No connection is refused Multipath TCP for what
    befell one before it."""
    paths = Paths(wanted)
    made.probe.inside(paths.apply)
    await_true(
        lambda: made.probe.inside(paths.check) is not None and len(paths.addresses) == len(wanted), 60, "all paths up"
    )
    for space in (made.probe, made.server):
        space.inside(lambda: sysctls.apply({"net.mptcp.blackhole_timeout": 0}))
    return paths


def await_true(condition: Callable[[], object], seconds: float, what: str) -> None:
    """Return as soon as ``condition`` holds; AssertionError after ``seconds``."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{what}: not within {seconds} s"
        select.select([], [], [], 0.02)
