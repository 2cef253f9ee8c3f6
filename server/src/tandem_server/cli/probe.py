"""``tandem-server probe add|list|rotate|revoke``: who may send and measure; others are in probe_enrolment, probe_last and probe_erase."""

from __future__ import annotations

import argparse
import contextlib
import json
import sqlite3
import time
from argparse import Namespace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tandem_server.cli.config_file import add_config
from tandem_server.cli.configuration import ServerConfig, load
from tandem_server.cli.probe_enrolment import add_actions, keep_peers
from tandem_server.cli.probe_erase import add_action as add_erase
from tandem_server.cli.probe_last import add_action
from tandem_server.cli.secret_place import SecretPlace
from tandem_server.cli.stop import ConfigError, EnvironmentLacks, with_plain_ends
from tandem_server.cli.stores import open_registry, open_store
from tandem_server.ledger.as_json import probe_json
from tandem_server.ledger.records import RecordCounts
from tandem_server.ledger.table import probe_line
from tandem_server.ledger.watching import probes_now
from tandem_server.registry import Enrolment, Registry
from tandem_server.report.words import visible
from tandem_server.store import QueryError, StoreDown

_LONGEST_OVERLAP_S = 30 * 86_400


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the subcommand."""
    parser = subparsers.add_parser(
        "probe", help="register probes and their tokens", description="Register probes and their tokens."
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for action, text in (
        ("add", "register a probe; prints its token, once"),
        ("rotate", "give a probe a new token; the old one is void at once, or after --keep-old-for"),
        ("revoke", "void a probe's token, code and place in the tunnel; what it sent stays"),
        ("list", "list the probes, each with its state and since when"),
    ):
        sub = actions.add_parser(action, help=text, description=text[0].upper() + text[1:] + ".")
        add_config(sub)
        if action != "list":
            sub.add_argument("name", metavar="NAME", help="lower-case letters, digits and inner hyphens")
        if action in ("add", "rotate"):
            sub.add_argument(
                "--token-file", type=Path, metavar="PATH", help="write the token there (mode 0600), do not print it"
            )
        if action == "rotate":
            sub.add_argument(
                "--keep-old-for",
                type=_seconds,
                default=0.0,
                metavar="SECONDS",
                help="the old token works so long beside the new one, at most 30 days: for a probe in the field (default 0)",
            )
        if action == "revoke":
            keeps = "it stays in the tunnel, to be reached and wiped; revoke it again without this to take that away"
            sub.add_argument("--keep-peer", action="store_true", help=keeps)
        if action in ("list", "revoke"):
            sub.add_argument("--json", action="store_true", help="as JSON")
        sub.set_defaults(func=_probe)
    add_actions(actions)
    add_action(actions)
    add_erase(actions)


@with_plain_ends
def _probe(args: Namespace) -> int:
    config = load(args.config)
    with open_registry(config) as registry:
        try:
            if args.action == "list":
                _list(args.json, _rows(registry, config))
            elif args.action == "revoke":
                changed = registry.probes.revoke(args.name, args.keep_peer)
                _take_peer_away(registry, config, args.name)
                if args.json:
                    print(json.dumps({"probe": args.name, "changed": changed}))
            elif args.action == "add":
                with SecretPlace(args.token_file) as place:
                    place.deliver(registry.probes.add(args.name))
            else:
                with SecretPlace(args.token_file) as place:
                    place.deliver(registry.probes.rotate(args.name, args.keep_old_for))
        except KeyError:
            raise ConfigError(f"no probe {args.name!r}; hint: tandem-server probe list") from None
        except ValueError as error:
            raise ConfigError(str(error)) from error
    return 0


def _take_peer_away(registry: Registry, config: ServerConfig, name: str) -> None:
    try:
        keep_peers(config, registry)
    except (OSError, sqlite3.Error) as error:
        mend = f"run this as the registry's user: probe revoke {name}, once more"
        raise EnvironmentLacks(f"the token is void, but the hub is not told: {error}; hint: {mend}") from error


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds <= _LONGEST_OVERLAP_S:
        raise argparse.ArgumentTypeError(f"{text} is not 0 to {_LONGEST_OVERLAP_S} seconds")
    return seconds


def _rows(registry: Registry, config: ServerConfig) -> list[tuple[dict[str, Any], str]]:
    """Each probe as JSON and as a line. The state is None where the database cannot be asked, and it would decide."""
    now, told = time.time_ns(), None
    try:
        with contextlib.closing(open_store(config)) as store:
            states = {one.probe.name: one for one in probes_now(registry, RecordCounts(store), config.states, now)}
    except (EnvironmentLacks, StoreDown, QueryError) as error:
        states, told = {}, str(error).partition("; mend")[0]
    rows = []
    for probe in registry.probes.all():
        one = states.get(probe.name)
        row: dict[str, Any] = {
            "name": probe.name,
            "created": _time(probe.created_utc_ns),
            "rotated": _time(probe.rotated_utc_ns),
            "revoked": _time(probe.revoked_utc_ns),
            "old_token_until": _time(probe.old_until_utc_ns),
        }
        of_state = probe_json(one, now) if one is not None else {"state": None, "why": f"not known: {told}"}
        if one is None and probe.revoked_utc_ns is not None:
            of_state = {"state": "revoked", "since_utc_ns": probe.revoked_utc_ns}
        line = probe_line(one, now) if one is not None else _plain(row, of_state)
        if probe.old_until_utc_ns is not None:
            line += f", old token until {row['old_token_until']}"
        rows.append((row | {k: v for k, v in of_state.items() if k != "name"}, line))
    return _with_enrolments(rows, {one.probe: one for one in registry.enrolments.all()}, now)


def _with_enrolments(
    rows: list[tuple[dict[str, Any], str]], enrolments: dict[str, Enrolment], now: int
) -> list[tuple[dict[str, Any], str]]:
    """Address, enrolment and open code of each; and those that were invited and have not come yet."""
    told = []
    for row, line in rows:
        one, invited = enrolments.pop(row["name"], None), ""
        if one is not None and one.invited_until_utc_ns is not None:
            invited = f", {_code(one.probe, one.invited_until_utc_ns, now)}"
        told.append((row | _enrolment(one), line + invited))
    for one in enrolments.values():
        if (until := one.invited_until_utc_ns) is not None:
            row = {"name": one.probe, "created": None, "rotated": None, "revoked": None, "old_token_until": None}
            told.append(
                (
                    row | {"state": "invited"} | _enrolment(one),
                    f"{one.probe:<14} invited, {_code(one.probe, until, now)}",
                )
            )
    return told


def _enrolment(one: Enrolment | None) -> dict[str, Any]:
    if one is None:
        return {"address": None, "enrolled": None, "invited_until": None}
    times = {"enrolled": _time(one.enrolled_utc_ns), "invited_until": _time(one.invited_until_utc_ns)}
    return {"address": one.address, **times}


def _code(name: str, until: int, now: int) -> str:
    if until > now:
        return f"has a code until {_time(until)}"
    return f"its code ended {_time(until)}; hint: tandem-server probe invite {name}"


def _plain(row: dict[str, Any], of_state: dict[str, Any]) -> str:
    state = f"revoked {row['revoked']}" if of_state["state"] == "revoked" else f"state {of_state['why']}"
    return f"{row['name']:<14} {state}"


def _time(utc_ns: int | None) -> str | None:
    return None if utc_ns is None else datetime.fromtimestamp(utc_ns / 1e9, UTC).isoformat(timespec="seconds")


def _list(as_json: bool, rows: list[tuple[dict[str, Any], str]]) -> None:
    if as_json:
        print(json.dumps([row for row, _ in rows], indent=1))
        return
    for _, line in rows:
        print(visible(line))
