"""``tandem preflight``: the check before a kit is handed out."""

from __future__ import annotations

import argparse
import sys
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from tandem.cli.command import (
    HERE,
    Actions,
    CommandError,
    ExitCode,
    command,
    configuration,
    log_to_stderr,
    number,
    output,
)

if TYPE_CHECKING:
    from tandem.app.preflight.check import Report
    from tandem.app.preflight.lines import Line

_LINES = """Each line passes, fails with its hint, follows from another line that fails, or is skipped and says why. What follows needs no
hint of its own. The lines: collector, modem, sim, registered, levels, path, data and mptcp of each path, clock, gps, power, disk, spool,
uploads, player, server, metrics, token, budget, version, tunnel; what each means, and what to do: docs/field/hand-out.md."""


def add(commands: Actions[argparse.ArgumentParser]) -> None:
    result = "the result as one JSON object"
    parser = command(commands, "preflight", main, "the check before a kit is handed out", config=True, json=result)
    parser.epilog = _LINES
    page = "also write one page for the box: FILE.html for a printer, any other name as text"
    parser.add_argument("--page", type=Path, metavar="FILE", help=page)
    wait = f"for what takes its time: registration, a fix, the clock, another run; {HERE}"
    parser.add_argument("--wait", type=number(0, 3600, "seconds"), default=60.0, metavar="S", help=wait)
    accept = "this line may fail: gps, or with its path as levels:a; may be given several times"
    parser.add_argument("--accept", action="append", default=[], metavar="LINE", help=accept)


def main(args: argparse.Namespace) -> int:
    """Looks at everything that a kit needs in the field, and measures a little over each path (below 1 MB of each SIM). Asks the
    running collector; where none runs, it is one itself for the time, as root. Exit status: 0 ready, 1 a line fails, 2 wrong usage or
    configuration, 3 this machine misses a requirement or the collector may not be queried."""
    from tandem.app.preflight.check import CheckOptions, check
    from tandem.spool.durable import write_durably

    def progress(what: str) -> None:
        if not args.json:
            print(what, file=sys.stderr, flush=True)

    log_to_stderr()
    config = configuration(args)
    _known(args.accept, [path.name for path in config.paths])
    try:
        report = check(config, CheckOptions(args.wait, args.accept, progress))
    except ValueError as error:  # of a setup that cannot be
        raise CommandError(error) from error
    output(args, report.as_json(), lambda: [text(report)])
    if args.page is not None:
        written = page(report) if args.page.suffix in (".html", ".htm") else text(report) + "\n"
        try:
            write_durably(args.page, written.encode())
        except OSError as error:
            what = f"{args.page}: {error.strerror}; hint: name a file in a folder that you may write"
            raise CommandError(what, ExitCode.ENVIRONMENT) from error
    return ExitCode.OK if report.ok else ExitCode.NEGATIVE


def _known(accepted: list[str], paths: list[str]) -> None:
    """CommandError for what is no line: accepted by mistake, a line would seem to be looked at."""
    from tandem.app.preflight.lines import TITLES

    for label in accepted:
        name, _, path = label.partition(":")
        if name not in TITLES or (path and path not in paths):
            known = ", ".join(TITLES)
            raise CommandError(
                f"--accept {label}: no such line; known: {known}, with a path's ({', '.join(paths)}) as levels:{paths[0]}"
            )


_WORDS = {"pass": "pass", "fail": "FAIL", "follows": "(fail)", "skipped": "-", "accepted": "accepted"}


def text(report: Report) -> str:
    """A line each, hints below those that fail, and the verdict."""
    head = f"{report.probe}  {report.at:%Y-%m-%d %H:%M} UTC  {_versions(report)}"
    width = max(len(_title(line)) for line in report.lines)
    lines = [head, ""]
    for line in report.lines:
        lines.append(f"{_WORDS[line.state]:<8}  {_title(line):<{width}}  {line.finding}")
        if (after := _below(line)) is not None:
            lines.append(f"{'':<8}  {'':<{width}}  {after}")
    return "\n".join([*lines, "", _verdict(report)])


def _title(line: Line) -> str:
    from tandem.app.preflight.lines import TITLES

    name = TITLES[line.name]
    return name if line.path is None else f"{name} {line.path}"


def _below(line: Line) -> str | None:
    """What is to be done about it; None where nothing is."""
    if line.state == "follows":
        from tandem.app.preflight.lines import label

        return f"follows from: {', '.join(label(name) for name in line.because)}"
    return f"hint: {line.hint}" if line.state == "fail" else None


def _verdict(report: Report) -> str:
    if report.ok:
        accepted = [line.label for line in report.lines if line.state == "accepted"]
        return f"{report.probe} is ready" + (f"; accepted: {', '.join(accepted)}" if accepted else "")
    roots = [line.label for line in report.lines if line.state == "fail"]
    return f"{report.probe} is not ready: fix {', '.join(roots)}"


def _versions(report: Report) -> str:
    return ", ".join(f"{name} {report.software[name]}" for name in ("tandem", "kernel") if report.software.get(name))


_STYLE = """
@page { margin: 12mm }
body { font: 10pt/1.3 sans-serif; color: #000; background: #fff; margin: 0 auto; max-width: 48em; padding: 1em }
h1 { font-size: 16pt; margin: 0 }
.outcome { border: 2pt solid; padding: .3em .6em; font-size: 13pt; font-weight: bold; margin: .6em 0 }
table { border-collapse: collapse; width: 100% }
td { border-bottom: .4pt solid #999; padding: .15em .4em; vertical-align: top }
td:first-child { width: 4.5em }
td:nth-child(2) { white-space: nowrap }
.fail, .follows { font-weight: bold }
.skipped { color: #555 }
small { color: #333 }
@media print { body { padding: 0; font-size: 8.5pt } tr { break-inside: avoid } }
"""


def page(report: Report) -> str:
    """A whole document. It loads nothing: no script, no font, no picture."""
    networks = ", ".join(f"{path}: {operator or 'not named'}" for path, operator in report.operators.items())
    rows = "\n".join(_row(line) for line in report.lines)
    parts = [_versions(report)]
    parts += [str(report.software[key]) for key in ("machine", "system") if report.software.get(key)]
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{escape(report.probe)}: preflight</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>{escape(report.probe)}</h1>
<p>Checked {report.at:%Y-%m-%d %H:%M} UTC. Networks: {escape(networks)}</p>
<p class="outcome">{escape(_verdict(report))}</p>
<table>
{rows}
</table>
<p><small>{escape(", ".join(part for part in parts if part))}. Made by <code>tandem preflight</code>; it holds no number
of a SIM, subscriber or modem, and no address.</small></p>
</body>
</html>
"""


def _row(line: Line) -> str:
    after = _below(line)
    more = "" if after is None else f"<br><small>{escape(after)}</small>"
    cells = f"<td>{_WORDS[line.state]}</td><td>{escape(_title(line))}</td><td>{escape(line.finding)}{more}</td>"
    return f'<tr class="{line.state}">{cells}</tr>'
