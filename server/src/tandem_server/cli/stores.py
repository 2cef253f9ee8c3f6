"""What a server.toml names, opened: the registry, the database with its mirror, the stores of traces. RegistryError, StoreStartError and
TraceStoreDown come as they are; a command ends with their line (``command.run_plainly``)."""

from __future__ import annotations

import time
from pathlib import Path

from tandem_server.cli.command import EnvironmentLacks, hinted
from tandem_server.cli.configuration import ServerConfig
from tandem_server.registry import Registry
from tandem_server.registry.probes import write_peers
from tandem_server.store import Influx, Mirrored, PrivateInflux, SeriesStore, Victoria, find_influxd
from tandem_server.store.preparing import READER, Kept
from tandem_server.store.private import USER, account_password
from tandem_server.uploads.s3 import TraceBucket, is_in_bucket
from tandem_server.uploads.service import UploadLimits, UploadService
from tandem_server.uploads.store import TraceFolder, TraceStore

DATABASE_WAIT_S = 30.0
"""What runs beside a private database waits so long for its first start to make the account."""
LONG_STATEMENT_S = 600.0
"""A day's roll-ups of a whole fleet are one statement, and nothing is heard of it before it ends."""
_UNFINISHED = ".unfinished"


def open_registry(config: ServerConfig, *, read_only: bool = False) -> Registry:
    """The registry; ``read_only``: it must be there, and SQLite refuses every change."""
    return Registry(config.registry.file, read_only=read_only)


def keep_peers(config: ServerConfig, registry: Registry) -> None:
    """Write the hub's peers beside the registry, where there is a tunnel. OSError, sqlite3.Error."""
    if config.wireguard.network is not None:
        write_peers(config.registry.file.parent, registry.enrolments)


def private_influx(config: ServerConfig) -> PrivateInflux:
    """The private instance of ``[store] kind = "private"``, not started."""
    store = config.store
    binary = store.binary or find_influxd()
    return PrivateInflux(binary, store.folder, store.port, store.database, kept_days(config), store.backup_port)


def kept_days(config: ServerConfig) -> Kept:
    """For how long records and roll-ups are kept."""
    return Kept(config.store.retention_days, config.store.minute_days, config.store.hour_days)


def open_influx(config: ServerConfig, wait_s: float = 0.0) -> Influx:
    """The database. Waits up to ``wait_s`` for a private one's first start to make the account; EnvironmentLacks."""
    deadline_s = time.monotonic() + wait_s
    while True:
        try:
            return _influx(config, config.store.user or USER, config.store.password_file)
        except EnvironmentLacks:
            if time.monotonic() >= deadline_s:
                raise
            time.sleep(0.1)


def open_store(config: ServerConfig, wait_s: float = 0.0) -> SeriesStore:
    """The database with its mirror, for what writes records and for what erases them."""
    database, mirror = open_influx(config, wait_s), config.mirror
    if mirror.url is None or mirror.texts is None:
        return database
    login = None if mirror.user is None else (mirror.user, _secret(mirror.password_file, "[mirror] password_file"))
    days = config.store.retention_days
    return Mirrored(database, Victoria(mirror.url, config.store.database, mirror.texts, days, login))


def open_reader(config: ServerConfig) -> Influx:
    """The database with the account ``reader``, that can change nothing; in an InfluxDB of one's own only where ``[pages] password_file``
    is given, else the account of ``[store]``. EnvironmentLacks."""
    if config.store.kind == "running" and config.pages.password_file is None:
        return open_influx(config)
    return _influx(config, READER, config.pages.password_file, "[pages] password_file")


def reader_or_why(config: ServerConfig) -> Influx | str:
    """The same, or why there is none: a run's manifest and files are shown without it."""
    try:
        return open_reader(config)
    except EnvironmentLacks as error:
        return str(error)


def _influx(config: ServerConfig, user: str, file: Path | None, key: str = "[store] password_file") -> Influx:
    store = config.store
    if store.kind == "running":
        return Influx(store.url or "", store.database, user, _secret(file, key))
    with hinted("start tandem-server serve database", OSError):
        return Influx(f"http://127.0.0.1:{store.port}", store.database, user, account_password(store.folder, user))


def _secret(file: Path | None, key: str) -> str:
    with hinted(f"correct {key}", OSError):
        return "" if file is None else file.read_text().strip()


# --- traces ----------------------------------------------------------------------------------------------------------------


def trace_store(config: ServerConfig) -> TraceStore:
    """Where traces that come now are kept."""
    s3 = config.traces.s3
    if s3 is None:
        return TraceFolder(config.traces.folder)
    return TraceBucket(s3.bucket, s3.prefix, s3.endpoint_url, s3.region, s3.encryption)


class TraceStores:
    """The stores of places, each opened once, also where traces that come now go to another. For several threads: two may open one
    twice, and the later one stays."""

    def __init__(self, config: ServerConfig) -> None:
        self._traces, self._open = config.traces, dict[str, TraceStore]()

    def at(self, place: str) -> TraceStore:
        """The store that has this place."""
        bucket = place.split("/")[2] if is_in_bucket(place) else ""
        if bucket not in self._open:
            s3 = self._traces.s3
            service = (None, None) if s3 is None else (s3.endpoint_url, s3.region)
            self._open[bucket] = TraceBucket(bucket, "", *service) if bucket else TraceFolder(self._traces.folder)
        return self._open[bucket]


def upload_service(config: ServerConfig, registry: Registry) -> UploadService:
    """What the gateway takes traces with; EnvironmentLacks when its folder cannot be made."""
    traces = config.traces
    limits = UploadLimits(
        traces.trace_bytes,
        traces.probe_bytes_per_day,
        traces.unfinished_per_probe,
        traces.unfinished_days,
        traces.reserve_bytes,
    )
    with hinted("let this user write there, or name another [traces] folder", OSError):
        return UploadService(registry, trace_store(config), traces.folder / _UNFINISHED, limits)
