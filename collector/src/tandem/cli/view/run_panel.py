"""The runs under way: goodput of each connection and of each of its subflows, on one scale."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.panel import Panel
from rich.text import Text

from tandem.cli.view import colours
from tandem.cli.view.charts import bar, history, nice_ceiling
from tandem.cli.view.figures import duration, kind_words, phase_words, rate, size

_RATE = 11


def lines_of_run(status: dict[str, Any]) -> int:
    """Rows that the panel needs inside."""
    runs = (status.get("run") or {}).get("runs", [])
    return sum(1 if r["kind"] == "tcp" else 1 + max(1, len(r.get("subflows", [])) + bool(r.get("phase"))) for r in runs)


def run_panel(status: dict[str, Any], paths: dict[str, str], width: int) -> Panel:
    """``paths``: each path's colour; ``width`` of the whole panel."""
    run = status.get("run")
    inner = width - 4
    if not run:
        return Panel(
            Text("no run now", colours.QUIET),
            title="runs",
            title_align="left",
            border_style=colours.QUIET,
            padding=(0, 1),
        )
    most = nice_ceiling(
        max([_value(r.get("goodput_bit_per_s")) for r in run["runs"]] + _peaks(run), default=0.0) or 1e6
    )
    lines: list[Text] = []
    for one in run["runs"]:
        subflows = one.get("subflows", [])
        if one["kind"] == "tcp":
            values = subflows[0]["history_bit_per_s"] if subflows else []
            style = paths.get(str(one["path"]), "white")
            lines.append(
                _line(f"TCP  {one['path']}", one.get("goodput_bit_per_s"), values, most, inner, style, bold=True)
            )
            continue
        totals = _sums([s["history_bit_per_s"] for s in subflows])
        lines.append(
            _line(
                "MPTCP" if one["kind"] == "mptcp" else kind_words(one),
                one.get("goodput_bit_per_s"),
                totals,
                most,
                inner,
                "white",
                bold=True,
            )
        )
        if one.get("phase"):
            lines.append(Text(f"  {phase_words(one['phase'])}", colours.QUIET))
        for number, subflow in enumerate(subflows):
            mark = "└" if number == len(subflows) - 1 else "├"
            label = f"{mark} {subflow.get('path') or '?'} {subflow.get('operator') or ''}"
            style = paths.get(str(subflow.get("path")), "white")
            lines.append(
                _line(
                    label,
                    subflow.get("goodput_bit_per_s"),
                    subflow["history_bit_per_s"],
                    most,
                    inner,
                    style,
                    bold=False,
                )
            )
        if not subflows and not one.get("phase"):
            lines.append(Text("  connecting …", colours.QUIET))
    if not run["runs"]:
        lines.append(Text("pause before the next run", colours.QUIET))
    return Panel(
        Group(*lines), title=_title(run, width), title_align="left", subtitle=_subtitle(run, most), subtitle_align="right",
        border_style="bold white", padding=(0, 1),
    )  # fmt: skip


def _title(run: dict[str, Any], width: int) -> Text:
    several = (
        f"run {min(run['number'], run['of'])} of {run['of']}"
        if run["pairing"] == "sequential"
        else f"{run['of']} at once"
    )
    text = Text.assemble(
        (f"{run['pairing']} ", "bold"), (f"{'' if run['pairing'] == 'single' else several} ", colours.QUIET)
    )
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
    return Text(f"full bar {rate(most)}", colours.QUIET) if run["runs"] else Text("")


def _line(label: str, goodput: Any, values: list[Any], most: float, inner: int, style: str, *, bold: bool) -> Text:  # noqa: ANN401 a JSON value
    """Label, goodput, bar, and the last seconds as a sparkline."""
    strong = f"bold {style}" if bold else style
    wide = 20 if inner >= 100 else 14
    line = Text(label[: wide - 1].ljust(wide), strong)
    line.append(rate(goodput).rjust(_RATE) + " ", "bold" if bold else "")
    room = inner - wide - _RATE - 1
    spark = min(60, room // 2)
    line.append_text(bar(goodput, most, room - spark - 1, style))
    line.append(" ")
    line.append_text(history(values, spark, 1, 0, most, lambda _: style)[0])
    return line


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
