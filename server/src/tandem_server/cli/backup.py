"""``tandem-server backup FOLDER`` and ``restore BACKUP``: registry, database, results and traces of a server that runs, into a folder, and
back into a server that has nothing yet.

A backup as files: ``FOLDER/traces`` (the pool) and ``FOLDER/TIME`` with ``backup.json``, which names each file with its hash.
"""

from __future__ import annotations

import argparse
import contextlib
import grp
import json
import os
import pwd
import re
import shutil
import sqlite3
import stat
import subprocess
import tarfile
import time
from argparse import Namespace
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import tandem_server
from tandem_server.cli.command import Actions, ConfigError, EnvironmentLacks, add_command, hinted
from tandem_server.cli.configuration import ServerConfig, load
from tandem_server.cli.stores import private_influx
from tandem_server.durable import sha256_of, sync, whole_file
from tandem_server.registry import Registry, TraceRow
from tandem_server.store import QueryError, StoreDown
from tandem_server.store.influx import quoted
from tandem_server.store.preparing import READER
from tandem_server.store.private import USER

FORMAT = "tandem-backup/1"
NAME = "%Y%m%dT%H%M%SZ"
"""A backup's folder: when it was begun, UTC."""
POOL = "traces"
_LIST = "backup.json"
_IN_USE = {"01", "03", "08"}
"""ESTABLISHED, SYN_RECV, CLOSE_WAIT, as in Linux's include/net/tcp_states.h: a connection that its own end has not closed."""
_LOOK_EVERY_S = 0.02


def add(commands: Actions[argparse.ArgumentParser]) -> None:
    """Register the commands."""
    backup = add_command(
        commands,
        "backup",
        _backup,
        "back up registry, database, results and traces while the server runs",
        "Put a backup named by its time (UTC) into FOLDER, and the traces, which never change, once into FOLDER/traces."
        " Runs beside the server, as root. Not in it: traces in S3, content of DASH (made anew), server.toml (the inventory has it).",
    )
    backup.add_argument("folder", type=Path, metavar="FOLDER")
    backup.add_argument("--keep", type=int, default=7, metavar="N", help="so many backups stay, the newest (default 7)")
    backup.add_argument(
        "--also",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="a further file, put back with its owner and mode; may be repeated; one that is not there is named",
    )
    restore = add_command(
        commands,
        "restore",
        _restore,
        "put a backup into a server that has nothing yet",
        "Put BACKUP (FOLDER/TIME, with FOLDER/traces beside it) into a fresh server: tandem-database runs, the other services"
        " do not. As root. A server that has probes or records is left alone. Tokens that were revoked or replaced after the backup are"
        " good again: rotate or revoke those.",
    )
    restore.add_argument("backup", type=Path, metavar="BACKUP")


# --- Backup ----------------------------------------------------------------------------------------------------------------


def _backup(args: Namespace) -> int:
    if args.keep < 1:
        raise ConfigError(f"--keep {args.keep}; hint: 1 or more")
    config = load(args.config)
    folder: Path = args.folder
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder.chmod(0o700)
    for left in folder.glob(".*.tmp"):  # what was interrupted
        shutil.rmtree(left)
    name = datetime.now(UTC).strftime(NAME)
    making = folder / f".{name}.tmp"
    making.mkdir(mode=0o700)
    _copy_sqlite(config.registry.file, making / "registry.sqlite")
    also = [
        describe(_beside(file, making / "also" / str(number)), str(file))
        for number, file in enumerate(args.also)
        if _there(file)
    ]
    # The registry first: each trace that it promises is in the pool afterwards, and records that came meanwhile do no harm.
    traces = _pool_traces(making / "registry.sqlite", config.traces.folder, folder / POOL)
    if config.results.folder.is_dir():
        for file in sorted(config.results.folder.rglob("*")):
            if file.is_file():
                copy_whole(file, making / "results" / file.relative_to(config.results.folder))
    if config.store.kind == "private":
        _backup_database(config, making / "database")
    write_kept(making, Kept(name, config.store.database if config.store.kind == "private" else None, traces, also))
    sync_folder(making)
    making.rename(folder / name)
    sync_folder(folder)
    for old in backups_in(folder)[: -args.keep]:
        shutil.rmtree(old)
    print(f"{folder / name}: {traces} traces")
    if config.store.kind != "private":
        print("the database is not the private one: back it up where it runs")
    return 0


def _there(file: Path) -> bool:
    if not file.exists():
        print(f"{file}: not there, not in the backup")
    return file.exists()


def _beside(file: Path, to: Path) -> tuple[Path, Path]:
    """Copy ``file``; a database of SQLite as a whole state, however it is being written."""
    with file.open("rb") as opened:
        is_sqlite = opened.read(16) == b"SQLite format 3\0"
    if is_sqlite:
        _copy_sqlite(file, to)
    else:
        copy_whole(file, to)
    return file, to


def _copy_sqlite(file: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    if not file.is_file():
        raise EnvironmentLacks(f"{file}: no such file; hint: start the gateway once, or correct server.toml")
    try:
        uri = f"{file.resolve().as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, timeout=60)) as source, closing(sqlite3.connect(to)) as copy:
            source.backup(copy, pages=4096)
            copy.execute("PRAGMA journal_mode = DELETE")  # one file, without -wal beside it
    except sqlite3.Error as error:
        raise EnvironmentLacks(f"{file}: {error}; hint: run this as root, and make room") from error
    to.chmod(0o600)


def _pool_traces(registry: Path, folder: Path, pool: Path) -> int:
    """Copy those that the pool lacks; how many the registry has in the folder."""
    rows = _in_folder(registry)
    for row in rows:
        to = pool / row.place
        if to.is_file() and to.stat().st_size == row.stored_bytes:
            continue
        source = folder / row.place
        if not source.is_file():
            print(f"{source}: the registry has it and the folder has not; tandem-server traces verify shows more")
            continue
        copy_whole(source, to, mode=0o440)
    return len(rows)


def _backup_database(config: ServerConfig, to: Path) -> None:
    """By InfluxDB's own portable backup, over the port on loopback that its configuration names."""
    influx = private_influx(config)
    command = [str(influx.binary), "backup", "-portable", "-database", config.store.database]
    run_influxd([*command, "-host", backup_address(influx.folder), str(to)], "back the database up")


def _in_folder(registry: Path) -> list[TraceRow]:
    """Traces that the registry in this file has outside of S3."""
    with Registry(registry, read_only=True) as opened:
        return [row for row in opened.traces.received() if not row.place.startswith("s3://")]


# --- Restore --------------------------------------------------------------------------------------------------------------


def _restore(args: Namespace) -> int:
    config = load(args.config)
    backup: Path = args.backup
    kept = read_kept(backup)
    state = config.registry.file.parent
    begun = state / ".restoring"
    again = begun.is_file() and begun.read_text() == kept.name
    _look_empty(config, again=again)
    _whole_pool(backup, kept)
    begun.write_text(kept.name)
    owner = state.stat()
    placed = _put_back_traces(backup, config.traces.folder)
    placed += _put_back_tree(backup / "results", config.results.folder)
    if kept.database is not None:
        if config.store.kind != "private":
            raise ConfigError(
                'the backup has a private database and [store] kind is another; hint: kind = "private", or restore yours by itself'
            )
        _restore_database(config, backup / "database", kept.database)
    for one in kept.also:
        target = Path(one.path)
        copy_whole(backup / one.file, target, one.mode)
        shutil.chown(target, one.owner, one.group)
    # The registry last: it is what makes this server one that has something.
    for ending in ("-wal", "-shm"):
        config.registry.file.with_name(config.registry.file.name + ending).unlink(missing_ok=True)
    copy_whole(backup / "registry.sqlite", config.registry.file)
    with Registry(config.registry.file) as registry:
        # Tables of captures and samples of runs are in no backup: they are made again.
        registry.trace_tables.again()
        registry.ledger_runs.sample_again()
    for path in (*placed, config.registry.file):
        os.chown(path, owner.st_uid, owner.st_gid)
    sync_folder(state)
    begun.unlink()
    print(
        f"{kept.name} is back: {kept.traces} traces. Whose token was revoked or replaced since then: rotate or revoke it now"
    )
    return 0


def _look_empty(config: ServerConfig, *, again: bool) -> None:
    """ConfigError where there is something already, unless an interrupted restoration of the same backup put it there."""
    hint = "hint: restore into a fresh server; nothing was changed"
    if config.registry.file.is_file():
        with Registry(config.registry.file) as registry:
            if registry.probes.all():
                raise ConfigError(f"{config.registry.file} has probes; {hint}")
    if again or config.store.kind != "private":
        return
    database_down = hinted("systemctl start tandem-database", OSError, StoreDown, QueryError)
    with database_down, contextlib.closing(private_influx(config).client("admin")) as admin:
        found = any(series.rows for series in admin.query('SHOW TAG VALUES WITH KEY = "probe"'))
    if found:
        raise ConfigError(f"the database {config.store.database} has records of probes; {hint}")


def _whole_pool(backup: Path, kept: Kept) -> None:
    rows, pool = _in_folder(backup / "registry.sqlite"), backup.parent / POOL
    lacking = [
        row for row in rows if not (pool / row.place).is_file() or (pool / row.place).stat().st_size != row.stored_bytes
    ]
    if len(rows) != kept.traces:
        raise ConfigError(
            f"{backup}: {kept.traces} traces promised, {len(rows)} in its registry; hint: use another backup"
        )
    for row in lacking:
        print(f"{pool / row.place}: not there or not whole; the ledger will say that it is missing")


def _put_back_traces(backup: Path, folder: Path) -> list[Path]:
    made = []
    for place in (inside(row.place) for row in _in_folder(backup / "registry.sqlite")):
        source, to = backup.parent / POOL / place, folder / place
        if source.is_file() and not to.is_file():
            made += [to, *_parents(to, folder)]
            copy_whole(source, to, 0o440)
    return made


def _put_back_tree(source: Path, folder: Path) -> list[Path]:
    made = []
    for path in sorted(source.rglob("*")):
        if path.is_file():
            to = folder / path.relative_to(source)
            made += [to, *_parents(to, folder)]
            copy_whole(path, to)
    return made


def _parents(path: Path, folder: Path) -> list[Path]:
    """The folders between, ``folder`` among them: they are the service's, too."""
    return [folder, *(parent for parent in path.parents if folder in parent.parents)]


def _restore_database(config: ServerConfig, source: Path, name: str) -> None:
    influx, database = private_influx(config), quoted(config.store.database)
    with (
        hinted("start the database, make room, and try again", OSError, tarfile.TarError, StoreDown, QueryError),
        contextlib.closing(influx.client("admin")) as admin,
    ):
        admin.query(f"DROP DATABASE {database}")  # without a probe's record: it was looked at
        command = [str(influx.binary), "restore", "-portable", "-db", name, "-newdb", config.store.database]
        address = backup_address(influx.folder)
        run_influxd([*command, "-host", address, str(source)], "restore the database")
        await_taken(address)
        sent, taken = shards_sent(source), shards_taken(influx.folder, config.store.database)
        if taken < sent:  # it reports nothing when it could not keep one
            raise EnvironmentLacks(
                f"influxd kept {taken} of {sent} shards; hint: make room, see {influx.folder / 'influxd.log'}, and restore again"
            )
        # With the database went the accounts' rights on it.
        admin.query(f"GRANT ALL ON {database} TO {USER}")
        admin.query(f"GRANT READ ON {database} TO {READER}")


# --- The files of a backup ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Also:
    """A further file: ``file`` inside the backup, ``path`` where it belongs; owner and group by name."""

    file: str
    path: str
    owner: str
    group: str
    mode: int


@dataclass(frozen=True, slots=True)
class Kept:
    """What a backup says of itself. ``database``: its name, None where it was not the private one; ``traces``: how many the registry
    has in the folder."""

    name: str
    database: str | None
    traces: int
    also: list[Also]


def describe(copied: tuple[Path, Path], path: str) -> Also:
    """How the original of a copy is owned."""
    source, copy = copied
    of = source.stat()
    return Also(
        f"also/{copy.name}",
        path,
        pwd.getpwuid(of.st_uid).pw_name,
        grp.getgrgid(of.st_gid).gr_name,
        stat.S_IMODE(of.st_mode),
    )


def backups_in(folder: Path) -> list[Path]:
    """Those that are whole, the oldest first."""
    return sorted(path for path in folder.iterdir() if _is_name(path.name) and (path / _LIST).is_file())


def copy_whole(source: Path, to: Path, mode: int = 0o600) -> None:
    """There whole or not at all, and on the disk."""
    with source.open("rb") as reading, whole_file(to, mode) as writing:
        shutil.copyfileobj(reading, writing, 1024 * 1024)


def sync_folder(folder: Path) -> None:
    """Its names, and what is below it, are on the disk."""
    for path in (folder, *folder.rglob("*")):
        sync(path)


def write_kept(folder: Path, kept: Kept) -> None:
    """``backup.json``, last: a backup without it is none."""
    files = {
        str(path.relative_to(folder)): {"bytes": path.stat().st_size, "sha256": sha256_of(path)}
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    content = {"format": FORMAT, "version": tandem_server.__version__, **asdict(kept), "files": files}
    (folder / _LIST).write_text(json.dumps(content, indent=1) + "\n")


def read_kept(folder: Path) -> Kept:
    """The backup in ``folder``, each file's hash looked at; ConfigError when it is none or not whole."""
    file = folder / _LIST
    try:
        content = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(
            f"{file}: {error}; hint: name a folder that `tandem-server backup` made, with its time as its name"
        ) from None
    try:
        kept, files = _read(content)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigError(f"{file}: not of the format {FORMAT} ({error!r}); hint: use another backup") from None
    for name, (size, sha256) in files.items():
        path = folder / name
        if not path.is_file() or path.stat().st_size != size or sha256_of(path) != sha256:
            raise ConfigError(f"{path}: not as it was backed up; hint: copy the backup anew, or use another one")
    return kept


def _read(content: dict[str, Any]) -> tuple[Kept, dict[str, tuple[int, str]]]:
    if content["format"] != FORMAT:
        raise ValueError(content["format"])
    also = [
        Also(inside(a["file"]), str(Path("/") / a["path"]), str(a["owner"]), str(a["group"]), int(a["mode"]) & 0o7777)
        for a in content["also"]
    ]
    files = {inside(name): (int(of["bytes"]), str(of["sha256"])) for name, of in content["files"].items()}
    for one in also:
        if one.file not in files:
            raise ValueError(one.file)
    database = content["database"]
    if database is not None and not isinstance(database, str):
        raise TypeError(database)
    return Kept(str(content["name"]), database, int(content["traces"]), also), files


def inside(name: str) -> str:
    """A name that stays in the backup; ValueError."""
    path = Path(name)
    if path.is_absolute() or ".." in path.parts or "\0" in name or not path.parts:
        raise ValueError(name)
    return name


def _is_name(name: str) -> bool:
    try:
        datetime.strptime(name, NAME)  # noqa: DTZ007  (only whether it is one)
    except ValueError:
        return False
    return True


# --- InfluxDB's own portable backup ---------------------------------------------------------------------------------------


def backup_address(folder: Path) -> str:
    """Where the running database listens for backups; EnvironmentLacks."""
    try:
        found = re.search(r'^bind-address = "([^"]+)"', (folder / "influxd.conf").read_text(), re.MULTILINE)
    except OSError as error:
        raise EnvironmentLacks(
            f"{error.filename}: {error.strerror}; hint: start tandem-database, and run this as root"
        ) from error
    if found is None:
        raise EnvironmentLacks(f"{folder / 'influxd.conf'} names no bind-address; hint: start tandem-database anew")
    return found[1]


def run_influxd(command: list[str], what: str) -> None:
    """Run influxd to its end; EnvironmentLacks with its last words."""
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        words = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        raise EnvironmentLacks(
            f"influxd could not {what} ({words[-1] if words else 'it says nothing'}); hint: see that tandem-database runs"
        )


def open_connections(port: int, table: Path = Path("/proc/net/tcp")) -> int:
    """How many connections to the listener on ``port`` (IPv4) it has not closed, in this network namespace."""
    rows = [line.split() for line in table.read_text().splitlines()[1:]]
    return sum(int(row[1].rpartition(":")[2], 16) == port and row[3] in _IN_USE for row in rows)


def await_taken(address: str, within_s: float = 3600.0) -> None:
    """Wait until the database has taken what `influxd restore` sent it; EnvironmentLacks.

    That program ends when it has sent: a shard is answered by nothing, and shows no point before the database has read it, put it in
    place and closed its end of the connection.
    """
    port = int(address.rpartition(":")[2])
    deadline_s = time.monotonic() + within_s
    while open_connections(port) > 0:
        if time.monotonic() > deadline_s:
            raise EnvironmentLacks(
                f"influxd still reads from {address} after {within_s:.0f} s; hint: end what else uses it"
            )
        time.sleep(_LOOK_EVERY_S)


def shards_sent(backup: Path) -> int:
    """How many shards of a portable backup hold points. OSError, tarfile.TarError."""
    found = 0
    for file in sorted(backup.glob("*.tar.gz")):
        with tarfile.open(file) as archive:
            found += any(name.endswith(".tsm") for name in archive.getnames())
    return found


def shards_taken(folder: Path, database: str) -> int:
    """How many shards of the database in ``folder`` hold points on the disk."""
    return len({file.parent for file in (folder / "data" / database).glob("*/*/*.tsm")})
