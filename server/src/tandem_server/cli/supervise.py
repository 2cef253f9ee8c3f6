"""Runs the roles of the server as child processes: all or none."""

from __future__ import annotations

import logging
import os
import select
import selectors
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from tandem.notify import Notify
from tandem_server.cli.stop import EnvironmentLacks

_LOG = logging.getLogger("tandem.serve")
_START_S = 60.0
_STOP_S = 20.0


def supervise(roles: list[str], config: Path) -> int:
    """Start the roles in order, each when the one before is ready, and wait. Exit status: 0 after SIGTERM, 130 after Ctrl-C,
    else that of the child that died first, which is named."""
    children: dict[str, subprocess.Popen[bytes]] = {}
    told = Notify.of_environment()
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    heard: list[int] = []
    before_wakeup = signal.set_wakeup_fd(wake_write)
    before = {
        n: signal.signal(n, lambda number, _: heard.append(number))
        for n in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, signal.SIGHUP)
    }
    try:
        for role in roles:
            children[role] = _start(role, config)
            if not _await_ready(role, children, wake_read, heard):
                break
        else:
            told.ready()
        return _watch(children, wake_read, heard, told)
    finally:
        told.stopping()
        for role in reversed(list(children)):
            _end(role, children[role])
        signal.set_wakeup_fd(before_wakeup)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(wake_read)
        os.close(wake_write)


def _start(role: str, config: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tandem_server", "serve", role, "--config", str(config)]
    setpriv = shutil.which("setpriv")
    if setpriv:  # a killed supervisor takes its children along
        command = [setpriv, "--pdeathsig", "TERM", *command]
    # A session of its own: Ctrl-C in a terminal reaches this process only, which ends the children in order.
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True)


def _await_ready(role: str, children: dict[str, subprocess.Popen[bytes]], wake: int, heard: list[int]) -> bool:
    """Pass the child's lines on until it is ready; False when a signal came or a child ended."""
    output = children[role].stdout
    assert output is not None  # noqa: S101  (started with a pipe)
    deadline_s = time.monotonic() + _START_S
    with selectors.DefaultSelector() as selector:
        selector.register(output, selectors.EVENT_READ)
        selector.register(wake, selectors.EVENT_READ)
        text = b""
        while f"ready {role} ".encode() not in text or not text.endswith(b"\n"):
            for key, _ in selector.select(max(0.0, deadline_s - time.monotonic())):
                if key.fileobj is output:
                    more = os.read(output.fileno(), 4096)
                    text += more
                    sys.stdout.write(more.decode(errors="replace"))
                    sys.stdout.flush()
                    if not more:
                        return False
                else:
                    os.read(wake, 512)
            if any(n in heard for n in (signal.SIGTERM, signal.SIGINT)) or _dead(children):
                return False
            if time.monotonic() > deadline_s:
                raise EnvironmentLacks(f"{role} was not ready within {_START_S:g} s; hint: see its log above")
    return True


def _watch(children: dict[str, subprocess.Popen[bytes]], wake: int, heard: list[int], told: Notify) -> int:
    while True:
        told.alive()
        if signal.SIGINT in heard:
            return 130
        if signal.SIGTERM in heard:
            return 0
        dead = _dead(children)
        if dead is not None:
            status = children[dead].wait()
            print(f"tandem-server: {dead} ended (status {status}); the others are stopped", file=sys.stderr, flush=True)
            return status if status > 0 else 1
        if signal.SIGHUP in heard:  # a renewed certificate: theirs to take over
            heard.remove(signal.SIGHUP)
            for role, child in children.items():
                if role != "database":
                    child.send_signal(signal.SIGHUP)
        if select.select([wake], [], [], told.every_s)[0]:
            os.read(wake, 512)


def _dead(children: dict[str, subprocess.Popen[bytes]]) -> str | None:
    return next((role for role, child in children.items() if child.poll() is not None), None)


def _end(role: str, child: subprocess.Popen[bytes]) -> None:
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            _LOG.warning("%s did not stop within %g s; killed", role, _STOP_S)
            child.kill()
            child.wait()
    if child.stdout is not None:
        child.stdout.close()
