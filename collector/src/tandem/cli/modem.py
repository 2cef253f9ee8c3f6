"""``tandem modem``: the modems by themselves: what is plugged in, what they say, what an answer means."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tandem.cli.command import (
    CONFIG,
    HERE,
    Actions,
    CommandError,
    ExitCode,
    command,
    configuration,
    group,
    number,
    optional_config,
    output,
)

if TYPE_CHECKING:
    from tandem.app.config import Config
    from tandem.app.modem_watch import Watched

_INTERFACE = "that leads to a web server, with --port http://ADDRESS"


def add(commands: Actions[argparse.ArgumentParser]) -> None:
    actions = group(
        commands,
        "modem",
        "what is plugged in, what it says, what an answer means",
        "Looks at modems by themselves, without the collector. No command here changes a modem's settings for good.",
    )
    _add_list(actions)
    _add_watch(actions)
    _add_decode(actions)
    _add_record(actions)
    command(actions, "udev", _udev, "udev rules for all known modems")


def _add_list(actions: Actions[argparse.ArgumentParser]) -> None:
    parser = command(actions, "list", _list, "what is plugged in", json="a JSON list")
    parser.add_argument(
        "--inventory",
        action="store_true",
        help="lines of tandem_paths for the inventory, with operator and APN of each SIM; what hinders a path is a comment "
        "(with --json an object: paths, separation, problems)",
    )
    wait = "with --inventory: seconds for modems that are not ready"
    parser.add_argument("--wait", type=number(0, 600), default=0.0, metavar="S", help=wait)
    parser.add_argument("--providers", type=Path, default=None, metavar="FILE", help=argparse.SUPPRESS)
    parser.add_argument("--no-ask", action="store_true", help="open no port")
    slots = f"names the slots; default: {CONFIG}, if it is there"
    parser.add_argument("--config", type=Path, metavar="FILE", help=slots)
    parser.add_argument("--sim", action="store_true", help="with the SIMs' hashes, for the configuration's key sim")
    parser.add_argument("--sys", type=Path, default=Path("/sys"), metavar="FOLDER", help=f"where sysfs is; {HERE}")


def _add_watch(actions: Actions[argparse.ArgumentParser]) -> None:
    parser = command(actions, "watch", _watch, "live radio", json="a JSON object a line")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--config", type=Path, default=CONFIG, metavar="FILE", help=f"its modems; {HERE}")
    _add_place(where)
    family = "of --port or --usb; default: the modem decides"
    parser.add_argument("--driver", default="auto", metavar="NAME", help=family)
    parser.add_argument("--interface", metavar="NAME", help=_INTERFACE)
    period = f"seconds between polls; {HERE}"
    parser.add_argument("--period", type=number(0.2, 60), default=1.0, metavar="S", help=period)
    count = "end after N polls of each modem"
    parser.add_argument("--count", type=number(1, 10**9, whole=True), metavar="N", help=count)


def _add_decode(actions: Actions[argparse.ArgumentParser]) -> None:
    parser = command(actions, "decode", _decode, "what an answer means")
    parser.epilog = r"example: printf '+CESQ: 99,99,255,255,20,80\r\nOK\r\n' | tandem modem decode --command AT+CESQ"
    query = "the query that it answers, as AT+CSQ;+CESQ or GET /path"
    parser.add_argument("--command", required=True, dest="query", metavar="CMD", help=query)
    parser.add_argument("--driver", metavar="NAME", help="the family, instead of finding it")
    parser.add_argument("--model", default="", metavar="MODEL", help="the model, where a family's models differ")
    answer = "the answer; -: standard input (the default)"
    parser.add_argument("file", nargs="?", default="-", metavar="FILE", help=answer)


def _add_record(actions: Actions[argparse.ArgumentParser]) -> None:
    parser = command(actions, "record", _record, "a transcript for a new driver")
    where = parser.add_mutually_exclusive_group(required=True)
    _add_place(where)
    parser.add_argument("--interface", metavar="NAME", help=_INTERFACE)
    parser.add_argument("--out", type=Path, metavar="FILE", help="default: standard output")


def _add_place(group: argparse._MutuallyExclusiveGroup) -> None:
    group.add_argument("--port", metavar="PORT", help="one modem's AT port, as /dev/ttyUSB3, or http://ADDRESS")
    group.add_argument("--usb", metavar="PATH", help="one modem's place, as 1-1.2 (tandem modem list shows it)")


def _list(args: argparse.Namespace) -> int:
    """Lists the modems on the USB bus by their place: ids, driver, ports with their roles and whose they are, network interfaces, the
    path of the configuration they belong to (slot), what they hear or why they cannot be polled. Then the modems that only the
    configuration names. Queries each one at the collector's port, unless another program holds it. Exit status: 0, or 1 when there is
    none."""
    from tandem.app.config_schema import SIM_SECRET
    from tandem.app.modem_list import listed, table
    from tandem.modem.sim import SecretError, secret_of

    config = optional_config(args.config)
    try:
        if args.inventory:
            _inventory(args, config)
            return ExitCode.OK
        if args.sim and config is None:
            file = f"{CONFIG} or --config"
            raise CommandError(f"--sim needs the probe's configuration ({file}): its secret makes the hashes")
        secret = secret_of(config.folder / SIM_SECRET) if args.sim and config is not None else None
        found = listed(config, not args.no_ask, secret, args.sys)
    except SecretError as error:
        raise CommandError(error, ExitCode.ENVIRONMENT) from error
    output(args, [one.as_json() for one in found], lambda: table(found))
    return ExitCode.OK if any(one.present for one in found) else ExitCode.NEGATIVE


def _inventory(args: argparse.Namespace, config: Config | None) -> None:
    from tandem.app.modem_list import plugged
    from tandem.app.modem_proposal import FILE, Providers, ProvidersError, gateways, proposal
    from tandem.modem.mm_modem import managed_sims

    try:
        published = Providers(args.providers or FILE).of
    except ProvidersError as error:
        raise CommandError(error, ExitCode.ENVIRONMENT) from error
    until = time.monotonic() + args.wait
    while True:
        found = plugged(config, not args.no_ask, root=args.sys, home=True)
        proposed = proposal(found, config, managed_sims(), gateways(), published, not args.no_ask)
        if proposed.settled or time.monotonic() >= until:
            break
        time.sleep(1.0)
    output(args, proposed.as_json(), lambda: [proposed.as_yaml()])
    if not proposed.paths:
        hint = "plug the modems in, into a hub with power of its own; lsusb shows it"
        raise CommandError(f"no modem is plugged in; hint: {hint}", ExitCode.NEGATIVE)


def _watch(args: argparse.Namespace) -> None:
    """Polls the modems of a configuration, or one, and prints a line for each poll, and for each registration reported unasked, until
    Ctrl-C. The collector must not run at the same time: a port is held by one program. Exit status: 0, or 1 when no poll was answered."""
    from tandem.app.modem_watch import as_json, as_text, watch
    from tandem.modem.poll import Poll

    answered = False
    try:
        watched = _watched(args)
        for modem in watched if args.port is None and args.usb is None else ():
            print(f"{modem.name}: {modem.access.name}, driver {modem.driver}", file=sys.stderr)
        for report in watch(watched, args.period, args.count):
            answered = answered or (isinstance(report, Poll) and report.failure is None)
            print(as_json(report) if args.json else as_text(report), flush=True)
    except ValueError as error:  # a place, a driver or a configuration that cannot be
        raise CommandError(error) from error
    if not answered:
        what = "no poll was answered; hint: tandem modem list says what holds the ports"
        raise CommandError(what, ExitCode.NEGATIVE)


def _watched(args: argparse.Namespace) -> list[Watched]:
    from tandem.app.modem_watch import Watched
    from tandem.modem.session import access

    if args.port is not None or args.usb is not None:
        return [Watched(args.usb or args.port, None, access(args.port, args.usb, args.interface), args.driver)]
    paths = [(path, path.modem) for path in configuration(args).paths]
    found = [
        Watched(path.name, path.operator, access(modem.port, modem.usb, path.interface), modem.driver)
        for path, modem in paths
        if modem is not None
    ]
    if not found:
        raise ValueError(f"{args.config}: no path has a modem; hint: add [path.modem]")
    return found


def _decode(args: argparse.Namespace) -> None:
    """Reads a modem's raw answer (with or without echo and OK, lines ended by CR, LF or both; of a web server the body) and prints one
    JSON object with units in the names; what the answer does not hold is null. Without --driver the family is found by the command and
    by what can be read. Exit status: 0, 1 when nothing can be read in it (the reason is on standard error), 2 for wrong usage."""
    from tandem.modem.decoding import MAX_BYTES, UndecodableError, decode
    from tandem.modem.families import drivers

    if args.driver is not None and args.driver not in drivers():
        raise CommandError(f"unknown driver {args.driver!r}; known: {', '.join(drivers())}")
    try:
        if args.file == "-":
            raw = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            with Path(args.file).open("rb") as file:
                raw = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise CommandError(f"{args.file}: {why}; hint: name a file, or - for standard input") from error
    try:
        found = decode(args.query, raw, args.driver, args.model)
    except UndecodableError as error:
        raise CommandError(error, ExitCode.NEGATIVE) from error
    print(json.dumps(found.as_json()))


def _record(args: argparse.Namespace) -> int:
    """Asks a modem who it is, the standard's harmless questions and those of the drivers that know it, and writes a transcript with
    IMEI, IMSI, ICCID and telephone numbers removed; of a stick's web server the pages that the drivers read, without serial numbers,
    addresses, Wi-Fi names, passwords, cookies and tokens. It does hold the cell's identity, which tells roughly where it was recorded.
    Exit status: 0, 1 when the modem does not answer, 2 for wrong usage."""
    from tandem.app.modem_watch import record
    from tandem.at.dialogue import AtError

    try:
        return record(args.port, args.usb, args.out, args.interface)
    except (AtError, OSError) as error:
        raise CommandError(error, ExitCode.NEGATIVE) from error
    except ValueError as error:
        raise CommandError(error) from error


def _udev(_args: argparse.Namespace) -> None:
    """Prints udev rules made from the families' tables of USB ids: the second AT port of each modem is the collector's, ModemManager
    leaves it alone; stable names /dev/tandem/USB-PATH-at; no autosuspend."""
    from tandem.modem.usb import known_devices, rules

    print(rules(known_devices()), end="")
