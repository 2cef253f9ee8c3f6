"""The check's result as one page for the box: self-contained HTML, A5 or A4, black on white. Pure."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from tandem.cli.view.preflight_text import WORDS, below, title, verdict, versions

if TYPE_CHECKING:
    from tandem.app.preflight.check import Report
    from tandem.app.preflight.lines import Line

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
    """A whole document. It asks nothing of anybody: no script, no font, no picture."""
    networks = ", ".join(f"{path}: {operator or 'not named'}" for path, operator in report.operators.items())
    rows = "\n".join(_row(line) for line in report.lines)
    parts = [versions(report)]
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
<p class="outcome">{escape(verdict(report))}</p>
<table>
{rows}
</table>
<p><small>{escape(", ".join(part for part in parts if part))}. Made by <code>tandem preflight</code>; it holds no number
of a SIM, subscriber or modem, and no address.</small></p>
</body>
</html>
"""


def _row(line: Line) -> str:
    after = below(line)
    more = "" if after is None else f"<br><small>{escape(after)}</small>"
    cells = f"<td>{WORDS[line.state]}</td><td>{escape(title(line))}</td><td>{escape(line.finding)}{more}</td>"
    return f'<tr class="{line.state}">{cells}</tr>'
