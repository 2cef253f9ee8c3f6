"""The role ``pages``: reads the registry, the database and the traces, writes nothing, answers plain HTTP on loopback."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

from tandem_server.cli.bounds import connection_limits, enough_descriptors, probe_rates
from tandem_server.cli.configuration import ServerConfig
from tandem_server.cli.https import announce, bind
from tandem_server.cli.stop import ConfigError, EnvironmentLacks
from tandem_server.cli.stores import open_reader, open_registry_to_read
from tandem_server.cli.trace_stores import Stores
from tandem_server.http.connections import ConnectionLimiter
from tandem_server.http.server import serve
from tandem_server.run_viewer.app import Pages
from tandem_server.store import SeriesStore

_NEW_PER_MINUTE = 6000
"""A proxy is one address for everybody behind it."""


def serve_pages(config: ServerConfig) -> None:
    """Until SIGTERM or SIGINT. ConfigError without a port, EnvironmentLacks."""
    port = config.listen.pages_port
    if port is None:
        raise ConfigError(f"{config.file}: no [listen] pages_port; hint: give it a port, as pages_port = 8445")
    limits = connection_limits(config.limits)
    # Nobody shows a probe's token here: all are unauthenticated, and a proxy brings them all from one address.
    limits = replace(limits, unauthenticated_per_address=limits.unauthenticated, new_per_minute=_NEW_PER_MINUTE)
    with ExitStack() as held:
        listener = held.enter_context(bind(config.pages.host, port))
        registry = held.enter_context(open_registry_to_read(config))
        store = store_or_why(config)
        if not isinstance(store, str):
            held.callback(store.close)
        enough_descriptors(limits.unauthenticated + limits.authenticated)
        stores = Stores(config)
        app = Pages(registry, store, stores.at, config.store.retention_days).app(any_host=config.pages.behind_proxy)
        rates = probe_rates(config.limits, {})
        serve(app, listener, None, ConnectionLimiter(limits), rates, lambda: announce("pages", listener))


def store_or_why(config: ServerConfig) -> SeriesStore | str:
    """A client with the right to read, or why there is none: a run's manifest and files are shown without it."""
    try:
        store = open_reader(config)
    except EnvironmentLacks as error:
        return str(error)
    if store is None:
        return f'records cannot be asked for: [store] kind = "{config.store.kind}" knows no InfluxQL'
    return store
