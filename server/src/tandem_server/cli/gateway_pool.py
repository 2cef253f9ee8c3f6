"""Several gateway processes on one port: each has a listening socket of its own, and the kernel spreads new connections over them.

The sockets belong to the first process, which starts the others and starts one again that died: connections that the kernel gave to its
socket meanwhile wait there.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from tandem.notify import Notify
from tandem.stop_flag import StopFlag
from tandem_server.cli.https import announce, bind
from tandem_server.cli.stop import EnvironmentLacks

_LOG = logging.getLogger("tandem.serve")
_START_S = 60.0
_STOP_S = 15.0
_LONGEST_PAUSE_S = 30.0


def serve_by_processes(config: Path, host: str, port: int, processes: int) -> None:
    """Until SIGTERM or SIGINT. EnvironmentLacks when the port is taken or a process does not start."""
    bind(host, port).close()  # with SO_REUSEPORT a second gateway would share the port of a first unnoticed
    listeners = [bind(host, port, shared=True) for _ in range(processes)]
    stop = StopFlag()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    members: list[_Member] = []
    told = Notify.of_environment()
    try:
        for nth, listener in enumerate(listeners, 1):
            listener.listen(1024)
            members.append(_Member(config, listener, nth))
        for member in members:
            if not member.await_ready():
                raise EnvironmentLacks("a gateway process did not start; hint: see its log above")
        announce("gateway", listeners[0])
        told.ready()
        while not stop.wait(0.2):
            told.alive()
            for member in members:
                member.keep()
    finally:
        told.stopping()
        for member in members:
            member.process.terminate()
        for member in members:
            member.end()
        for listener in listeners:
            listener.close()


class _Member:
    """One process, its socket and its number."""

    def __init__(self, config: Path, listener: socket.socket, number: int) -> None:
        self._config, self._listener, self._number, self._pause_s = config, listener, str(number), 0.1
        self._again_s: float | None = None
        self._start()

    def _start(self) -> None:
        self._started_s = time.monotonic()
        descriptor = self._listener.fileno()
        module = "tandem_server.cli.gateway_process"
        command = [sys.executable, "-m", module, str(self._config), str(descriptor), self._number]
        # A session of its own: Ctrl-C in a terminal is for the first process, which ends the others. It lives as long as our end of its
        # pipe: killed, we take it along.
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[descriptor], start_new_session=True
        )

    def await_ready(self) -> bool:
        """Its first line, or its end."""
        assert self.process.stdout is not None  # noqa: S101  (started with a pipe)
        return self.process.stdout.readline() == b"ready\n"

    def keep(self) -> None:
        """Start it again when it has died, after a pause that grows while it dies young."""
        if self._again_s is None and self.process.poll() is not None:
            _LOG.warning(
                "gateway process %d ended (status %d); another is started", self.process.pid, self.process.returncode
            )
            self._close()
            young = time.monotonic() - self._started_s < 5.0
            self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S) if young else 0.1
            self._again_s = time.monotonic() + self._pause_s
        elif self._again_s is not None and time.monotonic() >= self._again_s:
            self._again_s = None
            self._start()

    def end(self) -> None:
        """Wait for its end; by force after 15 s."""
        try:
            self.process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            _LOG.warning("gateway process %d did not stop; killed", self.process.pid)
            self.process.kill()
            self.process.wait()
        self._close()

    def _close(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


def end_with_parent() -> None:
    """In a member: end as by SIGTERM when the first process is gone."""

    def wait() -> None:
        while os.read(0, 1):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="parent", daemon=True).start()
