"""``tandem-server series status|recompute|prepare``: roll-ups for boards, and what a database needs for them (docs/reference/ledger.md)."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import secrets
import time
from argparse import Namespace
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from tandem.schema.rollups import ROLLUPS
from tandem_server.cli.config_file import add_config
from tandem_server.cli.configuration import ServerConfig, load
from tandem_server.cli.series_recompute import recompute
from tandem_server.cli.series_status import status_json, status_lines
from tandem_server.cli.stop import ConfigError, EnvironmentLacks, with_plain_ends
from tandem_server.cli.stores import kept_days, open_registry, open_rolled
from tandem_server.store import Influx, QueryError, StoreDown
from tandem_server.store.preparing import READER, look, prepare, prepare_reader, runs_continuous_queries
from tandem_server.store.private import account_password

_NO_ROLLUPS = '[store] kind "{kind}" has no roll-ups; hint: they need an InfluxDB 1.x ("private" or "running")'


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the subcommand."""
    parser = subparsers.add_parser(
        "series",
        help="roll-ups by the minute and the hour: how far they are, make them again, prepare a database for them",
        description="Roll-ups by the minute and the hour, which boards ask over long times (docs/reference/ledger.md).",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    status = actions.add_parser(
        "status",
        help="how far they are, and what waits",
        description="How far roll-ups are, which hours wait to be made again, and what the database lacks. Exit status 1 when it lacks"
        " something.",
    )
    add_config(status)
    status.add_argument("--json", action="store_true", help="for a machine (docs/reference/ledger.md)")
    status.set_defaults(func=_status)

    again = actions.add_parser(
        "recompute",
        help="make them again of the raw records",
        description="Make roll-ups again of the raw records, whole hours; what is settled and what came late needs none of it. The server"
        " may run meanwhile.",
    )
    add_config(again)
    again.add_argument(
        "--from",
        dest="start",
        type=_utc,
        metavar="TIME",
        help="UTC, as 2026-05-01 or 2026-05-01T12:00; by default the oldest record",
    )
    again.add_argument("--to", dest="end", type=_utc, metavar="TIME", help="likewise; by default now")
    again.add_argument(
        "--measurement",
        action="append",
        choices=sorted(ROLLUPS),
        metavar="M",
        help="only this one; may be given several times",
    )
    again.add_argument("--probe", metavar="P", help="of this probe only")
    again.add_argument("--json", action="store_true", help="progress as JSON lines")
    again.set_defaults(func=_recompute)

    made = actions.add_parser(
        "prepare",
        help="policies, mapping and reader, in an InfluxDB of your own",
        description="Make the database, its retention policies, the mapping that boards ask, and the account reader that can only read, in"
        " an InfluxDB 1.x of your own. A private one is prepared at each start. Safe to call again.",
    )
    add_config(made)
    made.add_argument(
        "--admin-user", default="admin", metavar="NAME", help="an account with all rights (default admin)"
    )
    made.add_argument(
        "--admin-password-file", type=Path, metavar="FILE", help="its password; needed for an InfluxDB of your own"
    )
    made.add_argument(
        "--reader-password-file",
        type=Path,
        metavar="FILE",
        help="give the reader this password; made (mode 0600) when there is no such file",
    )
    made.set_defaults(func=_prepare)


@with_plain_ends
def _status(args: Namespace) -> int:
    config = load(args.config)
    with _rolled(config) as store, open_registry(config) as registry, _plain(store):
        found = look(store)
        if args.json:
            print(json.dumps(status_json(store, found, registry.late), indent=1))
        else:
            for line in status_lines(store, found, registry.late, time.time()):
                print(line)
    return 1 if found.lacks else 0


@with_plain_ends
def _recompute(args: Namespace) -> int:
    config = load(args.config)
    if args.start is not None and args.start >= (args.end or time.time()):
        raise ConfigError("--from is not before --to; hint: times in UTC, the earlier one first")
    with _rolled(config) as store, open_registry(config) as registry, _plain(store):
        if args.probe is not None and args.probe not in {probe.name for probe in registry.probes.all()}:
            raise ConfigError(f"no probe {args.probe!r}; hint: tandem-server probe list")
        only = args.measurement or sorted(ROLLUPS)
        if args.probe is not None:
            only = [name for name in only if "probe" in ROLLUPS[name].tags]
        recompute(registry, store, kept_days(config), only, args.start, args.end, args.probe, as_json=args.json)
    return 0


@with_plain_ends
def _prepare(args: Namespace) -> int:
    config = load(args.config)
    with _rolled(config, admin=args) as admin, _plain(admin):
        prepare(admin, kept_days(config))
        print(f"prepared {admin.database} at {admin.url}")
        if args.reader_password_file is not None:
            if runs_continuous_queries(admin):
                raise EnvironmentLacks(
                    "this InfluxDB runs continuous queries, which an account that may only read can make, and which write;"
                    " hint: [continuous_queries] enabled = false in its configuration"
                )
            prepare_reader(admin, _password(args.reader_password_file))
            print(f"account {READER}: password in {args.reader_password_file}")
    return 0


def _rolled(config: ServerConfig, admin: Namespace | None = None) -> contextlib.closing[Influx]:
    store = open_rolled(config)
    if store is None:
        raise ConfigError(f"{config.file}: {_NO_ROLLUPS.format(kind=config.store.kind)}")
    if admin is None:
        return contextlib.closing(store)
    store.close()
    if admin.admin_password_file is not None:
        password = admin.admin_password_file.read_text().strip()
    elif config.store.kind == "private":
        password = account_password(config.store.folder, "admin")
    else:
        raise ConfigError("an InfluxDB of your own is prepared by its administrator; hint: --admin-password-file FILE")
    return contextlib.closing(Influx(store.url, store.database, admin.admin_user, password))


@contextlib.contextmanager
def _plain(store: Influx) -> Iterator[None]:
    try:
        yield
    except StoreDown as error:
        raise EnvironmentLacks(f"{error}; hint: start the database at {store.url}, or correct the account") from error
    except QueryError as error:
        raise EnvironmentLacks(f"{error}; hint: tandem-server series prepare") from error


def _password(file: Path) -> str:
    """What the file holds, or a new one written to it."""
    try:
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as new:
            new.write(secrets.token_urlsafe(24) + "\n")
    except FileExistsError:
        pass
    password = file.read_text().strip()
    if not password:
        raise ConfigError(f"{file}: no password in it; hint: write one, or remove the file")
    return password


def _utc(text: str) -> int:
    """Seconds since 1970 of an ISO 8601 time, UTC unless it says otherwise."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no time; hint: 2026-05-01 or 2026-05-01T12:00") from error
    return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp())
