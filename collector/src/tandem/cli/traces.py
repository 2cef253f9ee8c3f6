"""``tandem traces``: captures and other files of runs on their way to the server."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from typing import Any

from tandem.cli.status import add_where, socket_of


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the subcommand."""
    parser = subparsers.add_parser(
        "traces",
        help="captures and results on their way to the server",
        description="Captures and other files of runs go to the server at night, when the radio has been still for two hours, over "
        "Wi-Fi or Ethernet ([traces] in the configuration says otherwise). The probe's copy goes only when the server's receipt is here.",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    status = actions.add_parser(
        "status",
        help="what waits, and for what",
        description="What waits, what goes up now, and why nothing does. Without a running collector: what lies on the disk. Exit "
        "status: 0, or 2 when the configuration is wrong.",
    )
    listing = actions.add_parser(
        "list",
        help="every file: waiting in its turn, damaged, missing, refused or received",
        description="Every file that a run's manifest names: waiting, in its turn; damaged (not what its manifest says: it goes up "
        "below damaged/ and stays here); missing (it is gone from here, and the server never had it); refused (by the server); "
        "received. Also without a running collector. Exit status: 0, or 2 when the configuration is wrong.",
    )
    upload = actions.add_parser(
        "upload",
        help="let files go first, or now",
        description="Names files that are to go before all others; with --now at once, whatever the time of day and the radio (all that "
        "wait, when none is named). Never during a run, and never beyond a SIM's budget. Holds until nothing waits or the collector "
        "ends. Exit status: 0 accepted, 1 no collector runs or it refuses, 2 wrong usage or configuration.",
    )
    upload.add_argument("names", nargs="*", metavar="NAME", help="as tandem traces list shows it")
    upload.add_argument("--now", action="store_true", help="do not wait for the night")
    for action, func in ((status, _status), (listing, _list), (upload, _upload)):
        add_where(action)
        action.add_argument("--json", action="store_true", help="print one JSON object")
        action.set_defaults(func=func)


def _status(args: argparse.Namespace) -> int:
    from tandem.cli.view.plain import traces_line

    return _show(args, "status", lambda told: [traces_line(told["traces"]), *_now(told["traces"])])


def _list(args: argparse.Namespace) -> int:
    return _show(args, "list", lambda told: [_row(row) for row in told["files"]])


def _show(args: argparse.Namespace, action: str, lines: Callable[[dict[str, Any]], list[str]]) -> int:
    from tandem.app.config import ConfigError
    from tandem.app.daemon.status_socket import NoCollectorError

    try:
        try:
            told = _asked(args, {"action": action})
        except NoCollectorError:
            told = _from_disk(args)
    except ConfigError as error:
        print(f"tandem: {error}", file=sys.stderr)
        return 2
    print(json.dumps(told, indent=1) if args.json else "\n".join(lines(told)))
    return 0


def _upload(args: argparse.Namespace) -> int:
    from tandem.app.config import ConfigError
    from tandem.app.daemon.status_socket import NoCollectorError
    from tandem.cli.view.plain import traces_line

    if not args.names and not args.now:
        print("tandem: nothing to do; hint: name files, or give --now for all that wait", file=sys.stderr)
        return 2
    try:
        told = _asked(args, {"action": "upload", "names": args.names, "now": args.now})
    except ConfigError as error:
        print(f"tandem: {error}", file=sys.stderr)
        return 2
    except NoCollectorError as error:
        print(f"tandem: no collector answers: {error}; hint: start it with tandem run", file=sys.stderr)
        return 1
    except ValueError as refused:
        print(f"tandem: {refused}", file=sys.stderr)
        return 1
    print(json.dumps(told, indent=1) if args.json else traces_line(told["traces"]))
    return 0


def _asked(args: argparse.Namespace, request: dict[str, Any]) -> dict[str, Any]:
    """The running collector's answer; ValueError with its reason when it refuses."""
    from tandem.app.daemon.status_socket import NoCollectorError, ask

    try:
        answer = next(iter(ask(socket_of(args), {"op": "traces", **request}, 10.0)), None)
    except TimeoutError as error:
        raise NoCollectorError("it does not answer") from error
    if answer is None:
        raise NoCollectorError("it ended while it was asked")
    if answer.get("type") != "traces":
        raise ValueError(str(answer.get("reason")))
    return {name: value for name, value in answer.items() if name != "type"}


def _from_disk(args: argparse.Namespace) -> dict[str, Any]:
    """What manifests, receipts and files say, without a collector."""
    from tandem.export import TraceQueue

    queue = TraceQueue(socket_of(args).parent, remember=False)
    queue.scan()
    return {"traces": {**queue.counts(), "said": "no collector runs", "now": None}, "files": queue.rows()}


def _now(traces: dict[str, Any]) -> list[str]:
    now = traces.get("now")
    if not isinstance(now, dict):
        return []
    return [f"now: {now.get('name')} over {now.get('path')}, {now.get('offset')} of {now.get('bytes')} bytes"]


def _row(row: dict[str, Any]) -> str:
    from tandem.cli.view.figures import size

    kept = "" if row.get("kept") else ", no longer here"
    reason = f": {row['reason']}" if row.get("reason") else ""
    return f"{row['state']:<9} {size(row['bytes']):>9}  {row['name']}{kept}{reason}"
