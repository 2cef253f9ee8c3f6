"""The store that a server.toml names."""

from __future__ import annotations

import time

from tandem_server.cli.configuration import ServerConfig
from tandem_server.cli.stop import ConfigError, EnvironmentLacks
from tandem_server.registry import Registry, RegistryError
from tandem_server.store import Influx, PrivateInflux, StoreStartError, find_influxd
from tandem_server.store.private import account_password


def private_influx(config: ServerConfig) -> PrivateInflux:
    """The private instance of ``[store] kind = "private"``, not started; EnvironmentLacks without a binary."""
    try:
        binary = config.store.binary or find_influxd()
    except StoreStartError as error:
        raise EnvironmentLacks(str(error)) from error
    store = config.store
    return PrivateInflux(binary, store.folder, store.port, store.database, store.retention_days)


def open_store(config: ServerConfig, wait_s: float = 0.0) -> Influx:
    """A client. Waits up to ``wait_s`` for a private database's first start to make the account; EnvironmentLacks."""
    store = config.store
    deadline_s = time.monotonic() + wait_s
    while True:
        try:
            if store.kind == "running":
                if store.url is None or store.user is None or store.password_file is None:
                    raise ConfigError(f'{config.file}: [store] kind "running" needs url, user and password_file')
                return Influx(store.url, store.database, store.user, store.password_file.read_text().strip())
            url = f"http://127.0.0.1:{store.port}"
            return Influx(url, store.database, "tandem", account_password(store.folder))
        except OSError as error:
            if time.monotonic() < deadline_s:
                time.sleep(0.1)
                continue
            mend = "start tandem-server serve database" if store.kind == "private" else "correct [store] password_file"
            raise EnvironmentLacks(f"{error.filename}: {error.strerror}; mend: {mend}") from error


def open_registry(config: ServerConfig) -> Registry:
    """The registry; EnvironmentLacks when its file cannot be used."""
    try:
        return Registry(config.registry.file)
    except RegistryError as error:
        raise EnvironmentLacks(str(error)) from error
