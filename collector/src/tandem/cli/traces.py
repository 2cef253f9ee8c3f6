"""``tandem traces``: captures and other files of runs on their way to the server."""

from __future__ import annotations

import argparse
from typing import Any

from tandem.cli.command import (
    Actions,
    CommandError,
    ExitCode,
    NoAnswerError,
    answer_of,
    columns,
    command,
    group,
    output,
)
from tandem.cli.status import add_where, socket_of


def add(commands: Actions[argparse.ArgumentParser]) -> None:
    actions = group(
        commands,
        "traces",
        "captures and results on their way to the server",
        "Captures and other files of runs go to the server at night, when the radio has been still for two hours, over Wi-Fi or Ethernet "
        "([traces] in the configuration says otherwise). The probe's copy goes only when the server's receipt is here.",
    )
    status = command(actions, "status", _status, "what waits, and for what", json=True)
    listing = command(
        actions, "list", _list, "every file: waiting in its turn, damaged, missing, refused or received", json=True
    )
    upload = command(actions, "upload", _upload, "let files go first, or now", json=True)
    upload.add_argument("names", nargs="*", metavar="NAME", help="as tandem traces list shows it")
    upload.add_argument("--now", action="store_true", help="do not wait for the night")
    for action in (status, listing, upload):
        add_where(action)


def _status(args: argparse.Namespace) -> None:
    """What waits, what goes up now, and why nothing does. Without a running collector: what lies on the disk. Exit status: 0, or 2 when
    the configuration is wrong."""
    found = _looked_up(args, "status")
    output(args, found, lambda: _summary(found["traces"]))


def _summary(traces: dict[str, Any]) -> list[str]:
    from tandem.cli.view.text import traces_line

    now = traces.get("now")
    if not isinstance(now, dict):
        return [traces_line(traces)]
    under_way = f"now: {now.get('name')} over {now.get('path')}, {now.get('offset')} of {now.get('bytes')} bytes"
    return [traces_line(traces), under_way]


def _list(args: argparse.Namespace) -> None:
    """Every file that a run's manifest names: waiting, in its turn; damaged (not what its manifest says: it goes up below damaged/ and
    stays here); missing (it is gone from here, and the server never had it); refused (by the server); received. Also without a running
    collector. Exit status: 0, or 2 when the configuration is wrong."""
    found = _looked_up(args, "list")
    output(args, found, lambda: columns([_row(file) for file in found["files"]], right=(1,)))


def _row(file: dict[str, Any]) -> tuple[str, str, str]:
    from tandem.cli.view.text import size

    kept = "" if file.get("kept") else ", no longer here"
    reason = f": {file['reason']}" if file.get("reason") else ""
    return file["state"], size(file["bytes"]), f"{file['name']}{kept}{reason}"


def _upload(args: argparse.Namespace) -> None:
    """Names files that are to go before all others; with --now at once, whatever the time of day and the radio (all that wait, when
    none is named). Never during a run, and never beyond a SIM's budget. Holds until nothing waits or the collector ends. Exit status: 0
    accepted, 1 no collector runs or it refuses, 2 wrong usage or configuration."""
    from tandem.cli.view.text import traces_line

    if not args.names and not args.now:
        raise CommandError("nothing to do; hint: name files, or give --now for all that wait")
    found = _answer(args, {"action": "upload", "names": args.names, "now": args.now})
    output(args, found, lambda: [traces_line(found["traces"])])


def _answer(args: argparse.Namespace, request: dict[str, Any]) -> dict[str, Any]:
    """The running collector's answer. NoCollectorError, CommandError."""
    answer = answer_of(socket_of(args), {"op": "traces", **request}, 10.0, ExitCode.NEGATIVE)
    return {name: value for name, value in answer.items() if name != "type"}


def _looked_up(args: argparse.Namespace, action: str) -> dict[str, Any]:
    """The running collector's answer; without one, what manifests, receipts and files say."""
    from tandem.app.daemon.status_socket import NoCollectorError
    from tandem.export import TraceQueue

    try:
        return _answer(args, {"action": action})
    except (NoCollectorError, NoAnswerError):
        queue = TraceQueue(socket_of(args).parent)
        queue.scan()
        return {"traces": {**queue.counts(), "said": "no collector runs", "now": None}, "files": queue.rows()}
