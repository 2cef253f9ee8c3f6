"""One of several gateway processes, started by the first: ``python -m tandem_server.cli.gateway_process CONFIG DESCRIPTOR NUMBER``."""

from __future__ import annotations

import logging
import socket
import sqlite3
import sys
from argparse import Namespace
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from tandem_server import __version__
from tandem_server.cli.bounds import DATABASE_WAIT_S
from tandem_server.cli.configuration import ServerConfig, load
from tandem_server.cli.gateway_pool import end_with_parent
from tandem_server.cli.https import serve_app
from tandem_server.cli.log import log_to_stderr
from tandem_server.cli.probe_enrolment import keep_peers, tunnel_of
from tandem_server.cli.stop import with_plain_ends
from tandem_server.cli.stores import kept_days, open_registry, open_rolled, open_store
from tandem_server.cli.trace_stores import UploadSweeper, upload_service
from tandem_server.http.rates import Reserve
from tandem_server.ingest.expected import ExpectedSeries
from tandem_server.ingest.gateway import Gateway, GatewayLimits
from tandem_server.ingest.gateway_series import GatewaySeries
from tandem_server.ingest.late_notes import LateNotes
from tandem_server.ingest.ledger_series import LedgerSeries
from tandem_server.ingest.machine import MachineSeries
from tandem_server.ingest.meter import Meter
from tandem_server.ingest.rolling import RollingSeries
from tandem_server.ingest.sightings import Sightings

_LOG = logging.getLogger("tandem.gateway")


def serve(
    config: ServerConfig,
    listener: socket.socket,
    when_ready: Callable[[], None],
    number: int = 1,
    processes: int = 1,
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
    every_s, settle_s = config.series.every_s, config.series.settle_s
    with ExitStack() as held:
        registry = held.enter_context(open_registry(config))
        store = open_store(config, DATABASE_WAIT_S)
        sightings = held.enter_context(Sightings(registry))
        held.enter_context(ExpectedSeries(registry, store, config.states, every_s))
        rolled, late = open_rolled(config), None
        if rolled is not None:
            held.enter_context(RollingSeries(registry, rolled, kept_days(config), settle_s))
            late = LateNotes(registry.late.note, settle_s / 2)
        held.enter_context(LedgerSeries(registry, store, config.store.retention_days, every_s))
        held.enter_context(MachineSeries(registry, store, places_of(config), every_s))
        meter = Meter(sightings.note)
        held.enter_context(GatewaySeries(store, meter, number, every_s))
        uploads = upload_service(config, registry)
        held.enter_context(UploadSweeper(uploads))

        def peers_changed() -> None:
            keep_peers(config, registry)

        try:
            peers_changed()  # the process before may have ended between an enrolment and this
        except (OSError, sqlite3.Error) as error:
            _LOG.warning("the hub's peers are not written: %s", error)
        tunnel = tunnel_of(config)
        private = [config.store.folder] if config.store.kind == "private" else []
        reserve = Reserve([config.registry.file.parent, *private], config.traces.reserve_bytes)
        expected = config.collector.version or __version__.partition("+")[0]  # of any build
        gateway = Gateway(registry, store, limits, uploads, meter, late, tunnel, peers_changed, expected, reserve)
        serve_app(config, gateway.app(), listener, when_ready, processes)


def places_of(config: ServerConfig) -> dict[str, Path]:
    """What of the server's is on this machine, by its name in the schema's SERVER_PLACES; some of it may not exist."""
    places = {
        "traces": config.traces.folder,
        "registry": config.registry.file,
        "results": config.results.folder,
        "content": config.content.folder,
    }
    if config.store.kind == "private":
        places["store"] = config.store.folder
    if config.capture.allowed:
        places["captures"] = config.capture.folder
    return places


@with_plain_ends
def main(args: Namespace) -> int:
    """Serve on the socket that was passed on."""
    config = load(args.config)
    log_to_stderr()
    end_with_parent()
    with socket.socket(fileno=args.descriptor) as listener:
        serve(config, listener, lambda: print("ready", flush=True), args.number, config.listen.gateway_processes)
    return 0


if __name__ == "__main__":
    sys.exit(main(Namespace(config=Path(sys.argv[1]), descriptor=int(sys.argv[2]), number=int(sys.argv[3]))))
