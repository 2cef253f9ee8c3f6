"""``tandem-release``: the command line. Exit status: 0 done; 1 not healthy and taken back, or held by a measurement; 2 wrong usage or
configuration; 3 this machine lacks something; 130 Ctrl-C."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from tandem_release.disk import ReleaseError, forgets
from tandem_release.place import Place
from tandem_release.releases import Releases
from tandem_release.service import Systemd
from tandem_release.switch import Limits, Outcome, Switch


def seconds(text: str) -> float:
    """0 to a week."""
    value = float(text)
    if not 0 <= value <= 604800:
        raise argparse.ArgumentTypeError(f"{text}: seconds from 0 to 604800")
    return value


def count(text: str) -> int:
    """Of releases to keep."""
    value = int(text)
    if not 2 <= value <= 100:
        raise argparse.ArgumentTypeError(f"{text}: from 2 to 100, so that there is a way back")
    return value


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = argparse.ArgumentParser(
        prog="tandem-release",
        description="Which release of the collector this probe runs. A release that does not report healthy in time is taken back.",
    )
    top.add_argument(
        "--home", type=Path, default=Path("/opt/tandem"), metavar="FOLDER", help="of the releases; default: %(default)s"
    )
    top.add_argument(
        "--root", type=Path, default=Path("/"), metavar="FOLDER", help="of the system; default: %(default)s"
    )
    top.add_argument("--json", action="store_true", help="answer with one JSON object")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    commands.add_parser("status", help="what is installed, what runs, what was before")
    install = commands.add_parser("install", help="a wheel as a release; what runs is not touched")
    install.add_argument("wheel", type=Path)
    install.add_argument("--release", metavar="NAME", help="default: the wheel's version")
    for name, what in (
        ("switch", "to a release, with the files in HOME/staged; back when it is not healthy"),
        ("back", "to the release before, with the files as they are"),
    ):
        switch = commands.add_parser(name, help=what)
        if name == "switch":
            switch.add_argument("release")
        switch.add_argument(
            "--wait", type=seconds, default=900.0, metavar="S", help="for a measurement to end; default: %(default)g"
        )
        switch.add_argument("--healthy-within", type=seconds, default=300.0, metavar="S", help="default: %(default)g")
        switch.add_argument(
            "--steady", type=seconds, default=20.0, metavar="S", help="healthy for so long; default: %(default)g"
        )
    commands.add_parser(
        "recover", help="take back what a power cut left unproven; for the boot, before the collector starts"
    )
    prune = commands.add_parser("prune", help="remove the oldest releases")
    prune.add_argument("--keep", type=count, default=3, metavar="N", help="default: %(default)s")
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the return value is the exit status."""
    args = parser().parse_args(argv)
    releases = Releases(args.home)
    place = Place(releases, args.root)
    try:
        if args.command == "status":
            return _answer(args.json, _status(place), 0)
        # To take back in memory what a power cut left on the disk is right at each start, until the next playbook.
        if args.command != "recover" and forgets(args.root):
            raise ReleaseError(
                "the root is read-only and would forget it; mend: tandem-root writable --reboot, then again", 3
            )
        _finish_what_was_begun()
        with releases.alone():
            return _act(args, releases, place)
    except ReleaseError as error:
        _answer(args.json, {"changed": False, "ok": False, "reason": str(error)}, 0) if args.json else None
        print(f"tandem-release: {error}", file=sys.stderr)
        return error.status
    except PermissionError as error:
        print(f"tandem-release: {error.filename}: {error.strerror}; mend: run it as root", file=sys.stderr)
        return 3
    except KeyboardInterrupt:
        print("tandem-release: stopped; all is as before", file=sys.stderr)
        return 130


def _finish_what_was_begun() -> None:
    """A lost SSH connection ends nothing; SIGTERM is as Ctrl-C: what was begun is taken back."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, stop)


def _act(args: argparse.Namespace, releases: Releases, place: Place) -> int:
    if args.command == "install":
        release, changed = releases.install(args.wheel, args.release)
        return _answer(args.json, {"changed": changed, "ok": True, "release": release}, 0)
    if args.command == "prune":
        gone = releases.prune(args.keep)
        return _answer(args.json, {"changed": bool(gone), "ok": True, "removed": gone}, 0)
    if args.command == "recover":
        if not place.journal.exists():
            return _answer(args.json, {"changed": False, "ok": True}, 0)
        return _answer(args.json, {"changed": True, "ok": True, "release": place.restore()}, 0)
    to = args.release if args.command == "switch" else _before(releases)
    limits = Limits(args.wait, args.healthy_within, args.steady)
    outcome = Switch(place, Systemd(args.home, args.root), limits).to(to)
    return _answer(args.json, _told(outcome, to), 0 if outcome.lacked is None else 1)


def _before(releases: Releases) -> str:
    before = releases.linked("previous")
    if before is None:
        raise ReleaseError("there is no release before this one; mend: tandem-release switch RELEASE")
    return before


def _told(outcome: Outcome, to: str) -> dict[str, Any]:
    told: dict[str, Any] = {
        "changed": outcome.changed,
        "ok": outcome.lacked is None,
        "release": outcome.release,
        "seconds": round(outcome.seconds, 1),
    }
    if outcome.lacked is not None:
        told["reason"] = f"release {to} did not report healthy: {outcome.lacked}"
        if outcome.release != to:
            told["reason"] += f"; back on {outcome.release}"
        if outcome.back_lacks is not None:
            told["reason"] += f", which does not either: {outcome.back_lacks}"
    return told


def _status(place: Place) -> dict[str, Any]:
    releases = place.releases
    return {
        "installed": releases.installed(),
        "current": releases.linked("current"),
        "previous": releases.linked("previous"),
        "unproven": place.journal.exists(),
    }


def _answer(as_json: bool, told: dict[str, Any], status: int) -> int:
    if as_json:
        print(json.dumps(told))
        return status
    for name, value in told.items():
        print(f"{name}: {', '.join(value) if isinstance(value, list) else value}")
    return status
