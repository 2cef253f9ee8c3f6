"""``tandem-server probe``: who may send and measure (``add``, ``rotate``, ``revoke``, ``list``), codes by which probes enrol and the public
keys that they gave (``invite``, ``peers``, ``known-hosts``), what a silent one sent last (``last``), and the end of all that the server has
of one, in one step (``erase``); its name stays, revoked."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sqlite3
import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tandem_server.cli.command import Actions, ConfigError, EnvironmentLacks, add_command, check_probe, hinted, within
from tandem_server.cli.configuration import ServerConfig, load
from tandem_server.cli.stores import keep_peers, open_influx, open_reader, open_registry, open_store, trace_store
from tandem_server.ledger.last_words import last_words, text
from tandem_server.ledger.records import RecordCounts
from tandem_server.ledger.table import probe_line
from tandem_server.ledger.watching import probes_now
from tandem_server.registry import Enrolment, NetworkFullError, Registry
from tandem_server.registry.probes import known_hosts, peers
from tandem_server.report.words import visible
from tandem_server.store import QueryError, StoreDown
from tandem_server.uploads.store import Held, TraceFolder, TraceStoreDown, erase, held
from tandem_server.utc import utc

_LONGEST_OVERLAP_S = 30 * 86_400
_HOURS, _MOST_HOURS = 168.0, 720.0
_NAME = "lower-case letters, digits and inner hyphens"


def add(commands: Actions[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "probe", help="register probes and their tokens", description="Register probes and their tokens."
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    new = add_command(actions, "add", _add, "register a probe; prints its token, once")
    rotate = add_command(
        actions, "rotate", _rotate, "give a probe a new token; the old one is void at once, or after --keep-old-for"
    )
    revoke = add_command(
        actions,
        "revoke",
        _revoke,
        "void a probe's token, code and place in the tunnel; what it sent stays",
        json="as JSON",
    )
    add_command(actions, "list", _list, "list the probes, each with its state and since when", json="as JSON")
    for sub in (new, rotate, revoke):
        sub.add_argument("name", metavar="NAME", help=_NAME)
    for sub in (new, rotate):
        sub.add_argument(
            "--token-file", type=Path, metavar="PATH", help="write the token there (mode 0600), do not print it"
        )
    rotate.add_argument(
        "--keep-old-for",
        type=within(0, _LONGEST_OVERLAP_S, f"0 to {_LONGEST_OVERLAP_S} seconds"),
        default=0.0,
        metavar="SECONDS",
        help="the old token works so long beside the new one, at most 30 days: for a probe in the field (default 0)",
    )
    revoke.add_argument(
        "--keep-peer",
        action="store_true",
        help="it stays in the tunnel, to be reached and wiped; revoke it again without this to take that away",
    )
    invite = add_command(
        actions,
        "invite",
        _invite,
        "a code with which the probe itself asks for its token; prints it, once",
        "Print a code, once, with which a probe asks for its token and a place in the tunnel when it first runs. A code"
        " of before is void. Nothing changes for a registered probe until the code is used; then its token and key of before are void.",
    )
    invite.add_argument("name", metavar="NAME", help=f"{_NAME}; need not be registered")
    invite.add_argument(
        "--hours",
        type=within(0, _MOST_HOURS, f"above 0 and at most {_MOST_HOURS:g} hours", above=True),
        default=_HOURS,
        metavar="H",
        help=f"good for so long, at most {_MOST_HOURS:g} (default {_HOURS:g})",
    )
    place = invite.add_mutually_exclusive_group()
    place.add_argument(
        "--code-file", type=Path, metavar="PATH", help="write the code there (mode 0600), do not print it"
    )
    place.add_argument("--json", action="store_true", help="as JSON: probe, code, expires, address")
    add_command(actions, "peers", _peers, "the hub's [Peer] sections, of the probes that enrolled")
    add_command(actions, "known-hosts", _known_hosts, "SSH's known_hosts lines, of the probes that enrolled")
    last = add_command(
        actions,
        "last",
        _last,
        "what a silent probe said last, and what of it may be why",
        "Print when a probe's last record was made, what it said in the hour before of its supply, modems, SIMs, disk and "
        "clock, its last events, and what of that may be why it is silent. Only records that arrived are known here: what it made "
        "since lies on its card. Exit status: 0, or 1 when it never sent a record.",
        json="as JSON",
    )
    last.add_argument("name", metavar="NAME", help="as probe list has it")
    _add_erase(actions)


def _add_erase(actions: Actions[argparse.ArgumentParser]) -> None:
    sub = add_command(
        actions,
        "erase",
        _erase,
        "erase all that the server has of a revoked probe",
        "Erase all that this server has of one probe: its series in the database with their roll-ups, its traces (in S3 "
        "every version), its captures and results at the endpoint, its runs, ledger, campaigns and places in the registry. The name "
        "stays, revoked, so that nobody gets it again. Without --yes nothing is erased, and what would be is shown. It may run "
        "beside the server, and again after it was broken off.",
        epilog="Exit status: 0 nothing of it is left (or, without --yes, it was shown), 1 something is left and is named, 2 no such probe "
        "or not revoked, 3 a database, a folder or a bucket is out of reach. --json: probe, erased (whether --yes was given), found and "
        "left, each with registry (rows by table), measurements (how many), traces, captures and results (files, bytes); elsewhere.",
        json="as JSON",
    )
    sub.add_argument("name", metavar="NAME", help="as probe list has it")
    sub.add_argument("--yes", action="store_true", help="erase it: there is no way back")


# --- Tokens ----------------------------------------------------------------------------------------------------------------


def _add(args: Namespace) -> int:
    with open_registry(load(args.config)) as registry, _named(args.name), SecretPlace(args.token_file) as place:
        place.deliver(registry.probes.add(args.name))
    return 0


def _rotate(args: Namespace) -> int:
    with open_registry(load(args.config)) as registry, _named(args.name), SecretPlace(args.token_file) as place:
        place.deliver(registry.probes.rotate(args.name, args.keep_old_for))
    return 0


def _revoke(args: Namespace) -> int:
    config = load(args.config)
    with open_registry(config) as registry, _named(args.name):
        changed = registry.probes.revoke(args.name, args.keep_peer)
        again = f"the token is void, but the hub does not know; run this as the registry's user: probe revoke {args.name}, once more"
        with hinted(again, OSError, sqlite3.Error):
            keep_peers(config, registry)
    if args.json:
        print(json.dumps({"probe": args.name, "changed": changed}))
    return 0


@contextlib.contextmanager
def _named(name: str) -> Iterator[None]:
    try:
        yield
    except KeyError:
        raise ConfigError(f"no probe {name!r}; hint: tandem-server probe list") from None
    except ValueError as error:
        raise ConfigError(str(error)) from error


class SecretPlace:
    """Where a token or a code is put: printed (``path`` None), or into a file of its owner's alone, which is opened before the secret is
    made, so that none is lost for want of a place."""

    def __init__(self, path: Path | None) -> None:
        self._path, self._fresh = path, None if path is None else path.with_name(path.name + ".tmp")
        self._descriptor: int | None = None

    def __enter__(self) -> SecretPlace:
        if self._fresh is not None:
            try:
                with contextlib.suppress(FileNotFoundError):
                    self._fresh.unlink()
                self._descriptor = os.open(self._fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            except OSError as error:
                raise EnvironmentLacks(
                    f"{self._path}: {error.strerror}; hint: name a file that can be written"
                ) from error
        return self

    def deliver(self, secret: str) -> None:
        """Print it, or put it in its file."""
        if self._path is None or self._fresh is None or self._descriptor is None:
            print(secret)
            return
        os.write(self._descriptor, secret.encode() + b"\n")
        os.fsync(self._descriptor)
        self._fresh.rename(self._path)

    def __exit__(self, kind: object, *_: object) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
        if kind is not None and self._fresh is not None:
            self._fresh.unlink(missing_ok=True)


# --- The list ----------------------------------------------------------------------------------------------------------------


def _list(args: Namespace) -> int:
    config = load(args.config)
    with open_registry(config) as registry:
        rows = _rows(registry, config)
    if args.json:
        print(json.dumps([row for row, _ in rows], indent=1))
    else:
        for _, line in rows:
            print(visible(line))
    return 0


def _rows(registry: Registry, config: ServerConfig) -> list[tuple[dict[str, Any], str]]:
    """Each probe as JSON and as a line. The state is None where the database does not answer, and it would decide."""
    now, unknown = time.time_ns(), ""
    try:
        with contextlib.closing(open_influx(config)) as store:
            states = {one.probe.name: one for one in probes_now(registry, RecordCounts(store), config.states, now)}
    except (EnvironmentLacks, StoreDown, QueryError) as error:
        states, unknown = {}, str(error).partition("; hint")[0]
    rows = []
    for probe in registry.probes.all():
        one = states.get(probe.name)
        row: dict[str, Any] = {
            "name": probe.name,
            "created": utc(probe.created_utc_ns),
            "rotated": _time(probe.rotated_utc_ns),
            "revoked": _time(probe.revoked_utc_ns),
            "old_token_until": _time(probe.old_until_utc_ns),
        }
        of_state = one.to_dict(now) if one is not None else {"state": None, "why": f"not known: {unknown}"}
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
    listed = []
    for row, line in rows:
        one, invited = enrolments.pop(row["name"], None), ""
        if one is not None and one.invited_until_utc_ns is not None:
            invited = f", {_code(one.probe, one.invited_until_utc_ns, now)}"
        listed.append((row | _enrolment(one), line + invited))
    for one in enrolments.values():
        if (until := one.invited_until_utc_ns) is not None:
            row = {"name": one.probe, "created": None, "rotated": None, "revoked": None, "old_token_until": None}
            listed.append(
                (
                    row | {"state": "invited"} | _enrolment(one),
                    f"{one.probe:<14} invited, {_code(one.probe, until, now)}",
                )
            )
    return listed


def _enrolment(one: Enrolment | None) -> dict[str, Any]:
    if one is None:
        return {"address": None, "enrolled": None, "invited_until": None}
    times = {"enrolled": _time(one.enrolled_utc_ns), "invited_until": _time(one.invited_until_utc_ns)}
    return {"address": one.address, **times}


def _code(name: str, until: int, now: int) -> str:
    if until > now:
        return f"has a code until {utc(until)}"
    return f"its code ended {utc(until)}; hint: tandem-server probe invite {name}"


def _plain(row: dict[str, Any], of_state: dict[str, Any]) -> str:
    state = f"revoked {row['revoked']}" if of_state["state"] == "revoked" else f"state {of_state['why']}"
    return f"{row['name']:<14} {state}"


def _time(utc_ns: int | None) -> str | None:
    return None if utc_ns is None else utc(utc_ns)


# --- Enrolment ---------------------------------------------------------------------------------------------------------------


def _invite(args: Namespace) -> int:
    config = load(args.config)
    with open_registry(config) as registry, SecretPlace(args.code_file) as place:
        with hinted("a larger [wireguard] network", NetworkFullError), _named(args.name):
            made = registry.enrolments.invite(args.name, args.hours * 3600, config.wireguard.addresses)
        expires = utc(made.expires_utc_ns)
        if made.known:
            print(
                f"{made.probe} is registered: when this code is used, its token and its key of now are void",
                file=sys.stderr,
            )
        if args.json:
            print(json.dumps({"probe": made.probe, "code": made.code, "expires": expires, "address": made.address}))
            return 0
        where = "" if made.address is None else f"; address in the tunnel: {made.address}"
        print(f"{made.probe}: good once, until {expires}{where}", file=sys.stderr)
        place.deliver(made.code)
    return 0


def _peers(args: Namespace) -> int:
    config = load(args.config)
    with open_registry(config) as registry:
        with hinted("run this as the registry's user", OSError, sqlite3.Error):
            keep_peers(config, registry)
        sys.stdout.write(peers(registry.enrolments.all()))
    return 0


def _known_hosts(args: Namespace) -> int:
    with open_registry(load(args.config)) as registry:
        sys.stdout.write(known_hosts(registry.enrolments.all()))
    return 0


def _last(args: Namespace) -> int:
    config = load(args.config)
    with open_registry(config, read_only=True) as registry:
        check_probe(registry, args.name)
    with contextlib.closing(open_reader(config)) as store:
        found = last_words(store, args.name)
    if args.json:
        print(json.dumps(None if found is None else found.to_dict(), indent=1))
    elif found is None:
        print(f"{args.name}: it never sent a record that is kept")
    else:
        print("\n".join(map(visible, text(args.name, found, time.time_ns()))))
    return 1 if found is None else 0


# --- Erasure ----------------------------------------------------------------------------------------------------------------

_ELSEWHERE = (
    "backups, until they are gone: erase again after each restore",
    "campaign folders and reports that were made of it, copies on people's machines",
    "area and area_day, which add up all probes and name none",
)
_AGAIN = "what was erased until now is gone; do it once more"


@dataclass(frozen=True, slots=True)
class _Found:
    """What there is of a probe. ``registry``: rows by table."""

    registry: dict[str, int]
    measurements: int
    traces: Held
    captures: Held
    results: Held

    @property
    def any(self) -> bool:
        """Whether there is anything."""
        files = self.traces.files + self.captures.files + self.results.files
        return bool(self.registry or self.measurements or files)

    def lines(self) -> Iterator[str]:
        """For people."""
        rows = sum(self.registry.values())
        yield f"  registry      {rows} rows" + (f" ({', '.join(self.registry)})" if rows else "")
        yield f"  database      {self.measurements} measurements"
        for name in ("traces", "captures", "results"):
            files: Held = getattr(self, name)
            yield f"  {name:<13} {files.files} files, {files.bytes} B"


def _erase(args: Namespace) -> int:
    config = load(args.config)
    with open_registry(config) as registry, contextlib.closing(open_store(config)) as store:
        traces = [trace_store(config)]
        if config.traces.s3 is not None:  # from before the bucket was named
            traces.append(TraceFolder(config.traces.folder))

        def found() -> _Found:
            kept = [one.held(args.name) for one in traces]
            return _Found(
                registry.erasure.count(args.name),
                store.measurements_of(args.name),
                Held(sum(one.files for one in kept), sum(one.bytes for one in kept)),
                *(held(folder / args.name) for folder in _endpoint_folders(config)),
            )

        database, bucket = "systemctl status tandem-database", "let this user delete there"
        with hinted(f"{database}; {_AGAIN}", StoreDown, QueryError), hinted(f"{bucket}; {_AGAIN}", TraceStoreDown):
            there = found()
            if args.yes:
                # Files before the registry's rows that name them: what is broken off is found and ended by the next time.
                for one in traces:
                    one.erase(args.name)
                for folder in _endpoint_folders(config):
                    erase(folder / args.name)
                registry.erasure.erase(args.name)
                store.erase(args.name)
                with hinted(
                    "its rows are deleted, their bytes are not: make room for a copy; do it once more", sqlite3.Error
                ):
                    registry.scrub()
                keep_peers(config, registry)
            left = found() if args.yes else there
    _print_erased(args, there, left)
    return 1 if args.yes and left.any else 0


def _endpoint_folders(config: ServerConfig) -> tuple[Path, Path]:
    return config.capture.folder, config.results.folder


def _print_erased(args: Namespace, there: _Found, left: _Found) -> None:
    if args.json:
        both = {"found": asdict(there), "left": asdict(left), "elsewhere": list(_ELSEWHERE)}
        print(json.dumps({"probe": args.name, "erased": args.yes, **both}, indent=1))
        return
    print(f"{args.name}: {'erased' if args.yes else 'this would be erased'}:")
    for line in there.lines():
        print(line)
    if args.yes and left.any:
        print(f"tandem-server: {args.name}: this is left:\n" + "\n".join(left.lines()), file=sys.stderr)
    print("elsewhere, and not touched:" if args.yes else "elsewhere, and not touched by it:")
    for line in _ELSEWHERE:
        print(f"  {line}")
    if not args.yes:
        print("there is no way back; do it: the same command with --yes")
