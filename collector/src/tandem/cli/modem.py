"""``tandem modem``: the modems by themselves: what is plugged in, what they say, what an answer means."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tandem.cli.run import CONFIG

if TYPE_CHECKING:
    from tandem.app.config import Config
    from tandem.app.modem_watch import Watched

Subparsers = argparse._SubParsersAction


def add(subparsers: Subparsers[argparse.ArgumentParser]) -> None:
    """Register the subcommand."""
    parser = subparsers.add_parser(
        "modem",
        help="what is plugged in, what it says, what an answer means",
        description="Looks at modems by themselves, without the collector. No command here changes a modem's settings for good.",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    _add_list(actions)
    _add_watch(actions)
    _add_decode(actions)
    _add_record(actions)
    udev = actions.add_parser(
        "udev",
        help="udev rules for all known modems",
        description="Prints udev rules made from the families' tables of USB ids: the second AT port of each modem is the collector's, "
        "ModemManager leaves it alone; stable names /dev/tandem/USB-PATH-at; no autosuspend.",
    )
    udev.set_defaults(func=_udev)


def _add_list(actions: Subparsers[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser(
        "list",
        help="what is plugged in",
        description="Lists the modems on the USB bus by their place: ids, driver, ports with their roles and whose they are, network "
        "interfaces, the path of the configuration they belong to (slot), what they hear or why they cannot be polled. Then the "
        "modems that only the configuration names. Asks each one at the collector's port, unless another program holds it. "
        "Exit status: 0, or 1 when there is none.",
    )
    parser.add_argument("--json", action="store_true", help="a JSON list")
    parser.add_argument(
        "--inventory",
        action="store_true",
        help="lines of tandem_paths for the inventory, with operator and APN of each SIM; what hinders a path is a comment "
        "(with --json an object: paths, separation, problems)",
    )
    parser.add_argument(
        "--wait", type=_wait, default=0.0, metavar="S", help="with --inventory: seconds for modems that are not ready"
    )
    parser.add_argument("--providers", type=Path, default=None, metavar="FILE", help=argparse.SUPPRESS)
    parser.add_argument("--no-ask", action="store_true", help="open no port")
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help=f"names the slots; default: {CONFIG}, if it is there"
    )
    parser.add_argument("--sim", action="store_true", help="with the SIMs' hashes, for the configuration's key sim")
    parser.add_argument(
        "--sys", type=Path, default=Path("/sys"), metavar="FOLDER", help="where sysfs is; default: %(default)s"
    )
    parser.set_defaults(func=_list)


def _add_watch(actions: Subparsers[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser(
        "watch",
        help="live radio",
        description="Polls the modems of a configuration, or one, and prints a line for each poll, and for each registration told "
        "unasked, until Ctrl-C. The collector must not run at the same time: a port is held by one program. "
        "Exit status: 0, or 1 when no poll was answered.",
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--config", type=Path, default=CONFIG, metavar="FILE", help="its modems; default: %(default)s")
    _add_place(where)
    parser.add_argument(
        "--driver", default="auto", metavar="NAME", help="of --port or --usb; default: the modem decides"
    )
    parser.add_argument("--interface", metavar="NAME", help="that leads to a web server, with --port http://ADDRESS")
    parser.add_argument(
        "--period", type=_seconds, default=1.0, metavar="S", help="seconds between polls; default: %(default)s"
    )
    parser.add_argument("--count", type=_count, metavar="N", help="end after N polls of each modem")
    parser.add_argument("--json", action="store_true", help="a JSON object a line")
    parser.set_defaults(func=_watch)


def _add_decode(actions: Subparsers[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser(
        "decode",
        help="what an answer means",
        description="Reads a modem's raw answer (with or without echo and OK, lines ended by CR, LF or both; of a web server the "
        "body) and prints one JSON object with units in the names; what the answer does not tell is null. Without --driver "
        "the family is found by the command and by what can be read. "
        "Exit status: 0, 1 when nothing can be read in it (the reason is on standard error), 2 for wrong usage.",
        epilog="example: printf '+CESQ: 99,99,255,255,20,80\\r\\nOK\\r\\n' | tandem modem decode --command AT+CESQ",
    )
    parser.add_argument(
        "--command", required=True, dest="asked", metavar="CMD", help="what was asked, as AT+CSQ;+CESQ or GET /path"
    )
    parser.add_argument("--driver", metavar="NAME", help="the family, instead of finding it")
    parser.add_argument("--model", default="", metavar="MODEL", help="the model, where a family's models differ")
    parser.add_argument(
        "file", nargs="?", default="-", metavar="FILE", help="the answer; -: standard input (the default)"
    )
    parser.set_defaults(func=_decode)


def _add_record(actions: Subparsers[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser(
        "record",
        help="a transcript for a new driver",
        description="Asks a modem who it is, the standard's harmless questions and those of the drivers that know it, and writes a "
        "transcript with IMEI, IMSI, ICCID and telephone numbers removed; of a stick's web server the pages that the drivers "
        "read, without serial numbers, addresses, Wi-Fi names, passwords, cookies and tokens. It does hold the cell's identity, "
        "which tells roughly where it was recorded. Exit status: 0, 1 when the modem does not answer, 2 for wrong usage.",
    )
    where = parser.add_mutually_exclusive_group(required=True)
    _add_place(where)
    parser.add_argument("--interface", metavar="NAME", help="that leads to a web server, with --port http://ADDRESS")
    parser.add_argument("--out", type=Path, metavar="FILE", help="default: standard output")
    parser.set_defaults(func=_record)


def _add_place(group: argparse._MutuallyExclusiveGroup) -> None:
    group.add_argument("--port", metavar="PORT", help="one modem's AT port, as /dev/ttyUSB3, or http://ADDRESS")
    group.add_argument("--usb", metavar="PATH", help="one modem's place, as 1-1.2 (tandem modem list shows it)")


def _seconds(text: str) -> float:
    value = float(text)
    if not 0.2 <= value <= 60:
        raise argparse.ArgumentTypeError(f"{text} is not from 0.2 to 60")
    return value


def _wait(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 600:
        raise argparse.ArgumentTypeError(f"{text} is not from 0 to 600")
    return value


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is below 1")
    return value


def _say(text: str, code: int) -> int:
    """One line on standard error; what somebody's terminal would obey in it is written out."""
    plain = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
    print(f"tandem modem: {plain}", file=sys.stderr)
    return code


def _inventory(args: argparse.Namespace) -> int:
    from tandem.app.config import ConfigError
    from tandem.app.modem_list import plugged
    from tandem.app.modem_proposal import FILE, Providers, ProvidersError, gateways, proposal
    from tandem.modem.mm_modem import managed_sims
    from tandem.modem.usb import PortsError

    try:
        config = _config(args.config)
        published = Providers(args.providers or FILE).of
        until = time.monotonic() + args.wait
        while True:
            found = plugged(config, not args.no_ask, root=args.sys, home=True)
            told = proposal(found, config, managed_sims(), gateways(), published, not args.no_ask)
            if told.settled or time.monotonic() >= until:
                break
            time.sleep(1.0)
    except (ConfigError, PortsError) as error:
        return _say(str(error), 2)
    except ProvidersError as error:
        return _say(str(error), 3)
    print(json.dumps(told.as_json(), indent=1, ensure_ascii=False) if args.json else told.as_yaml())
    if told.paths:
        return 0
    return _say("no modem is plugged in; hint: plug the modems in, into a hub with power of its own; lsusb shows it", 1)


def _list(args: argparse.Namespace) -> int:
    if args.inventory:
        return _inventory(args)
    from tandem.app.config import SIM_SECRET, ConfigError
    from tandem.app.modem_list import listed, table
    from tandem.modem.sim import SecretError, secret_of
    from tandem.modem.usb import PortsError

    try:
        config = _config(args.config)
        if args.sim and config is None:
            return _say(f"--sim needs the probe's configuration ({CONFIG} or --config): its secret makes the hashes", 2)
        secret = secret_of(config.folder / SIM_SECRET) if args.sim and config is not None else None
        found = listed(config, not args.no_ask, secret, args.sys)
    except (ConfigError, PortsError) as error:
        return _say(str(error), 2)
    except SecretError as error:
        return _say(str(error), 3)
    print(json.dumps([one.as_json() for one in found], indent=1) if args.json else "\n".join(table(found)))
    return 0 if any(one.present for one in found) else 1


def _config(file: Path | None) -> Config | None:
    from tandem.app.config import load

    return load(file) if file is not None else load(CONFIG) if CONFIG.exists() else None


def _watch(args: argparse.Namespace) -> int:
    from tandem.app.config import ConfigError
    from tandem.app.modem_watch import as_json, as_text, watch
    from tandem.modem.families import UnknownDriver
    from tandem.modem.poll import Poll

    answered = False
    try:
        watched = _watched(args)
        for modem in watched if args.port is None and args.usb is None else ():
            print(f"{modem.name}: {modem.access.name}, driver {modem.driver}", file=sys.stderr)
        for told in watch(watched, args.period, args.count):
            answered = answered or (isinstance(told, Poll) and told.failure is None)
            print(as_json(told) if args.json else as_text(told), flush=True)
    except (ConfigError, UnknownDriver, ValueError) as error:
        return _say(str(error), 2)
    return 0 if answered else _say("no poll was answered; hint: tandem modem list says what holds the ports", 1)


def _watched(args: argparse.Namespace) -> list[Watched]:
    from tandem.app.config import load
    from tandem.app.modem_watch import Watched
    from tandem.modem.session import access

    if args.port is not None or args.usb is not None:
        return [Watched(args.usb or args.port, None, access(args.port, args.usb, args.interface), args.driver)]
    paths = [(path, path.modem) for path in load(args.config).paths]
    found = [
        Watched(path.name, path.operator, access(modem.port, modem.usb, path.interface), modem.driver)
        for path, modem in paths
        if modem is not None
    ]
    if not found:
        raise ValueError(f"{args.config}: no path has a modem; hint: add [path.modem]")
    return found


def _decode(args: argparse.Namespace) -> int:
    from tandem.modem.decoding import MAX_BYTES, UndecodableError, decode
    from tandem.modem.families import drivers

    if args.driver is not None and args.driver not in drivers():
        return _say(f"unknown driver {args.driver!r}; known: {', '.join(drivers())}", 2)
    try:
        if args.file == "-":
            raw = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            with Path(args.file).open("rb") as file:
                raw = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        return _say(
            f"{args.file}: {getattr(error, 'strerror', None) or error}; hint: name a file, or - for standard input", 2
        )
    try:
        found = decode(args.asked, raw, args.driver, args.model)
    except UndecodableError as error:
        return _say(str(error), 1)
    print(json.dumps(found.as_json()))
    return 0


def _record(args: argparse.Namespace) -> int:
    from tandem.app.modem_watch import record
    from tandem.at.errors import AtError

    try:
        return record(args.port, args.usb, args.out, args.interface)
    except (AtError, OSError) as error:
        return _say(str(error), 1)
    except ValueError as error:
        return _say(str(error), 2)


def _udev(_args: argparse.Namespace) -> int:
    from tandem.modem.usb import PortsError, known_devices, rules

    try:
        print(rules(known_devices()), end="")
    except PortsError as error:
        return _say(str(error), 2)
    return 0
