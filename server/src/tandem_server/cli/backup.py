"""``tandem-server backup FOLDER``: registry, database, results and traces of a server that runs, into a folder of its own."""

from __future__ import annotations

import argparse
import shutil
import sqlite3
from argparse import Namespace
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from tandem_server.cli.backup_folder import (
    NAME,
    POOL,
    Kept,
    backups_in,
    copy_whole,
    describe,
    sync_folder,
    write_kept,
)
from tandem_server.cli.config_file import add_config
from tandem_server.cli.configuration import ServerConfig, load
from tandem_server.cli.influx_portable import backup_address, run_influxd
from tandem_server.cli.stop import ConfigError, EnvironmentLacks, with_plain_ends
from tandem_server.cli.stores import private_influx
from tandem_server.registry import Registry, RegistryError


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the subcommand."""
    parser = subparsers.add_parser(
        "backup",
        help="back up registry, database, results and traces while the server runs",
        description="Put a backup named by its time (UTC) into FOLDER, and the traces, which never change, once into FOLDER/traces."
        " Runs beside the server, as root. Not in it: traces in S3, content of DASH (made anew), server.toml (the inventory has it).",
    )
    add_config(parser)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--keep", type=int, default=7, metavar="N", help="so many backups stay, the newest (default 7)")
    parser.add_argument(
        "--also",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="a further file, put back with its owner and mode; may be repeated; one that is not there is told of",
    )
    parser.set_defaults(func=_backup)


@with_plain_ends
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
    _registry(config.registry.file, making / "registry.sqlite")
    also = [
        describe(_beside(file, making / "also" / str(number)), str(file))
        for number, file in enumerate(args.also)
        if _there(file)
    ]
    # The registry first: each trace that it promises is in the pool afterwards, and records that came meanwhile do no harm.
    traces = _traces(making / "registry.sqlite", config.traces.folder, folder / POOL)
    if config.results.folder.is_dir():
        for file in sorted(config.results.folder.rglob("*")):
            if file.is_file():
                copy_whole(file, making / "results" / file.relative_to(config.results.folder))
    if config.store.kind == "private":
        _database(config, making / "database")
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
        _registry(file, to)
    else:
        copy_whole(file, to)
    return file, to


def _registry(file: Path, to: Path) -> None:
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


def _traces(registry: Path, folder: Path, pool: Path) -> int:
    """Copy those that the pool lacks; how many the registry has in the folder."""
    try:
        with Registry(registry, read_only=True) as opened:
            rows = [row for row in opened.traces.received() if not row.place.startswith("s3://")]
    except RegistryError as error:
        raise EnvironmentLacks(str(error)) from error
    for row in rows:
        to = pool / row.place
        if to.is_file() and to.stat().st_size == row.stored_bytes:
            continue
        source = folder / row.place
        if not source.is_file():
            print(f"{source}: the registry has it and the folder has not; tandem-server traces verify tells more")
            continue
        copy_whole(source, to, mode=0o440)
    return len(rows)


def _database(config: ServerConfig, to: Path) -> None:
    """By InfluxDB's own portable backup, over the port on loopback that its configuration names."""
    influx = private_influx(config)
    command = [str(influx.binary), "backup", "-portable", "-database", config.store.database]
    run_influxd([*command, "-host", backup_address(influx.folder), str(to)], "back the database up")
