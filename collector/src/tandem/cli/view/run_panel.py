"""The runs under way: goodput, share and round-trip time of each connection and each of its subflows, bars on one scale."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.panel import Panel
from rich.text import Text

from tandem.cli.view import colours
from tandem.cli.view.charts import bar, history, nice_ceiling
from tandem.cli.view.figures import duration, kind_words, number, percent, phase_words, rate, size
from tandem.schema.grades import meaning

_RATE, _SHARE, _RTT = 11, 6, 8
_OF_A_BAR = 6
"""Columns; with fewer there is none."""


def lines_of_run(status: dict[str, Any]) -> int:
    """Rows that the panel needs inside."""
    runs = (status.get("run") or {}).get("runs", [])
    return sum(1 if r["kind"] == "tcp" else 1 + max(1, len(r.get("subflows", [])) + bool(r.get("phase"))) for r in runs)


def run_panel(status: dict[str, Any], paths: dict[str, str], width: int) -> Panel:
    """``paths``: each path's colour; ``width`` of the whole panel."""
    run = status.get("run")
    if not run:
        lines = [Text("no run now", colours.QUIET), *campaign_lines(status)]
        return Panel(Group(*lines), title="runs", title_align="left", border_style=colours.QUIET, padding=(0, 1))
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
            lines.append(Text(f"  {phase_words(one['phase'])}", colours.QUIET))
        for place, subflow in enumerate(subflows):
            mark = "└" if place == len(subflows) - 1 else "├"
            label = f"{mark} {subflow.get('path') or '?'} {subflow.get('operator') or ''}"
            lines.append(_line(label, subflow, most, inner, paths.get(str(subflow.get("path")), "white")))
        if not subflows and not one.get("phase"):
            lines.append(Text("  connecting …", colours.QUIET))
    return lines or [Text("pause before the next run", colours.QUIET)]


def campaign_lines(status: dict[str, Any]) -> list[Text]:
    """How far the campaign under way is, and what it waits for."""
    told = status.get("campaign")
    if not told:
        return []
    line = Text(f"campaign {told.get('name')}: ", colours.QUIET)
    state = meaning("campaign", "state", told.get("state"))
    line.append_text(colours.toned(state.words, state.tone))
    line.append(f", {told.get('made')} of {told.get('of')} runs made", colours.QUIET)
    return [line, *([Text(f"  {told['said']}", colours.QUIET)] if told.get("said") else [])]


def full_bar(run: dict[str, Any]) -> float:
    """The goodput that fills a bar."""
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
        text.append(f"{run['campaign']}: ", colours.QUIET)
    if run.get("experiment") not in (None, "download") or width >= 100:
        text.append(f"{run.get('experiment') or 'run'} ", "bold")
    if run["pairing"] != "single":
        text.append(f"{run['pairing']} ", "bold")
        place = f"run {min(run['number'], run['of'])} of {run['of']}"
        text.append(f"{place if run['pairing'] == 'sequential' else str(run['of']) + ' at once'} ", colours.QUIET)
    elapsed = max((r["elapsed_s"] for r in run["runs"]), default=None)
    got = sum(_value(r.get("bytes")) for r in run["runs"])
    if elapsed is not None:
        seconds, wanted = run.get("seconds"), run.get("bytes")
        share = elapsed / seconds if seconds else got / (wanted * len(run["runs"])) if wanted else 0.0
        text.append_text(bar(share, 1.0, 20 if width >= 100 else 10, "bold white"))
        text.append(f" {duration(elapsed)}" + (f" of {duration(seconds)}" if seconds else ""))
        text.append(f"  {size(got)}", colours.QUIET)
    return text


def _subtitle(run: dict[str, Any], most: float) -> Text:
    return Text(f"goodput, share, RTT; full bar {rate(most)}", colours.QUIET) if run["runs"] else Text("")


def _line(label: str, of: dict[str, Any], most: float, inner: int, style: str) -> Text:
    """Label, goodput, share, RTT, bar, and the last seconds as a sparkline; where columns are few, the first of these."""
    wide = 20 if inner >= 100 else 14 if inner >= 60 else 8
    line = Text(label[: wide - 1].ljust(wide), style, no_wrap=True)
    line.append(rate(of.get("goodput_bit_per_s")).rjust(_RATE), "bold" if "bold" in style else "")
    line.append((percent(of["share"]) if of.get("share") is not None else "").rjust(_SHARE))
    rtt = of.get("rtt_ms")
    line.append(("" if rtt is None else number(rtt, 0, " ms")).rjust(_RTT), colours.of("subflow", "rtt_ms", rtt))
    room = inner - wide - _RATE - _SHARE - _RTT - 1
    if room < _OF_A_BAR:
        return line
    spark = min(60, room // 2)
    line.append(" ")
    line.append_text(bar(of.get("goodput_bit_per_s"), most, room - spark - 1, style))
    line.append(" ")
    return line.append_text(history(of.get("history_bit_per_s") or [], spark, 1, 0, most, lambda _: style)[0])


def _value(value: Any) -> float:  # noqa: ANN401 a JSON value
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0


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
