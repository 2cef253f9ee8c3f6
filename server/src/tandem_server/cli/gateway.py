"""The gateway's role: one process, or several on one port, each with a listening socket of its own over which the kernel spreads new
connections. ``python -m tandem_server.cli.gateway CONFIG DESCRIPTOR NUMBER`` is one of several.

The sockets belong to the first process, which starts the others and starts one again that died: connections that the kernel gave to its
socket meanwhile wait there.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from tandem.notify import Notify
from tandem.stop_flag import StopFlag
from tandem_server import __version__
from tandem_server.cli.command import EnvironmentLacks, run_plainly
from tandem_server.cli.configuration import ServerConfig, load
from tandem_server.cli.listeners import announce, bind, serve_app
from tandem_server.cli.log import log_to_stderr
from tandem_server.cli.stores import DATABASE_WAIT_S, keep_peers, open_registry, open_store, upload_service
from tandem_server.http.rates import Reserve
from tandem_server.ingest.documents import Tunnel
from tandem_server.ingest.gateway import Gateway, GatewayLimits
from tandem_server.ingest.group_commit import LateNotes
from tandem_server.ingest.meter import GatewaySeries, LastSeen, Meter

_LOG = logging.getLogger("tandem.gateway")
_SERVE_LOG = logging.getLogger("tandem.serve")
_STOP_S = 15.0
_LONGEST_PAUSE_S = 30.0


def serve(
    config: ServerConfig, listener: socket.socket, when_ready: Callable[[], None], number: int = 1, processes: int = 1
) -> None:
    """Answer on ``listener`` until SIGTERM or SIGINT. Limits are for the whole gateway: this process, ``number`` (from 1) of
    ``processes``, has its share."""
    limits = GatewayLimits(
        in_flight=-(-config.limits.requests_at_once // processes),
        bytes_in_flight=-(-config.limits.bytes_in_flight // processes),
        body_s=config.limits.body_s,
        future_s=config.limits.clock_ahead_s,
        retention_days=config.store.retention_days,
        document_bytes_per_day=config.limits.probe_document_bytes_per_day,
        failures_per_minute=config.limits.failures_per_address,
        series_per_hour=config.limits.probe_series_per_hour,
    )
    with ExitStack() as held:
        registry = held.enter_context(open_registry(config))
        store = open_store(config, DATABASE_WAIT_S)
        last_seen = held.enter_context(LastSeen(registry))
        late = LateNotes(registry.late.note, config.series.settle_s / 2)
        meter = Meter(last_seen.note)
        held.enter_context(GatewaySeries(store, meter, number, config.series.every_s, registry.late.note))
        uploads = upload_service(config, registry)

        def peers_changed() -> None:
            keep_peers(config, registry)

        try:
            peers_changed()  # the process before may have ended between an enrolment and this
        except (OSError, sqlite3.Error) as error:
            _LOG.warning("the hub's peers are not written: %s", error)
        tunnel = _tunnel(config)
        private = [config.store.folder] if config.store.kind == "private" else []
        reserve = Reserve([config.registry.file.parent, *private], config.traces.reserve_bytes)
        expected = config.collector.version or __version__.partition("+")[0]  # of any build
        gateway = Gateway(registry, store, limits, uploads, meter, late, tunnel, peers_changed, expected, reserve)
        serve_app(config, gateway.app(), listener, when_ready, processes)


def _tunnel(config: ServerConfig) -> Tunnel | None:
    """What probes that enrol learn of the hub; None without one."""
    section, network = config.wireguard, config.wireguard.addresses
    if network is None or section.endpoint is None:
        return None
    return Tunnel(network, section.public_key_file, section.endpoint)


def serve_by_processes(config: Path, host: str, port: int, processes: int) -> None:
    """Until SIGTERM or SIGINT. EnvironmentLacks when the port is taken or a process does not start."""
    bind(host, port).close()  # with SO_REUSEPORT a second gateway would share the port of a first unnoticed
    listeners = [bind(host, port, shared=True) for _ in range(processes)]
    stop = StopFlag()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    members: list[_Member] = []
    notify = Notify.of_environment()
    try:
        for nth, listener in enumerate(listeners, 1):
            listener.listen(1024)
            members.append(_Member(config, listener, nth))
        for member in members:
            if not member.await_ready():
                raise EnvironmentLacks("a gateway process did not start; hint: see its log above")
        announce("gateway", listeners[0])
        notify.ready()
        while not stop.wait(0.2):
            notify.alive()
            for member in members:
                member.keep()
    finally:
        notify.stopping()
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
        module = "tandem_server.cli.gateway"
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
            _SERVE_LOG.warning(
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
            _SERVE_LOG.warning("gateway process %d did not stop; killed", self.process.pid)
            self.process.kill()
            self.process.wait()
        self._close()

    def _close(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


def _end_with_parent() -> None:
    """End as by SIGTERM when the process that started this one is gone: it holds the other end of our standard input."""

    def wait() -> None:
        while os.read(0, 1):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="parent", daemon=True).start()


def main() -> int:
    """One of several processes: serve on the socket that was passed on."""
    config = load(Path(sys.argv[1]))
    log_to_stderr()
    _end_with_parent()
    with socket.socket(fileno=int(sys.argv[2])) as listener:
        number, processes = int(sys.argv[3]), config.listen.gateway_processes
        serve(config, listener, lambda: print("ready", flush=True), number, processes)
    return 0


if __name__ == "__main__":
    sys.exit(run_plainly(main))
