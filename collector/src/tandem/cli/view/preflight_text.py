"""The check's result as lines for people. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tandem.app.preflight.lines import TITLES, label

if TYPE_CHECKING:
    from tandem.app.preflight.check import Report
    from tandem.app.preflight.lines import Line

WORDS = {"pass": "pass", "fail": "FAIL", "follows": "(fail)", "skipped": "-", "accepted": "accepted"}


def text(report: Report) -> str:
    """A line each, mends below those that fail, and what it comes to."""
    head = f"{report.probe}  {report.at:%Y-%m-%d %H:%M} UTC  {versions(report)}"
    width = max(len(title(line)) for line in report.lines)
    lines = [head, ""]
    for line in report.lines:
        lines.append(f"{WORDS[line.state]:<8}  {title(line):<{width}}  {line.finding}")
        if (after := below(line)) is not None:
            lines.append(f"{'':<8}  {'':<{width}}  {after}")
    return "\n".join([*lines, "", verdict(report)])


def title(line: Line) -> str:
    """As ``modem a``."""
    name = TITLES[line.name]
    return name if line.path is None else f"{name} {line.path}"


def below(line: Line) -> str | None:
    """What is to be done about it; None where nothing is."""
    if line.state == "follows":
        return f"follows from: {', '.join(label(name) for name in line.because)}"
    return f"hint: {line.mend}" if line.state == "fail" else None


def verdict(report: Report) -> str:
    """The last line."""
    if report.ok:
        accepted = [line.label for line in report.lines if line.state == "accepted"]
        return f"{report.probe} is ready" + (f"; accepted: {', '.join(accepted)}" if accepted else "")
    roots = [line.label for line in report.lines if line.state == "fail"]
    return f"{report.probe} is not ready: mend {', '.join(roots)}"


def versions(report: Report) -> str:
    """What runs here."""
    told = report.software
    named: Sequence[tuple[str, str]] = (("tandem", "tandem"), ("kernel", "kernel"))
    return ", ".join(f"{name} {told[key]}" for key, name in named if told.get(key))
