"""The status object as a full screen, from 60×16 up, and as a few lines below. Pure: the same status and size, the same picture.

Colours are named ANSI colours, so that they follow the terminal's own theme, with a mark beside them for who sees no colours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.layout import Layout
from rich.panel import Panel
from rich.table import Column, Table
from rich.text import Text

from tandem.cli.view.text import (
    Part,
    cell,
    clock,
    duration,
    event_detail,
    is_number,
    kind_words,
    machine_parts,
    number,
    percent,
    phase_words,
    probe_parts,
    radio_words,
    rate,
    size,
)
from tandem.schema.grades import COLOURS, Tone, event_meaning, meaning, path_colours, title, tone_of, usual

QUIET = COLOURS["quiet"].terminal
LEGEND = f"{COLOURS['fair'].mark} fair {COLOURS['poor'].mark} poor"
ALARM = f"bold reverse {COLOURS['poor'].terminal}"
"""Of what must not be overlooked: reversed, so that it stands out without colours too."""


def style_of(tone: Tone) -> str:
    return COLOURS[tone].terminal


def toned(words: str, tone: Tone, *, bold: bool = False) -> Text:
    """``words`` in the tone's colour, with its mark where it is no good grade."""
    mark = COLOURS[tone].mark if tone in ("fair", "poor") else ""
    return Text(words + mark, f"bold {style_of(tone)}" if bold else style_of(tone))


def colour_of(measurement: str, field: str, value: Any) -> str:  # noqa: ANN401 a JSON value
    return style_of(tone_of(measurement, field, value))


def colours_of(names: list[str]) -> dict[str, str]:
    return {name: colour.terminal for name, colour in path_colours(names).items()}


_EIGHTHS = " ▁▂▃▄▅▆▇█"
_PARTS = " ▏▎▍▌▋▊▉█"


def history(
    values: Sequence[Any], width: int, height: int, low: float, high: float, colour: Callable[[Any], str]
) -> list[Text]:
    """``height`` rows of the last ``width`` values, newest at the right. What is absent is a dot on the lowest row, so that a
    silent modem does not look like a weak one; the smallest value still shows."""
    shown = list(values[-width:]) if width > 0 else []
    rows = [Text(" " * (width - len(shown))) for _ in range(height)]
    for value in shown:
        if not is_number(value):
            for number, row in enumerate(rows):
                row.append("·" if number == height - 1 else " ", "bright_black")
            continue
        share = min(1.0, max(0.0, (value - low) / (high - low)))
        filled = max(1, round(share * height * 8))
        for number, row in enumerate(rows):
            eighths = min(8, max(0, filled - (height - 1 - number) * 8))
            row.append(_EIGHTHS[eighths], colour(value))
    return rows


def bar(value: Any, most: float, width: int, style: str) -> Text:  # noqa: ANN401 a JSON value
    """A bar of at most ``width`` columns on a thin rail; ``most`` is a full one."""
    share = min(1.0, max(0.0, value / most)) if is_number(value) and most > 0 else 0.0
    eighths = round(share * width * 8)
    text = Text("█" * (eighths // 8), style)
    if eighths % 8:
        text.append(_PARTS[eighths % 8], style)
    text.append("·" * (width - len(text)), "bright_black")
    return text


def nice_ceiling(value: float) -> float:
    """The next of 1, 1.5, 2, 3, 5, 7, 10, 15, … from ``value``: a scale that does not jump with every sample."""
    step = 1.0
    while True:
        for factor in (1, 1.5, 2, 3, 5, 7):
            if step * factor >= value:
                return step * factor
        step *= 10


NARROWEST, LOWEST = 60, 16
_PANEL = 3
"""Rows of the lowest panel that shows anything."""


def screen(status: dict[str, Any], width: int, height: int, silent_s: float | None = None) -> RenderableType:
    """The picture of ``status`` for a terminal of ``width`` columns and ``height`` rows. ``silent_s``: for how long the collector has
    said nothing, where that is too long."""
    modems = status.get("modems") or {}
    paths = colours_of(sorted({*modems, *_paths_of_runs(status)}))
    if width < NARROWEST or height < LOWEST:
        return Group(*_few_lines(status, paths, width, height, silent_s))
    rows_wrong = wrong_rows(status, width, 2 if height < 32 else 5)
    run_rows = max(lines_of_run(status), 5 if height >= 22 else 1) + 2
    # The lower panels get what they can fill; the charts what is left.
    outside = 2 + bool(status.get("health")) + len(rows_wrong)
    most, lower = (9, 14) if height >= 32 else (3, 5)
    chart_rows = min(most, max(1, height - outside - run_rows - 4 - lower))
    parts = [Layout(header(status, silent_s), size=1)]
    if modems:
        ways, each = status.get("paths") or {}, width // len(modems)
        radio = Layout(size=chart_rows + 4)
        radio.split_row(
            *(
                Layout(radio_panel(path, modem, ways.get(path), paths[path], each, chart_rows))
                for path, modem in sorted(modems.items())
            )
        )
        parts.append(radio)
    parts.append(Layout(run_panel(status, paths, width), size=run_rows))
    lower_rows = height - outside - run_rows - (chart_rows + 4 if modems else 0)
    if lower_rows >= _PANEL:
        last = Layout(minimum_size=_PANEL)
        half = width // 2 if width >= 100 else width * 3 // 5
        last.split_row(
            Layout(events_panel(status, paths, half, lower_rows - 2), size=half),
            Layout(finished_panel(status, paths, width - half, lower_rows - 2)),
        )
        parts.append(last)
    parts += [Layout(line, size=1) for line in rows_wrong]
    if status.get("health"):
        parts.append(Layout(health_row(status, width), size=1))
    parts.append(Layout(footer(status, width), size=1))
    whole = Layout()
    whole.split_column(*parts)
    return whole


def _paths_of_runs(status: dict[str, Any]) -> set[str]:
    found = {str(run.get("path")) for run in status.get("finished") or []}
    for run in (status.get("run") or {}).get("runs", []):
        found |= {str(s.get("path")) for s in run.get("subflows", []) if s.get("path")} | {str(run.get("path"))}
    return found


def _few_lines(
    status: dict[str, Any], paths: dict[str, str], width: int, height: int, silent_s: float | None
) -> list[Text]:
    """No panels, what matters most first, as many lines as there are rows."""
    first = movement(status).append(f"  {status.get('probe')}", "bold")
    lines = [Text("NO WORD FROM THE COLLECTOR", ALARM) if silent_s is not None else first]
    lines += wrong_rows(status, width, 2)
    for path, modem in sorted((status.get("modems") or {}).items()):
        line = Text(f"{path} ", f"bold {paths[path]}").append_text(state_text(modem)).append(" ")
        away = path_text((status.get("paths") or {}).get(path))
        line.append_text(away if away is not None else levels(modem, width - line.cell_len))
        lines.append(line)
    run = status.get("run")
    lines += run_lines(run, paths, width, full_bar(run)) if run else campaign_lines(status)
    lines += [event_text(event, paths, width) for event in reversed(status.get("events") or [])]
    for line in lines:
        line.no_wrap = True
        line.truncate(width, overflow="ellipsis")
    return lines[:height]


_MORE = 5
"""Columns kept for how many more parts are not well."""


def header(status: dict[str, Any], silent_s: float | None = None) -> Table:
    """Who, movement, when. ``silent_s``: how long the collector has said nothing, where that is too long."""
    sides = Column(no_wrap=True), Column(justify="center", no_wrap=True), Column(justify="right", no_wrap=True)
    row = Table.grid(*sides, expand=True)
    left = Text.assemble((" Tandem ", "bold reverse"), " ", (str(status.get("probe")), "bold"))
    right = Text(f"{clock(status.get('utc_ns'))}  up {duration(status.get('uptime_s'))} ", QUIET)
    if silent_s is not None:
        right = Text(f" NO WORD FOR {duration(silent_s)} ", ALARM)
    row.add_row(left, movement(status), right)
    return row


def movement(status: dict[str, Any]) -> Text:
    state = meaning("health", "mobile", bool(status.get("mobile")))
    style = f"bold {style_of(state.tone)}"
    if not status.get("mobile"):
        return Text(f"■ {state.words.upper()}", style)
    speed = status.get("speed_class")
    how = f" ({meaning('health', 'speed_class', speed).words})" if speed else ""
    return Text(f"▶▶ {state.words.upper()} for {duration(status.get('mobile_since_s'))}{how}", style)


def health_row(status: dict[str, Any], width: int) -> Text:
    """The parts of the probe's health in one row: first what is not well, reversed, then the rest as far as it fits."""
    machine = machine_parts(status)
    parts = [*machine[:2], *probe_parts(status), *machine[2:]]
    row, left = Text(" ", no_wrap=True), 0
    for part in sorted(parts, key=lambda p: {"poor": 0, "fair": 1}.get(p.tone, 2)):
        shown = _part(part)
        if (left and not part.unwell) or row.cell_len + shown.cell_len + 2 + (_MORE if part.unwell else 0) > width:
            left += part.unwell
            continue
        row.append("" if row.cell_len == 1 else "  ").append_text(shown)
    return row.append(f"  +{left}", ALARM) if left else row


def _part(part: Part) -> Text:
    if part.tone == "poor":
        return Text(f" {part.words} ", ALARM)
    if part.tone == "fair":
        return toned(part.words, "fair", bold=True)
    return Text(part.words, QUIET)


def wrong_rows(status: dict[str, Any], width: int, rows: int) -> list[Text]:
    """What is wrong, one row each, the gravest first; the last row says how many more there are."""
    found = [str(text) for text in status.get("wrong") or []]
    if status.get("trouble") and status["trouble"] not in found:
        found.insert(0, str(status["trouble"]))
    lines = []
    for place, text in enumerate(found[:rows], 1):
        left = len(found) - rows
        more = f"  (+{left}: tandem status)" if left > 0 and place == rows else ""
        line = Text(f" ! {text}", f"bold {style_of('poor')}", no_wrap=True)
        line.truncate(width - len(more), overflow="ellipsis")
        lines.append(line.append(more, QUIET))
    return lines


def footer(status: dict[str, Any], width: int) -> Text:
    """Polls, records and captures; the marks' meaning where there is room."""
    polls, spool, wide = status.get("polls") or {}, status.get("spool") or {}, width >= 100
    late, waiting, rejected = polls.get("late", 0), spool.get("pending", 0), spool.get("rejected", 0)
    text = Text.assemble(
        f" polls {polls.get('made', 0)}",
        (f" ({late} late)", style_of("fair") if late else ""),
        f"{'  records ' if wide else '  '}{spool.get('made', 0)} → ",
        (f"{spool.get('sent', 0)} sent", style_of("good")),
        (f", {waiting} waiting", style_of("fair") if waiting > 1000 else ""),
        (f", {rejected} rejected" if rejected else "", f"bold {style_of('poor')}"),
        f" over {spool['path']}" if wide and spool.get("path") else "",
        f"{'  captures ' if wide else '  pcap '}{size(status.get('captures_bytes'))}",
        style=QUIET,
        no_wrap=True,
    )
    if width - text.cell_len > len(LEGEND) + 4:
        text.append(LEGEND.rjust(width - text.cell_len - 1), QUIET)
    text.truncate(width, overflow="ellipsis")
    return text


_LEVELS = (("rsrp_dbm", "dBm"), ("rsrq_db", "dB"), ("sinr_db", "dB"))
_USUAL = usual("radio", "rsrp_dbm")
LOW_DBM, HIGH_DBM = _USUAL.low or -125.0, _USUAL.high or -70.0
_STALE_S = 3.0
_AXIS = 5
_FOR_UNITS, _FOR_RSRQ = 44, 34
"""Columns."""


def radio_panel(
    path: str, modem: dict[str, Any], way: dict[str, Any] | None, colour: str, width: int, chart_rows: int
) -> Panel:
    """``way``: the path's own state; ``width`` of the whole panel, ``chart_rows`` of its chart; two lines of text above it."""
    inner = width - 4
    first = state_text(modem)
    place = cell(modem) + (f" PCI {modem['pci']}" if modem.get("pci") is not None and inner >= 40 else "")
    first.append(place.rjust(max(1, inner - len(first))), "bold" if modem.get("enb_id") is not None else QUIET)
    second = levels(modem, inner)
    for line in (first, second):
        line.no_wrap = True
        line.truncate(inner, overflow="ellipsis")
    values = modem.get("history_rsrp_dbm") or []
    axis = _AXIS if chart_rows >= 3 else 0
    plot = history(_stretched(values, inner - axis), inner - axis, chart_rows, LOW_DBM, HIGH_DBM, _colour)
    chart = [_scale(row, number, chart_rows) if axis else row for number, row in enumerate(plot)]
    title_ = Text.assemble((f"{path} ", f"bold {colour}"), (f"{modem.get('operator') or ''}", "bold"))
    model = modem.get("model") or modem.get("driver")
    if model:
        title_.append(f" · {model}", QUIET)
    title_.truncate(max(4, width - 6), overflow="ellipsis")
    return Panel(
        Group(first, second, *chart), title=title_, title_align="left", subtitle=path_text(way), subtitle_align="right",
        border_style=colour, padding=(0, 1),
    )  # fmt: skip


def state_text(modem: dict[str, Any]) -> Text:
    return toned(radio_words(modem), meaning("radio", "state", modem.get("state")).tone)


def path_text(way: dict[str, Any] | None) -> Text | None:
    """What is the matter with the path beside its modem; None when nothing is."""
    state = (way or {}).get("state")
    if state in (None, "up"):
        return None
    found = meaning("event", "state", state)
    return toned(f"path {found.words}", found.tone, bold=True)


def levels(modem: dict[str, Any], width: int) -> Text:
    """RSRP, RSRQ and SINR with their grades, for ``width`` columns: units and then RSRQ are left out where these are few."""
    age = modem.get("age_s")
    line = Text()
    if isinstance(age, int | float) and age > _STALE_S:
        line.append(f"{age:.0f} s old", ALARM)
    for name, unit in _LEVELS:
        value = modem.get(name)
        if name == "rsrq_db" and width < _FOR_RSRQ:
            continue
        line.append(f"{'  ' if line and width >= _FOR_UNITS else ' ' if line else ''}{title('radio', name)} ", QUIET)
        shown = number(value, 0, f" {unit}" if width >= _FOR_UNITS or name == "rsrp_dbm" else "")
        line.append_text(toned(shown, tone_of("radio", name, value), bold=name == "rsrp_dbm"))
    return line


def _colour(level: Any) -> str:  # noqa: ANN401 a JSON value
    return colour_of("radio", "rsrp_dbm", level)


def _scale(row: Text, number: int, rows: int) -> Text:
    """The row with its level in dBm before it, on the highest and the lowest."""
    level = f"{HIGH_DBM:.0f}" if number == 0 else f"{LOW_DBM:.0f}" if number == rows - 1 else ""
    return Text(level.rjust(_AXIS - 1) + " ", QUIET).append_text(row)


def _stretched(values: list[Any], width: int) -> list[Any]:
    """Each value on as many whole columns as fit for a minute of polls: a wide panel shows no narrow chart."""
    each = max(1, width // 60)
    return [value for value in values for _ in range(each)]


_RATE, _SHARE, _RTT = 11, 6, 8
_OF_A_BAR = 6
"""Columns; with fewer there is none."""


def lines_of_run(status: dict[str, Any]) -> int:
    runs = (status.get("run") or {}).get("runs", [])
    return sum(1 if r["kind"] == "tcp" else 1 + max(1, len(r.get("subflows", [])) + bool(r.get("phase"))) for r in runs)


def run_panel(status: dict[str, Any], paths: dict[str, str], width: int) -> Panel:
    """``paths``: each path's colour; ``width`` of the whole panel."""
    run = status.get("run")
    if not run:
        lines = [Text("no run now", QUIET), *campaign_lines(status)]
        return _panel("runs", lines)
    most = full_bar(run)
    lines = run_lines(run, paths, width - 4, most)
    return Panel(
        Group(*lines), title=_title(run, width), title_align="left", subtitle=_subtitle(run, most), subtitle_align="right",
        border_style="bold white", padding=(0, 1),
    )  # fmt: skip


def run_lines(run: dict[str, Any], paths: dict[str, str], inner: int, most: float) -> list[Text]:
    """A line for each connection and each subflow under way, in ``inner`` columns; ``most``: the goodput of a full bar."""
    lines: list[Text] = []
    for one in run["runs"]:
        subflows = one.get("subflows", [])
        if one["kind"] == "tcp":
            only = subflows[0] if subflows else {}
            style = f"bold {paths.get(str(one['path']), 'white')}"
            lines.append(_line(f"TCP  {one['path']}", {**only, **_whole(one), "share": None}, most, inner, style))
            continue
        totals = {**_whole(one), "history_bit_per_s": _sums([s["history_bit_per_s"] for s in subflows])}
        lines.append(_line(_name(one), totals, most, inner, "bold white"))
        if one.get("phase"):
            lines.append(Text(f"  {phase_words(one['phase'])}", QUIET))
        for place, subflow in enumerate(subflows):
            mark = "└" if place == len(subflows) - 1 else "├"
            label = f"{mark} {subflow.get('path') or '?'} {subflow.get('operator') or ''}"
            lines.append(_line(label, subflow, most, inner, paths.get(str(subflow.get("path")), "white")))
        if not subflows and not one.get("phase"):
            lines.append(Text("  connecting …", QUIET))
    return lines or [Text("pause before the next run", QUIET)]


def campaign_lines(status: dict[str, Any]) -> list[Text]:
    """How far the campaign under way is, and what it waits for."""
    campaign = status.get("campaign")
    if not campaign:
        return []
    line = Text(f"campaign {campaign.get('name')}: ", QUIET)
    state = meaning("campaign", "state", campaign.get("state"))
    line.append_text(toned(state.words, state.tone))
    line.append(f", {campaign.get('made')} of {campaign.get('of')} runs made", QUIET)
    return [line, *([Text(f"  {campaign['said']}", QUIET)] if campaign.get("said") else [])]


def full_bar(run: dict[str, Any]) -> float:
    return nice_ceiling(
        max([_value(r.get("goodput_bit_per_s")) for r in run["runs"]] + _peaks(run), default=0.0) or 1e6
    )


def _name(one: dict[str, Any]) -> str:
    return "MPTCP" if one["kind"] == "mptcp" else kind_words(one)


def _whole(one: dict[str, Any]) -> dict[str, Any]:
    return {"goodput_bit_per_s": one.get("goodput_bit_per_s")}


def _title(run: dict[str, Any], width: int) -> Text:
    text = Text()
    if run.get("campaign") and width >= 100:
        text.append(f"{run['campaign']}: ", QUIET)
    if run.get("experiment") not in (None, "download") or width >= 100:
        text.append(f"{run.get('experiment') or 'run'} ", "bold")
    if run["pairing"] != "single":
        text.append(f"{run['pairing']} ", "bold")
        place = f"run {min(run['number'], run['of'])} of {run['of']}"
        text.append(f"{place if run['pairing'] == 'sequential' else str(run['of']) + ' at once'} ", QUIET)
    elapsed = max((r["elapsed_s"] for r in run["runs"]), default=None)
    got = sum(_value(r.get("bytes")) for r in run["runs"])
    if elapsed is not None:
        seconds, wanted = run.get("seconds"), run.get("bytes")
        share = elapsed / seconds if seconds else got / (wanted * len(run["runs"])) if wanted else 0.0
        text.append_text(bar(share, 1.0, 20 if width >= 100 else 10, "bold white"))
        text.append(f" {duration(elapsed)}" + (f" of {duration(seconds)}" if seconds else ""))
        text.append(f"  {size(got)}", QUIET)
    return text


def _subtitle(run: dict[str, Any], most: float) -> Text:
    return Text(f"goodput, share, RTT; full bar {rate(most)}", QUIET) if run["runs"] else Text("")


def _line(label: str, of: dict[str, Any], most: float, inner: int, style: str) -> Text:
    """Label, goodput, share, RTT, bar, and the last seconds as a sparkline; where columns are few, the first of these."""
    wide = 20 if inner >= 100 else 14 if inner >= 60 else 8
    line = Text(label[: wide - 1].ljust(wide), style, no_wrap=True)
    line.append(rate(of.get("goodput_bit_per_s")).rjust(_RATE), "bold" if "bold" in style else "")
    line.append((percent(of["share"]) if of.get("share") is not None else "").rjust(_SHARE))
    rtt = of.get("rtt_ms")
    line.append(("" if rtt is None else number(rtt, 0, " ms")).rjust(_RTT), colour_of("subflow", "rtt_ms", rtt))
    room = inner - wide - _RATE - _SHARE - _RTT - 1
    if room < _OF_A_BAR:
        return line
    spark = min(60, room // 2)
    line.append(" ")
    line.append_text(bar(of.get("goodput_bit_per_s"), most, room - spark - 1, style))
    line.append(" ")
    return line.append_text(history(of.get("history_bit_per_s") or [], spark, 1, 0, most, lambda _: style)[0])


def _value(value: Any) -> float:  # noqa: ANN401 a JSON value
    return float(value) if is_number(value) else 0.0


def _peaks(run: dict[str, Any]) -> list[float]:
    """Of each subflow's last seconds, the value that one in ten exceeds: a single burst must not shrink every bar."""
    peaks = []
    for one in run["runs"]:
        totals = sorted(_sums([s["history_bit_per_s"] for s in one.get("subflows", [])]))
        if totals:
            peaks.append(totals[int(len(totals) * 0.9)] if len(totals) > 1 else totals[0])
    return peaks


def _sums(histories: list[list[Any]]) -> list[float]:
    """The newest values of several histories added up; a subflow that joined later counts as nothing before."""
    longest = max((len(h) for h in histories), default=0)
    total = [0.0] * longest
    for values in histories:
        for n, value in enumerate(values):
            total[longest - len(values) + n] += _value(value)
    return total


def events_panel(status: dict[str, Any], paths: dict[str, str], width: int, rows: int) -> Panel:
    """The newest events, newest first, as many as fit into ``rows``."""
    lines = [event_text(event, paths, width - 4) for event in reversed(status.get("events") or [])][:rows]
    return _panel("events", lines or [Text("none yet", QUIET)])


def event_text(event: dict[str, Any], paths: dict[str, str], inner: int) -> Text:
    line = Text(clock(event.get("utc_ns")) + " ", QUIET, no_wrap=True)
    if event.get("path"):
        line.append(f"{event['path']} ", f"bold {paths.get(str(event['path']), 'white')}")
    what = event_meaning(event.get("kind"), event.get("state"))
    line.append_text(toned(what.words, what.tone))
    if detail := event_detail(event):
        line.append(f" {detail}", QUIET)
    line.truncate(inner, overflow="ellipsis")
    return line


def finished_panel(status: dict[str, Any], paths: dict[str, str], width: int, rows: int) -> Panel:
    lines = [_finished(run, paths, width - 4) for run in reversed(status.get("finished") or [])][:rows]
    return _panel("finished runs", lines or [Text("none yet", QUIET)])


def _finished(run: dict[str, Any], paths: dict[str, str], inner: int) -> Text:
    wide = inner >= 50
    ok, kind = bool(run.get("ok")), str(run.get("kind"))
    line = Text("✓ " if ok else "✗ ", style_of("good") if ok else f"bold {style_of('poor')}", no_wrap=True)
    line.append(f"{kind_words(run) if kind == 'any' else kind.upper()} ".ljust(6), "bold")
    line.append(f"{run.get('path')} ".ljust(3), f"bold {paths.get(str(run.get('path')), 'white')}")
    if not ok and not run.get("bytes"):
        line.append(str(run.get("failure") or "failed"), style_of("poor"))
    else:
        line.append(rate(run.get("goodput_bit_per_s")).rjust(11), "bold")
        line.append(f"{size(run.get('bytes'))} ".rjust(10) if wide else " ", QUIET)
        if wide:
            line.append(number(run.get("duration_s"), 1, " s") + " ", QUIET)
        elif not run.get("fallback"):
            line.append(duration(run.get("duration_s")), QUIET)
        if run.get("fallback"):  # its figures are TCP's
            line.append("fell back" if wide else "→ TCP", style_of("fair"))
        if not ok:
            line.append(f" {run.get('failure') or 'failed'}", style_of("poor"))
        elif wide:
            how = "at once" if run.get("pairing") == "simultaneous" else run.get("pairing")
            line.append(f" {how}" if run.get("fallback") else str(how), QUIET)
    line.truncate(inner, overflow="ellipsis")
    return line


def _panel(title: str, lines: list[Text]) -> Panel:
    return Panel(Group(*lines), title=title, title_align="left", border_style=QUIET, padding=(0, 1))
