"""``tandem-server campaign publish``: a campaign folder as a package that may be given away."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import sys
import tomllib
from argparse import Namespace
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tandem_server.analysis.records import SourceError
from tandem_server.cli.campaign_export import progress
from tandem_server.cli.stop import ConfigError, EnvironmentLacks, with_plain_ends
from tandem_server.report.words import visible

if TYPE_CHECKING:
    from tandem_server.publish.homes import Home
    from tandem_server.publish.package import Published

_SHOWN = 20
_EXAMPLES = """examples:
  tandem-server campaign export mohan-dual-lte --out mohan --traces
  tandem-server campaign publish mohan --out mohan-2026 --licence CC-BY-4.0 --creator "Doe, Jane" --home 48.1372,11.5756,1500
  tandem-server campaign publish rehearsal --out rehearsal-published --licence CC0-1.0 --no-home"""


def add(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the action."""
    parser = actions.add_parser(
        "publish",
        help="make a package of a campaign folder that may be given away: homes cut, identities absent, described for archives",
        description="Makes of DIR, which campaign export or the bench wrote, a package with Croissant and RO-Crate metadata, check sums,"
        " licence and schema. What was recorded when a probe may have been at a home is cut; public addresses and names of probes and of"
        " the server stand for others; payload is taken out of captures. Every file is checked for identities"
        " (docs/reference/ledger.md).",
        epilog=f"{_EXAMPLES}\n\nExit status: 0 when the package is there, 1 when DIR tells identities (it says where; nothing is"
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
        " is not told to anybody: one of twice its size, moved in secret, is cut",
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
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.set_defaults(func=_publish)


@with_plain_ends
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
        asked = package.Asked(
            args.folder, args.out, homes, not args.without_places, not args.without_captures, words, key
        )
        told: Published = package.publish(asked, progress(), f"{datetime.now(UTC):%Y-%m-%d}")
    except package.Identities as error:
        _tell_identities(error.places, args.json)
        return 1
    except SourceError as error:
        raise EnvironmentLacks(str(error)) from error
    except ValueError as error:
        raise ConfigError(str(error)) from error
    for number in told.far_homes:
        print(
            f"tandem-server campaign publish: note: home {number}: no probe was within {homes_module.NEAR_M / 1000:.0f} km of it;"
            " hint: latitude comes first",
            file=sys.stderr,
        )
    if args.json:
        print(json.dumps({**asdict(told), "folder": str(told.folder), "identities": []}, indent=1))
        return 0
    print(visible(str(told.folder)))
    print(
        f"  {told.files} files, {told.bytes / 1e6:.1f} MB; probes {told.probes}, runs {told.runs}, packets {told.packets}"
    )
    if homes:
        print(f"  cut: {told.hours_cut:.1f} hours and {told.left_out} runs at which a probe may have been at a home")
    return 0


def _tell_identities(places: list[str], as_json: bool) -> None:
    if as_json:
        print(json.dumps({"identities": places}, indent=1))
    for place in places[:_SHOWN]:
        print(f"tandem-server campaign publish: {visible(place)}", file=sys.stderr)
    shown = f"the first {_SHOWN} of {len(places)}, --json tells all" if len(places) > _SHOWN else "above"
    print(
        f"tandem-server campaign publish: nothing is published: the folder tells identities ({shown}); hint: take them out of it, or of a"
        " copy, or leave those runs out, and publish again",
        file=sys.stderr,
    )


def _creators(told: list[str]) -> dict[str, str]:
    """Each name with the URL of its ORCID, or ""."""
    found = {}
    for one in told:
        match = re.fullmatch(r"([^<>]+?)(?: *<(https://orcid\.org/(?:[0-9]{4}-){3}[0-9]{3}[0-9X])>)?", one.strip())
        if match is None:
            raise ConfigError(
                f'--creator {one}: no name with an ORCID; hint: "Doe, Jane <https://orcid.org/0000-0002-1825-0097>"'
            )
        found[match[1]] = match[2] or ""
    return found


def _licence(told: str | None) -> str:
    known: dict[str, str] = importlib.import_module("tandem_server.publish.metadata").LICENCES
    if told is None:
        raise ConfigError("a data set without a licence may be used by nobody; hint: --licence CC-BY-4.0, or CC0-1.0")
    found = next((name for name in known if name.lower() == told.lower()), None)
    if found is None:
        raise ConfigError(f"--licence {told}: not among the licences known here; hint: one of {', '.join(known)}")
    return found


def _homes(args: Namespace) -> tuple[Home, ...]:
    """ConfigError also where nothing is said of homes: that would publish them."""
    module = importlib.import_module("tandem_server.publish.homes")
    ways = [bool(args.home or args.homes), args.no_home, args.without_places]
    if sum(ways) != 1:
        what = "of homes nothing is said" if not any(ways) else "homes are told and not told"
        raise ConfigError(
            f"{what}; hint: --home LAT,LON,RADIUS_M of everybody who carried a probe, or --without-places, or --no-home for a bench"
        )
    found = []
    for told in args.home:
        try:
            found.append(module.home_of(told))
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
