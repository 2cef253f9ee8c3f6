"""How far pushed campaigns are, as a table of probes. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from tandem.schema.campaign import PAPER
from tandem_server.registry import QueuedCampaign
from tandem_server.report.words import visible

_DAY_NS = 86400 * 10**9
_HEAD = ("probe", "state", "done", "planned", "failed", "days left", "id")


def progress_lines(rows: Sequence[QueuedCampaign], now_utc_ns: int) -> list[str]:
    """A table for each campaign and form. ``planned`` and ``days left`` are ``-`` until the probe tells of runs."""
    groups: dict[str, list[QueuedCampaign]] = {}
    for row in rows:
        form = "" if row.pushed.form == PAPER else f" ({row.pushed.form} form)"
        groups.setdefault(row.pushed.name + form, []).append(row)
    lines = []
    for title, members in groups.items():
        lines.append(f"{title}, {sum(m.state == 'done' for m in members)} of {len(members)} done")
        cells = [_HEAD, *(_cells(m, now_utc_ns) for m in members)]
        widths = [max(len(row[n]) for row in cells) for n in range(len(_HEAD))]
        reasons = ["", *(visible(m.reason or "") for m in members)]
        for line, reason in zip(cells, reasons, strict=True):
            aligned = [c.ljust(w) if n < 2 else c.rjust(w) for n, (c, w) in enumerate(zip(line, widths, strict=True))]
            lines += ["  " + "  ".join(aligned), *([f"    {reason}"] if reason else [])]
    return lines


def _cells(row: QueuedCampaign, now_utc_ns: int) -> tuple[str, ...]:
    steps = row.progress.get("steps", {}).values()
    done, planned = (sum(counts.get(name, 0) for counts in steps) for name in ("made", "of"))
    failed = row.progress.get("runs", {}).get("failed", 0)
    left = _days_left(row, done, planned, now_utc_ns)
    told = (str(planned) if planned else "-", str(failed), "-" if left is None else f"{left:.1f}")
    return (row.probe, row.state, str(done), *told, row.pushed.id)


def _days_left(row: QueuedCampaign, done: int, planned: int, now_utc_ns: int) -> float | None:
    """At the pace since it was pushed; None where that tells nothing."""
    if row.state != "running" or not done:
        return None
    return (now_utc_ns - row.pushed.pushed_utc_ns) / _DAY_NS * (planned - done) / done
