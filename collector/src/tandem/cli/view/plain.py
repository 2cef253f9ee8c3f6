"""The status object as plain lines, for logs and pipes. Pure."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from typing import Any

from tandem.cli.view.figures import (
    cell,
    clock,
    clock_words,
    duration,
    event_detail,
    event_words,
    kind_words,
    number,
    percent,
    phase_words,
    radio_words,
    rate,
    size,
)
from tandem.cli.view.health_text import WIDTH, health_line, sim_lines, software_line, wrong_lines
from tandem.schema.grades import meaning


class Lines:
    """What is new since the status before: one line a second of state, one a minute of health, one for each event, each finished run
    and each thing that goes wrong."""

    def __init__(self) -> None:
        self._events: list[dict[str, Any]] = []
        self._finished: set[str] = set()
        self._second: int | None = None
        self._minute: int | None = None
        self._wrong: set[str] = set()

    def of(self, status: dict[str, Any]) -> list[str]:
        """The lines that ``status`` brings; none when nothing is new."""
        lines: list[str] = []
        events = status.get("events") or []
        lines += [event_line(event) for event in events if event not in self._events]
        self._events = list(events)
        finished = status.get("finished") or []
        now = clock(status.get("utc_ns"))
        lines += [f"{now} run     {finished_line(run)}" for run in finished if run.get("id") not in self._finished]
        self._finished = {str(run.get("id")) for run in finished}
        wrong = {re.sub("[0-9]+", "#", str(text)): text for text in status.get("wrong") or []}  # durations grow
        lines += [f"{now} wrong   {text}" for kind, text in wrong.items() if kind not in self._wrong]
        self._wrong = set(wrong)
        second = int(status.get("uptime_s") or 0)
        if second // 60 != self._minute and (line := health_line(status)):
            self._minute = second // 60
            lines.append(f"{now} machine {line}")
        if second != self._second:
            self._second = second
            lines.append(state_line(status))
        return lines


def state_line(status: dict[str, Any]) -> str:
    """Radio of every modem, movement, the run, the spool."""
    parts = [clock(status.get("utc_ns")), "moving" if status.get("mobile") else "still "]
    for path, modem in (status.get("modems") or {}).items():
        level = f"{number(modem.get('rsrp_dbm'))} dBm SINR {number(modem.get('sinr_db'))}"
        service = modem.get("state") in ("connected", "idle", "unknown")
        parts.append(f"{path}/{modem.get('operator')} {level if service else radio_words(modem)} {cell(modem)}")
    runs = (status.get("run") or {}).get("runs", [])
    parts += [f"{kind_words(run)} {run['path']} {rate(run.get('goodput_bit_per_s'))}{_shares(run)}" for run in runs]
    parts += [words for run in runs if (words := phase_words(run.get("phase")))]
    if newest := round_trips_told(status):
        parts.append(f"round trip {newest}")
    spool = status.get("spool") or {}
    parts.append(f"records {spool.get('made', 0)}, {spool.get('pending', 0)} waiting")
    if status.get("trouble"):
        parts.append(f"! {status['trouble']}")
    return " | ".join(parts)


def _shares(run: dict[str, Any]) -> str:
    """As `` (a 65 % 48 ms, b 35 % 512 ms)``; empty where a run has one subflow."""
    subflows = run.get("subflows") or []
    if len(subflows) < 2:
        return ""
    told = (f"{s.get('path')} {percent(s.get('share'))} {number(s.get('rtt_ms'), 0, ' ms')}" for s in subflows)
    return f" ({', '.join(told)})"


def event_line(event: dict[str, Any]) -> str:
    """One event."""
    where = f"{event['path']}/{event['operator']} " if event.get("path") else ""
    return f"{clock(event.get('utc_ns'))} event   {where}{event_words(event)} {event_detail(event)}".rstrip()


def round_trips_told(status: dict[str, Any]) -> str:
    """The newest of each path, as ``a 41 ms, b lost``; empty when they are off."""
    told = []
    for path, last in (status.get("round_trips") or {}).items():
        word = meaning("round_trip", "outcome", last.get("outcome")).words
        told.append(f"{path} {number(last.get('rtt_ms'), 0, ' ms') if last.get('rtt_ms') is not None else word}")
    return ", ".join(told)


def finished_line(run: dict[str, Any]) -> str:
    """One finished run."""
    figures = (
        f"{rate(run.get('goodput_bit_per_s'))}, {size(run.get('bytes'))} in {number(run.get('duration_s'), 1, ' s')}"
    )
    notes = ", fell back to TCP" if run.get("fallback") else ""
    if not run.get("ok"):
        notes += f", failed: {run.get('failure') or 'see its manifest'}"
    return f"{kind_words(run)} over {run.get('path')} ({run.get('pairing')}): {figures}{notes}"


def finished_table(runs: Sequence[dict[str, Any]]) -> str:
    """Finished runs as a table."""
    rows = [("RUN", "KIND", "PATH", "GOODPUT", "BYTES", "TIME", "")]
    for run in runs:
        note = "ok" if run.get("ok") else str(run.get("failure") or "failed")
        note += ", fell back to TCP" if run.get("fallback") else ""
        rows.append(
            (
                str(run.get("id")),
                kind_words(run),
                str(run.get("path")),
                rate(run.get("goodput_bit_per_s")),
                size(run.get("bytes")),
                number(run.get("duration_s"), 1, " s"),
                note,
            )
        )
    widths = [max(len(row[n]) for row in rows) for n in range(6)]
    return "\n".join("  ".join([*(row[n].ljust(widths[n]) for n in range(6)), row[6]]).rstrip() for row in rows)


def traces_line(traces: dict[str, Any]) -> str:
    """Files of runs on their way to the server."""
    waiting = f"{traces.get('waiting', 0)} waiting ({size(traces.get('waiting_bytes'))})"
    kept = f"{traces.get('kept', 0)} that the server has are kept ({size(traces.get('kept_bytes'))})"
    aside = f", {traces['aside']} that cannot go" if traces.get("aside") else ""
    return f"traces: {waiting}{aside}, {kept}; {traces.get('said')}"


def summary(status: dict[str, Any]) -> str:
    """The whole status in a few lines, for ``tandem status``."""
    movement = f"moving for {duration(status.get('mobile_since_s'))}" if status.get("mobile") else "still"
    movement += f" at {status['speed_class']} speed" if status.get("speed_class") else ""
    polls, spool = status.get("polls") or {}, status.get("spool") or {}
    lines = [f"{status.get('probe')}: up {duration(status.get('uptime_s'))}, {movement}"]
    for path, modem in (status.get("modems") or {}).items():
        who = modem.get("model") or modem.get("driver") or "modem not identified"
        levels = f"RSRP {number(modem.get('rsrp_dbm'), 0, ' dBm')}, SINR {number(modem.get('sinr_db'), 0, ' dB')}"
        lines.append(f"path {path}: {modem.get('operator')}, {who}, {radio_words(modem)}, {levels}, {cell(modem)}")
    run = status.get("run")
    if run:
        lines.append(
            f"running: {run.get('pairing')} pair {run.get('pair')}, run {run.get('number')} of {run.get('of')}"
        )
        lines += [f"  {kind_words(r)}: {words}" for r in run.get("runs", []) if (words := phase_words(r.get("phase")))]
    spent = status.get("spent_today_bytes") or {}
    if spent:
        limits = status.get("day_limit_bytes") or {}
        of = {path: "" if limit is None else f" of {size(limit)}" for path, limit in limits.items()}
        told = (f"{path} {size(count)}{of.get(path, '')}" for path, count in spent.items())
        lines.append(f"today (UTC): {', '.join(told)}")
    if status.get("radio_only"):
        lines += textwrap.wrap(f"only the radio is measured: {status['radio_only']}", WIDTH, subsequent_indent="  ")
    if newest := round_trips_told(status):
        lines.append(f"round trips: {newest}")
    lines.append(f"polls: {polls.get('made', 0)}, of these {polls.get('late', 0)} late")
    lines.append(
        f"records: {spool.get('made', 0)} made, {spool.get('sent', 0)} sent, {spool.get('pending', 0)} waiting, "
        f"{spool.get('rejected', 0)} rejected; captures: {size(status.get('captures_bytes'))}"
    )
    if isinstance(status.get("traces"), dict):
        lines.append(traces_line(status["traces"]))
        lines += textwrap.wrap(f"  {status['traces'].get('intended') or ''}", WIDTH, subsequent_indent="  ")
    if status.get("clock"):
        lines.append(f"clock: {clock_words(status['clock'])}")
    if line := health_line(status, WIDTH - len("machine: ")):
        lines.append(f"machine: {line}")
    lines += sim_lines(status)
    if line := software_line(status):
        lines.append(line)
    lines += wrong_lines(status)
    if status.get("trouble") and "wrong" not in status:
        lines.append(f"trouble: {status['trouble']}")
    if status.get("finished"):
        lines += ["", finished_table(status["finished"])]
    return "\n".join(lines)
