"""``tandem-server restore BACKUP``: what `backup` made, into a server that has nothing yet."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import tarfile
from argparse import Namespace
from pathlib import Path

from tandem_server.cli.backup_folder import POOL, Kept, copy_whole, inside, read_kept, sync_folder
from tandem_server.cli.config_file import add_config
from tandem_server.cli.configuration import ServerConfig, load
from tandem_server.cli.influx_portable import (
    await_taken,
    backup_address,
    run_influxd,
    shards_sent,
    shards_taken,
)
from tandem_server.cli.stop import ConfigError, EnvironmentLacks, with_plain_ends
from tandem_server.cli.stores import private_influx
from tandem_server.registry import Registry, RegistryError
from tandem_server.store import QueryError, StoreDown
from tandem_server.store.preparing import READER
from tandem_server.store.private import USER
from tandem_server.store.rollup_queries import quoted


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the subcommand."""
    parser = subparsers.add_parser(
        "restore",
        help="put a backup into a server that has nothing yet",
        description="Put BACKUP (FOLDER/TIME, with FOLDER/traces beside it) into a fresh server: tandem-database runs, the other services"
        " do not. As root. A server that has probes or records is left alone. Tokens that were revoked or replaced after the backup are"
        " good again: rotate or revoke those.",
    )
    add_config(parser)
    parser.add_argument("backup", type=Path, metavar="BACKUP")
    parser.set_defaults(func=_restore)


@with_plain_ends
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
    placed = _traces(backup, config.traces.folder)
    placed += _tree(backup / "results", config.results.folder)
    if kept.database is not None:
        if config.store.kind != "private":
            raise ConfigError(
                'the backup has a private database and [store] kind is another; hint: kind = "private", or restore yours by itself'
            )
        _database(config, backup / "database", kept.database)
    for one in kept.also:
        target = Path(one.path)
        copy_whole(backup / one.file, target, one.mode)
        shutil.chown(target, one.owner, one.group)
    # The registry last: it is what makes this server one that has something.
    for ending in ("-wal", "-shm"):
        config.registry.file.with_name(config.registry.file.name + ending).unlink(missing_ok=True)
    copy_whole(backup / "registry.sqlite", config.registry.file)
    with Registry(config.registry.file) as registry:
        registry.trace_tables.again()  # tables of captures are in no backup: they are made again
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
    mend = "hint: restore into a fresh server; nothing was changed"
    if config.registry.file.is_file():
        try:
            with Registry(config.registry.file) as registry:
                if registry.probes.all():
                    raise ConfigError(f"{config.registry.file} has probes; {mend}")
        except RegistryError as error:
            raise EnvironmentLacks(str(error)) from error
    if again or config.store.kind != "private":
        return
    try:
        with contextlib.closing(private_influx(config).client("admin")) as admin:
            if any(series.rows for series in admin.query('SHOW TAG VALUES WITH KEY = "probe"')):
                raise ConfigError(f"the database {config.store.database} has records of probes; {mend}")
    except (OSError, StoreDown, QueryError) as error:
        raise EnvironmentLacks(
            f"the database does not answer ({error}); hint: systemctl start tandem-database"
        ) from error


def _whole_pool(backup: Path, kept: Kept) -> None:
    with Registry(backup / "registry.sqlite", read_only=True) as registry:
        rows = [row for row in registry.traces.received() if not row.place.startswith("s3://")]
    pool = backup.parent / POOL
    lacking = [
        row for row in rows if not (pool / row.place).is_file() or (pool / row.place).stat().st_size != row.stored_bytes
    ]
    if len(rows) != kept.traces:
        raise ConfigError(
            f"{backup}: {kept.traces} traces promised, {len(rows)} in its registry; hint: use another backup"
        )
    for row in lacking:
        print(f"{pool / row.place}: not there or not whole; the ledger will say that it is missing")


def _traces(backup: Path, folder: Path) -> list[Path]:
    with Registry(backup / "registry.sqlite", read_only=True) as registry:
        places = [inside(row.place) for row in registry.traces.received() if not row.place.startswith("s3://")]
    made = []
    for place in places:
        source, to = backup.parent / POOL / place, folder / place
        if source.is_file() and not to.is_file():
            made += [to, *_parents(to, folder)]
            copy_whole(source, to, 0o440)
    return made


def _tree(source: Path, folder: Path) -> list[Path]:
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


def _database(config: ServerConfig, source: Path, name: str) -> None:
    influx, database = private_influx(config), quoted(config.store.database)
    try:
        with contextlib.closing(influx.client("admin")) as admin:
            admin.query(f"DROP DATABASE {database}")  # without a probe's record: it was looked at
            command = [str(influx.binary), "restore", "-portable", "-db", name, "-newdb", config.store.database]
            address = backup_address(influx.folder)
            run_influxd([*command, "-host", address, str(source)], "restore the database")
            await_taken(address)
            sent, taken = shards_sent(source), shards_taken(influx.folder, config.store.database)
            if taken < sent:  # it tells nobody when it could not keep one
                raise EnvironmentLacks(
                    f"influxd kept {taken} of {sent} shards; hint: make room, see {influx.folder / 'influxd.log'}, and restore again"
                )
            # With the database went the accounts' rights on it.
            admin.query(f"GRANT ALL ON {database} TO {USER}")
            admin.query(f"GRANT READ ON {database} TO {READER}")
    except (OSError, tarfile.TarError, StoreDown, QueryError) as error:
        raise EnvironmentLacks(
            f"the database cannot be restored ({error}); hint: start it, make room, and try again"
        ) from error
