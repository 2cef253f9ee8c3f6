"""The store that a server.toml names."""

from __future__ import annotations

import time
from pathlib import Path

from tandem_server.cli.configuration import ServerConfig
from tandem_server.cli.stop import EnvironmentLacks
from tandem_server.cli.store_section import Store
from tandem_server.registry import Registry, RegistryError
from tandem_server.store import Influx, Influx2, PrivateInflux, SeriesStore, StoreStartError, Victoria, find_influxd
from tandem_server.store.preparing import READER, Kept
from tandem_server.store.private import account_password

LONG_STATEMENT_S = 600.0
"""A day's roll-ups of a whole fleet are one statement, and nothing is heard of it before it ends."""


def private_influx(config: ServerConfig) -> PrivateInflux:
    """The private instance of ``[store] kind = "private"``, not started; EnvironmentLacks without a binary."""
    try:
        binary = config.store.binary or find_influxd()
    except StoreStartError as error:
        raise EnvironmentLacks(str(error)) from error
    store = config.store
    return PrivateInflux(binary, store.folder, store.port, store.database, kept_days(config), store.backup_port)


def kept_days(config: ServerConfig) -> Kept:
    """For how long records and roll-ups are kept."""
    store = config.store
    return Kept(store.retention_days, store.minute_days, store.hour_days)


def open_rolled(config: ServerConfig) -> Influx | None:
    """A client that waits for long statements, of a database that can roll up: InfluxDB 1.x; None for others. EnvironmentLacks."""
    if config.store.kind not in ("private", "running"):
        return None
    store = open_store(config)
    assert isinstance(store, Influx)  # noqa: S101  (these kinds are)
    return store.patient(LONG_STATEMENT_S)


def open_store(config: ServerConfig, wait_s: float = 0.0) -> SeriesStore:
    """A client. Waits up to ``wait_s`` for a private database's first start to make the account; EnvironmentLacks."""
    store = config.store
    deadline_s = time.monotonic() + wait_s
    while True:
        try:
            return _client(store)
        except OSError as error:
            if time.monotonic() < deadline_s:
                time.sleep(0.1)
                continue
            key = "token_file" if store.kind == "influxdb2" else "password_file"
            mend = "start tandem-server serve database" if store.kind == "private" else f"correct [store] {key}"
            raise EnvironmentLacks(f"{error.filename}: {error.strerror}; hint: {mend}") from error


def _client(store: Store) -> SeriesStore:
    """OSError when a file with a secret cannot be read. What each kind needs is there: the configuration was checked."""
    if store.kind == "private":
        return Influx(f"http://127.0.0.1:{store.port}", store.database, "tandem", account_password(store.folder))
    url = store.url or ""
    if store.kind == "influxdb2":
        return Influx2(url, store.org or "", store.database, _secret(store.token_file))
    login = (store.user or "", _secret(store.password_file))
    if store.kind == "running":
        return Influx(url, store.database, *login)
    return Victoria(url, store.database, store.texts or "dropped", store.retention_days, login if store.user else None)


def _secret(file: Path | None) -> str:
    return "" if file is None else file.read_text().strip()


def open_reader(config: ServerConfig) -> Influx | None:
    """A client with the account ``reader``, that can change nothing; None for a database without InfluxQL. In an InfluxDB of one's own
    that is ``[pages] password_file``, else the account of ``[store]``. EnvironmentLacks."""
    store = config.store
    if store.kind not in ("private", "running"):
        return None
    if store.kind == "running" and config.pages.password_file is None:
        own = open_store(config)
        assert isinstance(own, Influx)  # noqa: S101  (this kind is)
        return own
    try:
        if store.kind == "running":
            return Influx(store.url or "", store.database, READER, _secret(config.pages.password_file))
        return Influx(f"http://127.0.0.1:{store.port}", store.database, READER, account_password(store.folder, READER))
    except OSError as error:
        key = "correct [pages] password_file" if store.kind == "running" else "start tandem-server serve database"
        raise EnvironmentLacks(f"{error.filename}: {error.strerror}; hint: {key}") from error


def open_registry_to_read(config: ServerConfig) -> Registry:
    """The registry, which must be there; SQLite refuses every change. EnvironmentLacks when its file cannot be used."""
    try:
        return Registry(config.registry.file, read_only=True)
    except RegistryError as error:
        raise EnvironmentLacks(str(error)) from error


def open_registry(config: ServerConfig) -> Registry:
    """The registry; EnvironmentLacks when its file cannot be used."""
    try:
        return Registry(config.registry.file)
    except RegistryError as error:
        raise EnvironmentLacks(str(error)) from error
