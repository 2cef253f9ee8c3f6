"""``tandem-server campaign export|publish``: a campaign out of this server's stores into a campaign folder, and such a folder as a package
that may be given away."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import re
import sys
import time
import tomllib
from argparse import Namespace
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tandem_server.analysis.records import SourceError
from tandem_server.cli.command import Actions, ConfigError, EnvironmentLacks, add_command, check_probe, utc_ns
from tandem_server.cli.configuration import ServerConfig, load
from tandem_server.cli.stores import TraceStores, open_influx, open_registry
from tandem_server.ledger.reader import LedgerReader
from tandem_server.ledger.records import RecordCounts
from tandem_server.registry import NO_CAMPAIGN, Registry
from tandem_server.report.words import visible

if TYPE_CHECKING:
    from tandem_server.export.campaign import Exported
    from tandem_server.publish.homes import Home
    from tandem_server.publish.package import Published

_LOG_EVERY_S = 5.0
_SHOWN = 20
_EXPORTS = """examples:
  tandem-server campaign export mohan-dual-lte --out mohan
  tandem-server campaign export mohan-dual-lte --out june --from 2026-06-01 --to 2026-06-30 --probe kit-01 --probe kit-02
  tandem-server campaign export --no-campaign --out by-itself --tables
  tandem-server report mohan"""
_PUBLISHES = """examples:
  tandem-server campaign export mohan-dual-lte --out mohan --traces
  tandem-server campaign publish mohan --out mohan-2026 --licence CC-BY-4.0 --creator "Doe, Jane" --home 48.1372,11.5756,1500
  tandem-server campaign publish rehearsal --out rehearsal-published --licence CC0-1.0 --no-home"""


def add(actions: Actions[argparse.ArgumentParser]) -> None:
    """Register the actions."""
    parser = add_command(
        actions,
        "export",
        _export,
        "write a campaign's manifests, records and files into a folder that report and load(DIR) read",
        "Writes what this server has of a campaign into DIR: manifests, results, records as Parquet, and what the ledger"
        " says is missing (docs/reference/campaign-folder.md). The same again adds what arrived since, and goes on where it was broken off."
        " Exit status 0 when the server has everything that was promised, 1 when something is missing (it says what), 2 when NAME,"
        " a probe or a time is wrong.",
        json="as JSON",
        epilog=_EXPORTS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "campaign",
        nargs="?",
        metavar="ID|NAME",
        help="as push and list print it, or the label of a campaign that was begun by hand",
    )
    what.add_argument(
        "--no-campaign",
        action="store_true",
        help="runs of no campaign, as a kit makes them by itself ([runs]) or a person does (tandem experiment run)",
    )
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="a new folder, or one of the same export"
    )
    parser.add_argument("--probe", action="append", default=[], metavar="P", help="of this probe; default: of all")
    parser.add_argument(
        "--from",
        dest="start",
        metavar="T",
        help="runs that began then or later, records from then on: a day (2026-06-01) or a time in ISO 8601, UTC unless it has an"
        " offset; default: five minutes before the first run",
    )
    parser.add_argument(
        "--to", dest="end", metavar="T", help="up to then, a day with its end; default: five minutes after the last run"
    )
    packets = parser.add_mutually_exclusive_group()
    packets.add_argument(
        "--traces", action="store_true", help="the captures too, and the tables that were made of them"
    )
    packets.add_argument(
        "--tables",
        action="store_true",
        help="the captures' tables alone, a small part of their size: enough for every figure of a report",
    )
    _add_publish(actions)


def _add_publish(actions: Actions[argparse.ArgumentParser]) -> None:
    parser = add_command(
        actions,
        "publish",
        _publish,
        "make a package of a campaign folder that may be given away: homes cut, identities absent, described for archives",
        "Makes of DIR, which campaign export or the bench wrote, a package with Croissant and RO-Crate metadata, check sums,"
        " licence and schema. What was recorded when a probe may have been at a home is cut; public addresses and names of probes and of"
        " the server stand for others; payload is taken out of captures. Every file is checked for identities"
        " (docs/reference/ledger.md).",
        json="as JSON",
        config=False,
        epilog=f"{_PUBLISHES}\n\nExit status: 0 when the package is there, 1 when DIR shows identities (it says where; nothing is"
        " published),\n2 when an argument or DIR is wrong, 3 when this machine lacks something. Stopped, the same command goes on.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="the campaign's folder; it stays as it is")
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="a new folder; it is there only when it is whole"
    )
    parser.add_argument(
        "--licence", "--license", metavar="ID", help="its identifier in SPDX's list, as in CC-BY-4.0; required"
    )
    where = parser.add_argument_group("homes (one of them is required)")
    where.add_argument(
        "--home",
        action="append",
        default=[],
        metavar="LAT,LON,RADIUS_M",
        help="of everybody who carried a probe, and every other place to hide; again for each (in the south --home=-33.9,…). The circle"
        " is shown to nobody: one of twice its size, moved in secret, is cut",
    )
    where.add_argument(
        "--homes",
        type=Path,
        metavar="FILE",
        help="the same in TOML, as in a probe's configuration: [[position.home_zone]]",
    )
    where.add_argument("--no-home", action="store_true", help="no probe was at anybody's home: a bench, a laboratory")
    where.add_argument(
        "--without-places",
        action="store_true",
        help="no positions, no cell that can be found on a map: for probes that recorded no position",
    )
    parser.add_argument("--without-captures", action="store_true", help="leave them out")
    parser.add_argument("--title", metavar="T", help="default: of the campaign's name")
    parser.add_argument(
        "--creator",
        action="append",
        default=[],
        metavar="NAME[ <ORCID>]",
        help="who made it, with the URL of an ORCID; again for each",
    )
    parser.add_argument("--url", metavar="URL", help="where it will be found, as in a DOI's")
    parser.add_argument(
        "--key",
        type=Path,
        default=Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "tandem" / "publish.key",
        metavar="FILE",
        help="the secret by which circles are moved, made when it is not there (%(default)s). Keep it: another key cuts another circle, and"
        " two circles show more than one",
    )


def _export(args: Namespace) -> int:
    start, end = utc_ns("--from", args.start), utc_ns("--to", args.end, last=True)
    if start is not None and end is not None and start >= end:
        raise ConfigError(f"--from {args.start} --to {args.end}: nothing is between them; hint: the earlier one first")
    config = load(args.config)
    with open_registry(config) as registry:
        for name in args.probe:
            check_probe(registry, name, "--probe")
        made = _exported(args, config, registry, start, end)
    if args.json:
        print(json.dumps({**asdict(made), "folder": str(made.folder)}, indent=1))
    else:
        for line in _lines(made):
            print(visible(line))
    for line in made.missing:
        print(f"tandem-server campaign export: missing: {visible(line)}", file=sys.stderr)
    return 1 if made.missing else 0


def _exported(
    args: Namespace, config: ServerConfig, registry: Registry, start: int | None, end: int | None
) -> Exported:
    module = importlib.import_module("tandem_server.export.campaign")
    name = NO_CAMPAIGN if args.no_campaign else args.campaign
    requested = module.Asked(name, tuple(dict.fromkeys(args.probe)), start, end, args.traces, args.tables)
    with contextlib.closing(open_influx(config)) as series:
        retention = config.store.retention_days
        ledger = LedgerReader(registry, RecordCounts(series), config.states, retention, with_files=args.traces)
        stores = module.Stores(registry, series, TraceStores(config).at, config.traces.folder, ledger, _progress())
        made: Exported = module.export(requested, stores, args.out)
    return made


def _progress() -> Callable[[str], None]:
    """On a terminal a line that changes, elsewhere one every few seconds."""
    begun = last = time.monotonic()

    def said(what: str) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= (0.2 if sys.stderr.isatty() else _LOG_EVERY_S):
            last = now
            head, tail = ("\r\x1b[K", "") if sys.stderr.isatty() else ("", "\n")
            print(f"{head}{now - begun:.0f} s: {visible(what)}", end=tail, file=sys.stderr, flush=True)

    return said


def _lines(made: Exported) -> list[str]:
    lines = [str(made.folder)]
    for name, one in made.probes.items():
        states: dict[str, Any] = one["by_state"]
        runs = ", ".join(f"{count} {state}" for state, count in states.items())
        lines.append(
            f"  {name}: {one['runs']} runs ({runs}); of their records {one['records_arrived']} of {one['records_promised']} arrived;"
            f" {one['records_here']} records of the time in the folder"
        )
    now = made.written
    packets = f", {now['tables']} parts of tables" if now["tables"] else ""
    lines.append(
        f"  new: {now['manifests']} manifests, {now['files']} files{packets}, {now['records']} files of records"
    )
    return lines


def _publish(args: Namespace) -> int:
    package = importlib.import_module("tandem_server.publish.package")
    homes_module = importlib.import_module("tandem_server.publish.homes")
    words = {
        "licence": _licence(args.licence),
        "title": args.title,
        "creators": _creators(args.creator),
        "url": args.url,
    }
    homes = _homes(args)
    try:
        key = homes_module.secret_key(args.key)
        requested = package.Asked(
            args.folder, args.out, homes, not args.without_places, not args.without_captures, words, key
        )
        made: Published = package.publish(requested, _progress(), f"{datetime.now(UTC):%Y-%m-%d}")
    except package.Identities as error:
        _print_identities(error.places, args.json)
        return 1
    except SourceError as error:
        raise EnvironmentLacks(str(error)) from error
    except ValueError as error:
        raise ConfigError(str(error)) from error
    for number in made.far_homes:
        print(
            f"tandem-server campaign publish: note: home {number}: no probe was within {homes_module.NEAR_M / 1000:.0f} km of it;"
            " hint: latitude comes first",
            file=sys.stderr,
        )
    if args.json:
        print(json.dumps({**asdict(made), "folder": str(made.folder), "identities": []}, indent=1))
        return 0
    print(visible(str(made.folder)))
    print(
        f"  {made.files} files, {made.bytes / 1e6:.1f} MB; probes {made.probes}, runs {made.runs}, packets {made.packets}"
    )
    if homes:
        print(f"  cut: {made.hours_cut:.1f} hours and {made.left_out} runs at which a probe may have been at a home")
    return 0


def _print_identities(places: list[str], as_json: bool) -> None:
    if as_json:
        print(json.dumps({"identities": places}, indent=1))
    for place in places[:_SHOWN]:
        print(f"tandem-server campaign publish: {visible(place)}", file=sys.stderr)
    shown = f"the first {_SHOWN} of {len(places)}, --json has all" if len(places) > _SHOWN else "above"
    print(
        f"tandem-server campaign publish: nothing is published: the folder shows identities ({shown}); hint: take them out of it, or of a"
        " copy, or leave those runs out, and publish again",
        file=sys.stderr,
    )


def _creators(given: list[str]) -> dict[str, str]:
    """Each name with the URL of its ORCID, or ""."""
    found = {}
    for one in given:
        match = re.fullmatch(r"([^<>]+?)(?: *<(https://orcid\.org/(?:[0-9]{4}-){3}[0-9]{3}[0-9X])>)?", one.strip())
        if match is None:
            raise ConfigError(
                f'--creator {one}: no name with an ORCID; hint: "Doe, Jane <https://orcid.org/0000-0002-1825-0097>"'
            )
        found[match[1]] = match[2] or ""
    return found


def _licence(given: str | None) -> str:
    known: dict[str, str] = importlib.import_module("tandem_server.publish.metadata").LICENCES
    if given is None:
        raise ConfigError("a data set without a licence may be used by nobody; hint: --licence CC-BY-4.0, or CC0-1.0")
    found = next((name for name in known if name.lower() == given.lower()), None)
    if found is None:
        raise ConfigError(f"--licence {given}: not among the licences known here; hint: one of {', '.join(known)}")
    return found


def _homes(args: Namespace) -> tuple[Home, ...]:
    """ConfigError also where nothing is said of homes: that would publish them."""
    module = importlib.import_module("tandem_server.publish.homes")
    ways = [bool(args.home or args.homes), args.no_home, args.without_places]
    if sum(ways) != 1:
        what = "of homes nothing is said" if not any(ways) else "homes are named and not named"
        raise ConfigError(
            f"{what}; hint: --home LAT,LON,RADIUS_M of everybody who carried a probe, or --without-places, or --no-home for a bench"
        )
    found = []
    for home in args.home:
        try:
            found.append(module.home_of(home))
        except ValueError as error:
            raise ConfigError(f"--home: {error}") from error
    return (*found, *(_of_file(args.homes, module) if args.homes else ()))


def _of_file(file: Path, module: Any) -> list[Home]:  # noqa: ANN401  a module
    try:
        zones = tomllib.loads(file.read_text(encoding="utf-8")).get("position", {}).get("home_zone", [])
        found = [
            module.home(float(z["latitude_deg"]), float(z["longitude_deg"]), float(z.get("radius_m", 500)))
            for z in zones
        ]
    except KeyError as error:
        raise ConfigError(
            f"{file}: a home_zone has no {error.args[0]}; hint: latitude_deg, longitude_deg, radius_m"
        ) from error
    except (ValueError, AttributeError, TypeError) as error:  # TOML's own errors are ValueErrors, and name the line
        raise ConfigError(
            f"{file}: {error}; hint: [[position.home_zone]] with latitude_deg, longitude_deg, radius_m"
        ) from error
    if not found:
        raise ConfigError(f"{file}: no [[position.home_zone]] in it; hint: the probe's configuration that has them")
    return found
