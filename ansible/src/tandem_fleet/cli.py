"""``tandem-fleet``, which ``./kit fleet`` calls."""

from __future__ import annotations

import argparse
import getpass
import json
import os
import sys
from pathlib import Path

from tandem_fleet import access, check, files, new
from tandem_fleet.files import FleetError


def parser() -> argparse.ArgumentParser:
    """Commands and flags."""
    made = argparse.ArgumentParser(prog="./kit fleet", description="Make a fleet, look at it, add to it.")
    commands = made.add_subparsers(dest="command", required=True, metavar="COMMAND")

    one = commands.add_parser("new", help="make a fleet: a folder with hosts, settings, encrypted secrets and a CA")
    one.add_argument("folder", metavar="DIR", type=Path)
    one.add_argument(
        "--server", metavar="aws|ADDRESS", help="where the server is: a machine made on AWS, or one with SSH and sudo"
    )
    one.add_argument("--name", metavar="NAME", help="the server's DNS name (or address), as probes and people call it")
    one.add_argument("--kit", metavar="NAME", action="append", help="a kit's host name; repeat for more")
    one.add_argument("--country", metavar="CC", help="where the kits are used, such as DE: Wi-Fi needs it")
    one.add_argument(
        "--timezone",
        metavar="ZONE",
        default="",
        help="the kits' local time, such as America/Los_Angeles; default: this machine's",
    )
    one.add_argument(
        "--ssh-key", metavar="FILE.pub", action="append", type=Path, help="who may log in (~/.ssh/id_*.pub)"
    )
    one.add_argument(
        "--login", metavar="USER", default="admin", help="the account on the server that has SSH and sudo (%(default)s)"
    )
    one.add_argument(
        "--certificate", choices=["own", "acme"], default="own", help="of the fleet's own CA, or of Let's Encrypt"
    )
    one.add_argument(
        "--wifi", metavar="SSID", help="a network at the first start; its password is asked for, or read as a line"
    )

    look = commands.add_parser("check", help="say what is missing or wrong, a line each; 0: nothing, 1: something")
    look.add_argument("folder", metavar="DIR", type=Path)
    look.add_argument("--json", action="store_true", help="the faults as JSON")

    more = commands.add_parser("add-kit", help="one kit more")
    more.add_argument("kit", metavar="NAME")
    more.add_argument("-i", "--inventory", dest="folder", metavar="DIR", type=Path, required=True)

    hide = commands.add_parser(
        "secret", help="set a kit's variable to a secret, encrypted; it is asked for, or read as a line"
    )
    hide.add_argument("kit", metavar="NAME", help="the kit, or all")
    hide.add_argument("variable", metavar="VARIABLE", help="such as secret_pin_a")
    hide.add_argument("-i", "--inventory", dest="folder", metavar="DIR", type=Path, required=True)

    believe = commands.add_parser("trust", help="add the fleet's CA to your Firefox and Chromium")
    believe.add_argument("folder", metavar="DIR", type=Path)

    reach = commands.add_parser("ssh", help="a shell on the server or a kit, or one command there")
    reach.add_argument("host", metavar="HOST", help="server, or a kit's name: that one through its tunnel")
    reach.add_argument("-i", "--inventory", dest="folder", metavar="DIR", type=Path, required=True)
    reach.add_argument("words", metavar="COMMAND", nargs=argparse.REMAINDER, help="what runs there; a shell without")
    return made


def parse(given: list[str]) -> argparse.Namespace:
    """Raises SystemExit as argparse does. ``ssh HOST -i DIR COMMAND``: argparse alone would take -i for the COMMAND's."""
    if given[:1] == ["ssh"] and given[2:3] in (["-i"], ["--inventory"]):
        given = ["ssh", *given[2:4], given[1], *given[4:]]
    return parser().parse_args(given)


def _ask(flag: str, given: str | None, question: str, default: str | None = None, *, needed: bool = False) -> str:
    """The flag's value; else the answer on a terminal; else the default, but for a flag that is ``needed``."""
    if given is not None:
        return given
    if sys.stdin.isatty():
        while True:
            answer = input(f"{question}{f' [{default}]' if default else ''}: ").strip() or default
            if answer is not None:
                return answer
    if needed or default is None:
        raise FleetError(flag, "is missing, and there is no terminal to ask on", "./kit fleet new --help")
    return default


def _secret(question: str) -> str:
    """A secret: from the terminal without echo, or one line of the standard input."""
    value = getpass.getpass(f"{question}: ") if sys.stdin.isatty() else sys.stdin.readline().rstrip("\n")
    if not value:
        raise FleetError(question, "is empty", "type it, or give it as a line on the standard input")
    return value


def _keys(files: list[Path] | None) -> list[str]:
    """The public keys in ``files``, or those of ~/.ssh. FleetError: a file that is none."""
    lines = []
    for file in files or sorted(Path.home().glob(".ssh/id_*.pub")):
        try:
            line = file.expanduser().read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise FleetError(
                file, getattr(error, "strerror", None) or "not text", "the .pub file of your key"
            ) from None
        if not new.SSH_KEY.fullmatch(line):
            raise FleetError(
                file, "no public SSH key", "the .pub file of your key; make one with ssh-keygen -t ed25519"
            )
        lines.append(line)
    return lines


def _new(told: argparse.Namespace) -> None:
    keys = _keys(told.ssh_key)
    server = _ask(
        "--server", told.server, "Server: aws, or the address of a machine with SSH and sudo", "aws", needed=True
    )
    name = _ask("--name", told.name, "Its DNS name (empty: its address)", "")
    kits = told.kit or _ask("--kit", None, "Kits, separated by blanks", "kit-01").split()
    country = _ask("--country", told.country, "Country where the kits are used (DE, GB, US …)").upper()
    wifi = _ask("--wifi", told.wifi, "Wi-Fi at the first start (empty: Ethernet)", "")
    wanted = new.Wanted(
        server, name, kits, country, keys, told.login, told.certificate, wifi,
        _secret(f"Password of {wifi}") if wifi else "", told.timezone,
    )  # fmt: skip
    new.make(told.folder, wanted)
    print(f"made {told.folder}: server {server}, {', '.join(kits)}")
    print(f"keep a copy of {told.folder}/{files.KEY}: it opens the fleet's secrets")
    print(f"next: ./kit provision {'aws' if server == 'aws' else 'server'} -i {told.folder}")


def _check(told: argparse.Namespace) -> int:
    found = check.faults(told.folder)
    if told.json:
        faults = [{"file": one.place, "what": one.what, "hint": one.hint} for one in found]
        print(json.dumps({"faults": faults}, indent=1))
    elif found:
        print("\n".join(map(str, found)), file=sys.stderr)
    else:
        print(f"{told.folder}: good")
    return 1 if found else 0


def main(arguments: list[str] | None = None) -> int:
    """0 done, 1 refused or faults found, 2 usage, 130 Ctrl-C."""
    told = parse(sys.argv[1:] if arguments is None else arguments)
    try:
        match told.command:
            case "new":
                _new(told)
            case "check":
                return _check(told)
            case "add-kit":
                new.add_kit(told.folder, told.kit)
                print(f"added {told.kit} to {told.folder}")
            case "secret":
                print(files.set_secret(told.folder, told.kit, told.variable, _secret(f"{told.variable} of {told.kit}")))
            case "ssh":
                words = access.ssh(told.folder, told.host, told.words)
                os.execvp(words[0], words)  # noqa: S606 - no shell
            case "trust":
                for place in access.trust(told.folder, Path.home()):
                    print(f"trusted in {place}")
    except FleetError as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        print(f"{error.filename}: {error.strerror}; hint: may you read and write there?", file=sys.stderr)
        return 1
    except (KeyboardInterrupt, EOFError):
        return 130
    return 0
