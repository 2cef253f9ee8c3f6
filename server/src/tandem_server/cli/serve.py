"""``tandem-server serve [database|gateway|endpoint|worker|pages]``: one role in this process, or all of them as children; and ``check``."""

from __future__ import annotations

import argparse
import functools
import logging
import os
import select
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from tandem.mptcp_abi import v094
from tandem.notify import Notify
from tandem.stop_flag import StopFlag
from tandem_server.analysis.run_samples import RunSamples
from tandem_server.cli import gateway
from tandem_server.cli.command import Actions, ConfigError, EnvironmentLacks, add_command
from tandem_server.cli.configuration import ServerConfig, load
from tandem_server.cli.listeners import (
    announce,
    bind,
    connection_limits,
    enough_descriptors,
    measurement_bounds,
    probe_rates,
    serve_app,
)
from tandem_server.cli.log import log_to_stderr
from tandem_server.cli.stores import TraceStores, open_registry, private_influx, reader_or_why
from tandem_server.content.page import PageStore
from tandem_server.endpoint.capture import Captures, Kept
from tandem_server.endpoint.control import Results, control_app
from tandem_server.endpoint.http1 import tls_context
from tandem_server.endpoint.listener import Acceptor, Controllers, NoMultipathError, listen
from tandem_server.endpoint.pool import Pool, PoolError, cores
from tandem_server.endpoint.reflector import Reflector, ReflectorError, reflector_socket
from tandem_server.endpoint.sessions import SessionTable
from tandem_server.endpoint.sockets import accepted_subflows
from tandem_server.http.connections import ConnectionLimiter
from tandem_server.http.rates import DiskShare, Reserve
from tandem_server.http.server import serve
from tandem_server.run_viewer import Pages

_LOG = logging.getLogger("tandem.serve")
_SWEEP_S = 1.0
_START_S = 60.0
_STOP_S = 20.0
_NEW_PAGES_PER_MINUTE = 6000
"""A proxy is one address for everybody behind it."""


def add(commands: Actions[argparse.ArgumentParser]) -> None:
    """Register the commands."""
    command = add_command(
        commands,
        "serve",
        _serve,
        "run the server: database, gateway, endpoint, worker and pages, or one of them",
        "Run the server until SIGTERM or Ctrl-C. Each role prints 'ready ROLE ADDRESS:PORT' when it accepts work"
        " (worker: and what it does)."
        " Without a role, all of them run as child processes, and end together; pages only where [listen] pages_port is set.",
    )
    command.add_argument("role", nargs="?", choices=tuple(_ROLES), help="run this role only")
    add_command(
        commands,
        "check",
        _check,
        "read server.toml and say what is wrong in it",
        "Read server.toml as the services do, and start nothing. Exit status 2 with file, line and hint when it is wrong.",
    )


def _check(args: Namespace) -> int:
    print(f"{load(args.config).file}: right")
    return 0


def _serve(args: Namespace) -> int:
    config = load(args.config)
    log_to_stderr()
    if args.role is None:
        roles = ["database"] if config.store.kind == "private" else []
        roles += ["gateway", "endpoint", "worker", *(["pages"] if config.listen.pages_port is not None else [])]
        return _supervise(roles, config.file)
    # Before the listeners take the signal over: SIGTERM while still starting is a clean end too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until there is a certificate to look at
    _ROLES[args.role](config)
    return 0


def _database(config: ServerConfig) -> None:
    if config.store.kind != "private":
        raise ConfigError(
            f'{config.file}: [store] kind is "{config.store.kind}"; hint: there is no database to serve, leave it out'
        )
    stop = StopFlag()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    database, notify = private_influx(config), Notify.of_environment()
    database.start()
    try:
        print(f"ready database 127.0.0.1:{database.port}", flush=True)
        notify.ready()
        while not stop.wait(0.5):
            if database.wait(0) is not None:
                raise EnvironmentLacks(f"influxd ended: {database.why_ended()}")
            notify.alive()
        notify.stopping()
    finally:
        database.stop()


def _gateway(config: ServerConfig) -> None:
    listen = config.listen
    if listen.gateway_processes > 1:
        gateway.serve_by_processes(config.file, listen.host, listen.gateway_port, listen.gateway_processes)
        return
    with bind(listen.host, listen.gateway_port) as listener:
        gateway.serve(config, listener, lambda: announce("gateway", listener))


def _endpoint(config: ServerConfig) -> None:
    bounds, tls_port = config.limits, config.listen.measurement_tls_port
    measurement = _measurement_listener(config, config.listen.measurement_port)
    listener = bind(config.listen.host, config.listen.control_port)
    with ExitStack() as held:
        held.enter_context(measurement)
        held.enter_context(listener)
        registry = held.enter_context(open_registry(config))
        further = []
        if tls_port is not None:
            _check_certificate(config)
            further.append(held.enter_context(_measurement_listener(config, tls_port)))
        registry.sessions.end_abandoned()
        choose = Controllers([measurement, *further]).choose if v094.present() else None
        sessions = SessionTable(registry, bounds, config.probes, choose)
        command = [sys.executable, "-m", "tandem_server.cli.measurement_process", str(config.file)]
        try:
            pool = Pool(command, config.listen.processes or cores(), sessions)
        except PoolError as error:
            raise EnvironmentLacks(str(error)) from error
        reflector = _reflector(config, sessions)
        serve_tls = functools.partial(pool.serve, tls=True)
        acceptor = Acceptor(
            measurement,
            pool.serve,
            ConnectionLimiter(measurement_bounds(bounds)),
            [(one, serve_tls) for one in further],
        )

        def ready() -> None:
            announce("measurement", measurement)
            for one in further:
                announce("measurement with TLS", one)
            announce("endpoint", listener)

        swept = threading.Event()
        sweeper = threading.Thread(target=_sweep, args=(sessions, swept), name="sweeper", daemon=True)
        sweeper.start()
        try:
            port = config.listen.measurement_port
            capture = config.capture
            pages = PageStore(config.content.folder)
            captures = None
            if capture.allowed:
                kept = Kept(registry, config.traces.folder, config.traces.reserve_bytes)
                captures = Captures(capture.folder, capture.budget_bytes, kept)
            addresses = config.listen.further_addresses
            _warn_of_limit(addresses)
            reserve = Reserve([config.results.folder, config.registry.file.parent], config.traces.reserve_bytes)
            share = DiskShare(reserve, bounds.probe_document_bytes_per_day)
            results = Results(config.results.folder, share)
            app = control_app(
                registry, sessions, port, results, captures, reflector, tls_port, addresses, pages, bounds.body_s
            )
            serve_app(config, app, listener, ready)
        finally:
            swept.set()
            sweeper.join()
            sessions.end_all()
            acceptor.stop()
            pool.stop()
            if reflector is not None:
                reflector.stop()


def _warn_of_limit(further: Sequence[str]) -> None:
    """More addresses bring more subflows; the kernel's default limit refuses the fourth."""
    accepted = accepted_subflows() if further else None
    if accepted is not None and accepted < 3:
        _LOG.warning(
            "the kernel accepts %d subflows beside a connection's first; four in all need 3; hint: ip mptcp limits set subflow 8",
            accepted,
        )


def _reflector(config: ServerConfig, sessions: SessionTable) -> Reflector | None:
    """On the measurement port's number, by UDP. Without it everything but latency is measured all the same."""
    try:
        return Reflector(reflector_socket(config.listen.host, config.listen.measurement_port), sessions)
    except ReflectorError as error:
        _LOG.warning("no reflector: %s", error)
        return None


def _sweep(sessions: SessionTable, stopped: threading.Event) -> None:
    """End sessions that have lapsed, a capture may run with them, and those of probes that are revoked meanwhile."""
    while not stopped.wait(_SWEEP_S):
        sessions.sweep()


def _measurement_listener(config: ServerConfig, port: int) -> socket.socket:
    """ListenError."""
    try:
        return listen(config.listen.host, port)
    except NoMultipathError as error:
        if config.listen.multipath == "required":
            raise
        _LOG.warning("%s; going on with plain TCP: every MPTCP run will fall back", error)
    return listen(config.listen.host, port, multipath=False)


def _check_certificate(config: ServerConfig) -> None:
    """Here, in one line, and not from each of the processes that will use it."""
    try:
        tls_context(config.tls.certificate, config.tls.key)
    except OSError as error:
        files = f"{config.tls.certificate}, {config.tls.key}"
        raise EnvironmentLacks(f"{files}: {error}; hint: tandem-server tls") from error


def _worker(config: ServerConfig) -> None:
    from tandem_server.cli import worker  # numpy, of no use to the gateway

    worker.serve(config)


def _pages(config: ServerConfig) -> None:
    """Reads the registry, the database and the traces, writes nothing, answers plain HTTP on loopback. ConfigError without a port."""
    port = config.listen.pages_port
    if port is None:
        raise ConfigError(f"{config.file}: no [listen] pages_port; hint: give it a port, as pages_port = 8445")
    limits = connection_limits(config.limits)
    # Nobody shows a probe's token here: all are unauthenticated, and a proxy brings them all from one address.
    limits = replace(limits, unauthenticated_per_address=limits.unauthenticated, new_per_minute=_NEW_PAGES_PER_MINUTE)
    with ExitStack() as held:
        listener = held.enter_context(bind(config.pages.host, port))
        registry = held.enter_context(open_registry(config, read_only=True))
        store = reader_or_why(config)
        if not isinstance(store, str):
            held.callback(store.close)
        enough_descriptors(limits.unauthenticated + limits.authenticated)
        days, behind_proxy = config.store.retention_days, config.pages.behind_proxy
        samples = RunSamples(config.traces.folder)
        app = Pages(registry, store, TraceStores(config).at, days, samples).app(any_host=behind_proxy)
        rates = probe_rates(config.limits, {})
        serve(app, listener, None, ConnectionLimiter(limits), rates, lambda: announce("pages", listener))


_ROLES: dict[str, Callable[[ServerConfig], None]] = {
    "database": _database,
    "gateway": _gateway,
    "endpoint": _endpoint,
    "worker": _worker,
    "pages": _pages,
}

# --- All roles: children of this process, all or none ----------------------------------------------------------------------


def _supervise(roles: list[str], config: Path) -> int:
    """Start the roles in order, each when the one before is ready, and wait. Exit status: 0 after SIGTERM, 130 after Ctrl-C,
    else that of the child that died first, which is named."""
    children: dict[str, subprocess.Popen[bytes]] = {}
    notify = Notify.of_environment()
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
            notify.ready()
        return _watch(children, wake_read, heard, notify)
    finally:
        notify.stopping()
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


def _watch(children: dict[str, subprocess.Popen[bytes]], wake: int, heard: list[int], notify: Notify) -> int:
    while True:
        notify.alive()
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
        if select.select([wake], [], [], notify.every_s)[0]:
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
