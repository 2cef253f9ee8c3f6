"""``tandem-server series status|recompute|prepare``: roll-ups for boards, and what a database needs for them."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import secrets
import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tandem_server.cli.command import Actions, ConfigError, EnvironmentLacks, add_command, check_probe, utc_ns
from tandem_server.cli.configuration import ServerConfig, load
from tandem_server.cli.stores import LONG_STATEMENT_S, kept_days, open_influx, open_registry
from tandem_server.derived.rollups import DAY_S, FRESH, HOUR_S, LOCK, Rollups, Span
from tandem_server.registry import CONSUMERS, BackfillQueue, Registry
from tandem_server.schema.rollups import ROLLUPS
from tandem_server.store import Influx
from tandem_server.store.preparing import (
    READER,
    Kept,
    Prepared,
    look,
    made_by,
    prepare,
    prepare_reader,
    runs_continuous_queries,
)
from tandem_server.store.private import account_password
from tandem_server.utc import MINUTE, utc

_SHOWN_EVERY_S = 5.0


def add(commands: Actions[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "series",
        help="roll-ups by the minute and the hour: how far they are, make them again, prepare a database for them",
        description="Roll-ups by the minute and the hour, which boards ask over long times (docs/reference/ledger.md).",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    add_command(
        actions,
        "status",
        _status,
        "how far they are, and what waits",
        "How far roll-ups are, which hours wait to be made again, and what the database lacks. Exit status 1 when it lacks something.",
        json="for a machine (docs/reference/ledger.md)",
    )
    again = add_command(
        actions,
        "recompute",
        _recompute,
        "make them again of the raw records",
        "Make roll-ups again of the raw records, whole hours; what is settled and what came late needs none of it. The server"
        " may run meanwhile.",
        json="progress as JSON lines",
    )
    again.add_argument(
        "--from",
        dest="start",
        metavar="TIME",
        help="UTC, as 2026-05-01 or 2026-05-01T12:00; by default the oldest record",
    )
    again.add_argument("--to", dest="end", metavar="TIME", help="likewise; by default now")
    again.add_argument(
        "--measurement",
        action="append",
        choices=sorted(ROLLUPS),
        metavar="M",
        help="only this one; may be given several times",
    )
    again.add_argument("--probe", metavar="P", help="of this probe only")
    made = add_command(
        actions,
        "prepare",
        _prepare,
        "policies, mapping and reader, in an InfluxDB of your own",
        "Make the database, its retention policies, the mapping that boards ask, and the account reader that can only read, in"
        " an InfluxDB 1.x of your own. A private one is prepared at each start. Safe to call again.",
    )
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


def _status(args: Namespace) -> int:
    config = load(args.config)
    with contextlib.closing(open_influx(config)) as store, open_registry(config) as registry:
        found = look(store)
        status = _to_dict(store, found, registry.late)
    if args.json:
        print(json.dumps(status, indent=1))
    else:
        for line in _lines(status, time.time()):
            print(line)
    return 1 if found.lacks else 0


def _recompute(args: Namespace) -> int:
    config = load(args.config)
    start_ns, end_ns = utc_ns("--from", args.start), utc_ns("--to", args.end)
    if start_ns is not None and start_ns >= (end_ns or time.time_ns()):
        raise ConfigError("--from is not before --to; hint: times in UTC, the earlier one first")
    store = open_influx(config).patient(LONG_STATEMENT_S)
    with contextlib.closing(store), open_registry(config) as registry:
        check_probe(registry, args.probe)
        only = args.measurement or sorted(ROLLUPS)
        if args.probe is not None:
            only = [name for name in only if "probe" in ROLLUPS[name].tags]
        start_s, end_s = (None if at is None else at // 10**9 for at in (start_ns, end_ns))
        recompute(registry, store, kept_days(config), only, start_s, end_s, args.probe, as_json=args.json)
    return 0


def _prepare(args: Namespace) -> int:
    config = load(args.config)
    with contextlib.closing(_administrator(config, args)) as admin:
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


def _administrator(config: ServerConfig, args: Namespace) -> Influx:
    store = open_influx(config)
    if args.admin_password_file is not None:
        password = args.admin_password_file.read_text().strip()
    elif config.store.kind == "private":
        password = account_password(config.store.folder, "admin")
    else:
        raise ConfigError("an InfluxDB of your own is prepared by its administrator; hint: --admin-password-file FILE")
    return Influx(store.url, store.database, args.admin_user, password, LONG_STATEMENT_S)


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


def recompute(
    registry: Registry,
    store: Influx,
    kept: Kept,
    only: Sequence[str],
    start_s: int | None,
    end_s: int | None,
    probe: str | None,
    *,
    as_json: bool,
) -> None:
    """Roll-ups of ``only`` from ``start_s`` (the oldest record) to ``end_s`` (now), seconds since 1970 UTC. StoreDown, QueryError."""
    rollups = Rollups(registry, store, kept, only)
    now_s = time.time()
    last_s = -(-int(now_s if end_s is None else end_s) // HOUR_S) * HOUR_S
    spans: list[Span] = []
    for measurement in only:
        first_s = rollups.oldest(measurement, last_s) if start_s is None else start_s // HOUR_S * HOUR_S
        days = range(first_s, last_s, DAY_S)
        spans.extend(Span(measurement, at_s, min(at_s + DAY_S, last_s), probe) for at_s in days)
    spans.sort(key=lambda span: -span.start_s)  # people look at what is new
    shown_s = 0.0
    for number, span in enumerate(spans):
        with registry.locked(LOCK, wait=True):  # the worker has its turn: a round of a few seconds
            rollups.make(span, now_s)
        if as_json or time.monotonic() - shown_s >= _SHOWN_EVERY_S:
            _show(span, number + 1, len(spans), as_json=as_json)
            shown_s = time.monotonic()
    if as_json:
        print(json.dumps({"format": "tandem-series-recompute/1", "done": True, "pieces": len(spans)}), flush=True)
    else:
        print(f"made again: {len(only)} measurements, {len(spans)} pieces, {time.time() - now_s:.0f} s")


def _show(span: Span, done: int, of: int, *, as_json: bool) -> None:
    if as_json:
        piece = {"measurement": span.measurement, "from_utc_s": span.start_s, "to_utc_s": span.end_s}
        print(
            json.dumps({"format": "tandem-series-recompute/1", "pieces_done": done, "pieces": of, **piece}), flush=True
        )
        return
    day = utc(span.start_s * 10**9, MINUTE)
    print(f"{100 * done // of:3} %  {span.measurement} from {day}", file=sys.stderr, flush=True)


def _to_dict(store: Influx, found: Prepared, late: BackfillQueue) -> dict[str, Any]:
    """``tandem-series/1`` (docs/reference/ledger.md). sqlite3.Error."""
    settled = late.settled()
    fresh = settled.get(FRESH)
    waiting = {consumer: late.waiting(consumer) for consumer in CONSUMERS}
    return {
        "format": "tandem-series/1",
        "url": store.url,
        "database": store.database,
        "policies": found.policies,
        "mapping": found.mapping,
        "lacks": found.lacks,
        "fresh_utc_s": None if fresh is None else fresh.through_utc_s,
        "settled": {
            name: settled[name].through_utc_s if name in settled and settled[name].made_by == made_by(name) else None
            for name in ROLLUPS
        },
        "late": {consumer: {"hours": hours, "noted_utc_ns": noted} for consumer, (hours, noted) in waiting.items()},
    }


def _lines(status: dict[str, Any], now_s: float) -> list[str]:
    """The same for people."""
    lines = [f"database  {status['database']} at {status['url']}"]
    for policy, duration in status["policies"].items():
        lines.append(f"policy    {policy}: {'for ever' if duration == '0s' else duration}")
    if status["lacks"]:
        lines.append(f"LACKS     {', '.join(status['lacks'])}; hint: tandem-server series prepare")
    fresh = status["fresh_utc_s"]
    lines.append(
        f"minutes   {'none made yet' if fresh is None else f'made up to {_minute(fresh)}'}{_behind(fresh, now_s)}"
    )
    begun = {name: through for name, through in status["settled"].items() if through is not None}
    if begun:
        furthest = min(begun, key=lambda name: begun[name])
        lines.append(f"settled   all up to {_minute(begun[furthest])} (furthest behind: {furthest})")
    if len(begun) < len(ROLLUPS):
        lines.append(f"settled   {len(ROLLUPS) - len(begun)} of {len(ROLLUPS)} measurements not begun")
    for consumer, of in status["late"].items():
        since = "" if of["noted_utc_ns"] is None else f", the first noted {utc(of['noted_utc_ns'], MINUTE)}"
        lines.append(f"late      {consumer}: {of['hours']} hours of a probe and measurement wait{since}")
    return lines


def _behind(fresh: int | None, now_s: float) -> str:
    return (
        f": {int(now_s - fresh) // 60} minutes ago; does the worker run?"
        if fresh is not None and now_s - fresh > 300
        else ""
    )


def _minute(utc_s: int) -> str:
    return utc(utc_s * 10**9, MINUTE)
