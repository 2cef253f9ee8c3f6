"""``tandem-server serve [database|gateway|endpoint|pages]``: one role in this process, or all of them as children."""

from __future__ import annotations

import argparse
import functools
import logging
import signal
import socket
import sys
import threading
from argparse import Namespace
from collections.abc import Sequence
from contextlib import ExitStack

from tandem.mptcp_abi import v094
from tandem.notify import Notify
from tandem.stop_flag import StopFlag
from tandem_server.cli.beside import Beside
from tandem_server.cli.bounds import measurement_bounds, session_limits
from tandem_server.cli.config_file import add_config
from tandem_server.cli.configuration import ServerConfig, load
from tandem_server.cli.gateway_pool import serve_by_processes
from tandem_server.cli.gateway_process import serve as serve_gateway
from tandem_server.cli.https import announce, bind, serve_app
from tandem_server.cli.log import log_to_stderr
from tandem_server.cli.run_viewer_process import serve_pages
from tandem_server.cli.stop import ConfigError, EnvironmentLacks, with_plain_ends
from tandem_server.cli.stores import open_registry, private_influx
from tandem_server.cli.supervise import supervise
from tandem_server.content.page.store import PageStore
from tandem_server.endpoint.capture import Captures, Kept
from tandem_server.endpoint.control import control_app
from tandem_server.endpoint.listener import Acceptor, Controllers, ListenError, NoMultipathError, listen
from tandem_server.endpoint.multipath import accepted_subflows
from tandem_server.endpoint.pool import Pool, PoolError, cores
from tandem_server.endpoint.reflector import Reflector, ReflectorError, reflector_socket
from tandem_server.endpoint.results import Results
from tandem_server.endpoint.secure import tls_context
from tandem_server.endpoint.sessions import SessionTable
from tandem_server.http.connections import ConnectionLimiter
from tandem_server.http.rates import DiskShare, Reserve
from tandem_server.store import StoreStartError

_LOG = logging.getLogger("tandem.serve")
_SWEEP_S = 1.0


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the subcommand."""
    parser = subparsers.add_parser(
        "serve",
        help="run the server: database, gateway, endpoint and pages, or one of them",
        description="Run the server until SIGTERM or Ctrl-C. Each role prints 'ready ROLE ADDRESS:PORT' when it accepts work."
        " Without a role, all of them run as child processes, and end together; pages only where [listen] pages_port is set.",
    )
    parser.add_argument(
        "role", nargs="?", choices=("database", "gateway", "endpoint", "pages"), help="run this role only"
    )
    add_config(parser)
    parser.set_defaults(func=_serve)


@with_plain_ends
def _serve(args: Namespace) -> int:
    config = load(args.config)
    log_to_stderr()
    if args.role is None:
        roles = ["database"] if config.store.kind == "private" else []
        roles += ["gateway", "endpoint", *(["pages"] if config.listen.pages_port is not None else [])]
        return supervise(roles, config.file)
    # Before the listeners take the signal over: SIGTERM while still starting is a clean end too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until there is a certificate to look at
    roles_run = {"database": _database, "gateway": _gateway, "endpoint": _endpoint, "pages": serve_pages}
    roles_run[args.role](config)
    return 0


def _database(config: ServerConfig) -> None:
    if config.store.kind != "private":
        raise ConfigError(
            f'{config.file}: [store] kind is "{config.store.kind}"; hint: there is no database to serve, leave it out'
        )
    stop = StopFlag()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    database, told = private_influx(config), Notify.of_environment()
    try:
        database.start()
    except StoreStartError as error:
        raise EnvironmentLacks(str(error)) from error
    try:
        print(f"ready database 127.0.0.1:{database.port}", flush=True)
        told.ready()
        while not stop.wait(0.5):
            if database.wait(0) is not None:
                raise EnvironmentLacks(f"influxd ended: {database.why_ended()}")
            told.alive()
        told.stopping()
    finally:
        database.stop()


def _gateway(config: ServerConfig) -> None:
    listen = config.listen
    with ExitStack() as beside:
        beside.enter_context(Beside("tandem_server.cli.derived_process", config.file))
        if config.traces.analyse:
            beside.enter_context(Beside("tandem_server.cli.tables_process", config.file))
        if listen.gateway_processes > 1:
            serve_by_processes(config.file, listen.host, listen.gateway_port, listen.gateway_processes)
            return
        with bind(listen.host, listen.gateway_port) as listener:
            serve_gateway(config, listener, lambda: announce("gateway", listener))


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
        sessions = SessionTable(registry, session_limits(bounds), config.probes, choose)
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
            wanted = config.capture
            pages = PageStore(config.content.folder)
            captures = None
            if wanted.allowed:
                kept = Kept(registry, config.traces.folder, config.traces.reserve_bytes)
                captures = Captures(wanted.folder, wanted.budget_bytes, kept)
            told = config.listen.further_addresses
            _say_limits(told)
            reserve = Reserve([config.results.folder, config.registry.file.parent], config.traces.reserve_bytes)
            share = DiskShare(reserve, bounds.probe_document_bytes_per_day)
            results = Results(config.results.folder, share)
            app = control_app(
                registry, sessions, port, results, captures, reflector, tls_port, told, pages, bounds.body_s
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


def _say_limits(further: Sequence[str]) -> None:
    """Who tells of more addresses takes more subflows; the kernel's default limit refuses the fourth."""
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
    try:
        return listen(config.listen.host, port)
    except NoMultipathError as error:
        if config.listen.multipath == "required":
            raise EnvironmentLacks(str(error)) from error
        _LOG.warning("%s; going on with plain TCP: every MPTCP run will fall back", error)
    except ListenError as error:
        raise EnvironmentLacks(str(error)) from error
    try:
        return listen(config.listen.host, port, multipath=False)
    except ListenError as error:
        raise EnvironmentLacks(str(error)) from error


def _check_certificate(config: ServerConfig) -> None:
    """Here, in one line, and not from each of the processes that will use it."""
    try:
        tls_context(config.tls.certificate, config.tls.key)
    except OSError as error:
        mend = "hint: tandem-server tls"
        raise EnvironmentLacks(f"{config.tls.certificate}, {config.tls.key}: {error}; {mend}") from error
