"""``[store]`` of server.toml: which database, and what each kind of it needs."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tandem_server.cli.stop import ConfigError

_DATABASE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}\Z")
_MOST_DAYS = 36_500
"""The database counts in nanoseconds: much more than this it cannot."""
_NEEDED = {
    "private": (),
    "running": ("url", "user", "password_file"),
    "influxdb2": ("url", "org", "token_file"),
    "victoriametrics": ("url", "texts"),
}
_OF_KIND = {
    "binary": ("private",),
    "backup_port": ("private",),
    "url": ("running", "influxdb2", "victoriametrics"),
    "user": ("running", "victoriametrics"),
    "password_file": ("running", "victoriametrics"),
    "org": ("influxdb2",),
    "token_file": ("influxdb2",),
    "texts": ("victoriametrics",),
    "minute_days": ("private", "running"),
    "hour_days": ("private", "running"),
}


@dataclass(frozen=True, slots=True)
class Store:
    """``private``: ``binary`` (else looked for), ``folder``, ``port``, ``backup_port`` (where ``influxd`` hands out and takes backups, on
    loopback and without asking who it is: a firewall must; None: another free one at each start).
    ``running`` (InfluxDB 1.x): ``url``, ``user``, ``password_file``.
    ``influxdb2``: ``url``, ``org``, ``token_file``; ``database`` is the bucket. ``victoriametrics``: ``url``, ``user`` and
    ``password_file``
    where it asks for them, and ``texts`` = "labels" or "dropped": what becomes of fields that are text, since it holds numbers only.
    ``retention_days``: of raw records; ``minute_days``, ``hour_days``: of roll-ups (docs/reference/ledger.md). None: for ever."""

    kind: Literal["private", "running", "influxdb2", "victoriametrics"] = "private"
    binary: Path | None = None
    folder: Path = Path("influxdb")
    port: int = 8086
    backup_port: int | None = None
    url: str | None = None
    user: str | None = None
    password_file: Path | None = None
    org: str | None = None
    token_file: Path | None = None
    texts: Literal["labels", "dropped"] | None = None
    database: str = "tandem"
    retention_days: int | None = None
    minute_days: int | None = None
    hour_days: int | None = None


def check_store(store: Store, where: Callable[[str | None], str]) -> None:
    """ConfigError unless the section is whole. ``where``: file and line of one of its keys."""
    if not _DATABASE.match(store.database):
        raise ConfigError(f"{where('database')}: [store] database is {store.database!r}; hint: letters, digits, _")
    for key in ("retention_days", "minute_days", "hour_days"):
        days = getattr(store, key)
        if days is not None and not 7 <= days <= _MOST_DAYS:
            raise ConfigError(f"{where(key)}: [store] {key} is {days}; hint: 7 or more, or leave it out for ever")
    for key in _NEEDED[store.kind]:
        if getattr(store, key) is None:
            raise ConfigError(f'{where(None)}: [store] kind "{store.kind}" needs {key}; hint: add it')
    for key, kinds in _OF_KIND.items():
        if getattr(store, key) is not None and store.kind not in kinds:
            raise ConfigError(f'{where(key)}: [store] {key} is not for kind "{store.kind}"; hint: leave it out')
    if store.backup_port == store.port:
        raise ConfigError(f"{where('backup_port')}: [store] port and backup_port are the same; hint: give each its own")
    if (store.user is None) != (store.password_file is None):
        raise ConfigError(f"{where(None)}: [store] user and password_file belong together; hint: add the other")
    if store.url is not None and not re.match(r"https?://[^/\s]+\Z", store.url.rstrip("/")):
        raise ConfigError(f"{where('url')}: [store] url is {store.url!r}; hint: http://HOST:PORT")
