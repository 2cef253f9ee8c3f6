"""The page: the board's own grid, every panel drawn from its answers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from typing import Any

from tandem_dashboards.grafana.frames import Frame, TransformError, Value, as_series, as_table, transformed
from tandem_dashboards.grafana.macros import Chosen, Range, replaced
from tandem_dashboards.preview import charts, figures
from tandem_dashboards.preview.fields import Config
from tandem_dashboards.preview.figures import instant, tag
from tandem_dashboards.query_runner import SCREEN_PIXELS, Answer, range_for

_UNIT, _GAP, _HEAD = 30, 8, 32
_LINE, _MOST_LINES = 18, 5
"""Of a legend: pixels; lines."""
STYLE = """
body{margin:0;background:#111217;color:#d0d0d6;font:13px system-ui,"DejaVu Sans",sans-serif}
header{padding:10px 16px}header h1{font-size:18px;margin:0 0 4px}header p{margin:2px 0;color:#8e8e96}
header b{color:#d0d0d6;background:#22252b;padding:2px 8px;margin-right:6px;border-radius:2px;font-weight:400}
main{position:relative;margin:8px auto}
section{position:absolute;background:#181b1f;border:1px solid #25282e;border-radius:2px;overflow:hidden;box-sizing:border-box}
section h2{font-size:13px;font-weight:500;margin:7px 10px 5px;cursor:help;white-space:nowrap;overflow:hidden;text-overflow:ellipsis}
section.row{background:none;border:0}section.row h2{font-size:15px;margin:8px 2px}
.empty{color:#8e8e96;text-align:center;padding-top:18px}.error{color:#f2495c;padding:8px;white-space:pre-wrap}
.legend{font-size:11px;padding:2px 10px;color:#b0b0b8;max-height:96px;overflow:hidden}.legend span{margin-right:12px;white-space:nowrap}
.legend i{display:inline-block;width:12px;height:3px;margin-right:5px;vertical-align:middle}
.legend td,.legend th{padding:0 8px;text-align:left}
.table{overflow:auto;height:100%}.table table{border-collapse:collapse;width:100%;font-size:12px}
.table th{text-align:left;color:#6e9fff;font-weight:500;position:sticky;top:0;background:#181b1f}
.table td,.table th{padding:4px 8px;border-bottom:1px solid #25282e;white-space:nowrap}
.table a{color:#6e9fff;text-decoration:underline;cursor:pointer}
.stat{display:flex;flex-wrap:wrap;height:100%;align-items:stretch}
.stat div{flex:1;display:flex;flex-direction:column;justify-content:center;align-items:center;min-width:90px}
.stat small{font-size:12px;opacity:.8}.stat b{font-weight:500}.stat>b{margin:auto;font-size:30px;color:#8e8e96}
.gauge div{display:flex;align-items:center;padding:3px 10px}.gauge span{width:30%;overflow:hidden;white-space:nowrap;text-overflow:ellipsis}
.gauge u,.table u{display:inline-block;background:#2c3037;height:14px;flex:1;margin:0 8px;text-decoration:none;min-width:60px}
.gauge i,.table u i{display:block;height:100%}.gauge b{font-weight:500;min-width:70px}
.text{padding:0 12px;line-height:1.5}.text a{color:#6e9fff}
"""


def page(
    board: Mapping[str, Any],
    span: Range,
    chosen: Mapping[str, Chosen],
    answers: Sequence[Answer],
    width: int = SCREEN_PIXELS,
) -> str:
    """HTML that needs nothing else: no script, no other file, no network."""
    marks = _marks(board, answers)
    named = {
        name: replace(its, everything="All") if its.everything is not None else its for name, its in chosen.items()
    }
    parts, bottom = [], 0.0
    for panel in board["panels"]:
        place = panel["gridPos"]
        x, wide = place["x"] * width / 24, place["w"] * width / 24 - _GAP
        y, tall = place["y"] * (_UNIT + _GAP), place["h"] * (_UNIT + _GAP) - _GAP
        bottom = max(bottom, y + tall)
        style = f"left:{x:.0f}px;top:{y}px;width:{wide:.0f}px;height:{tall}px"
        title = tag("h2", escape(replaced(panel.get("title") or "", named)), title=panel.get("description", ""))
        if panel["type"] == "row":
            parts.append(tag("section", title, class_="row", style=style))
            continue
        its = [a for a in answers if a.query.of == "panel" and a.query.panel == panel["id"]]
        parts.append(tag("section", title + _drawn(panel, its, span, marks, (wide, tall - _HEAD)), style=style))
    body = _header(board, span, chosen) + tag("main", "".join(parts), style=f"width:{width}px;height:{bottom}px")
    head = f'<meta charset="utf-8"><title>{escape(board["title"])}</title><style>{STYLE}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{body}</body></html>\n'


def _drawn(
    panel: Mapping[str, Any],
    answers: Sequence[Answer],
    span: Range,
    marks: list[charts.Mark],
    size: tuple[float, float],
) -> str:
    errors = [answer for answer in answers if answer.error]
    if errors:
        return tag("div", escape(f"{errors[0].error}\n{errors[0].text}"), class_="error")
    if panel["type"] == "text":
        return tag("div", _markdown(panel["options"]["content"]), class_="text")
    frames = [frame for answer in answers for frame in frames_of(answer)]
    try:
        frames = transformed(frames, panel.get("transformations") or ())
    except TransformError as error:
        return tag("div", escape(str(error)), class_="error")
    its = range_for(answers[0].query, span) if answers else span
    anything = any(answer.rows for answer in answers)
    drawn = _kind(panel, frames, its, marks, size) if anything or panel["type"] == "stat" else ""
    return drawn or tag("div", "No data", class_="empty")


def _kind(
    panel: Mapping[str, Any], frames: list[Frame], span: Range, marks: list[charts.Mark], size: tuple[float, float]
) -> str:
    kind, (width, height) = panel["type"], size
    if kind == "timeseries":
        series = charts.configured(panel, frames)
        below, lines = _legend(panel, [(its, frame.figures) for its, frame in series], width)
        return charts.time_series(series, span, (width, height - lines * _LINE), marks) + below
    if kind == "state-timeline":
        return charts.state_timeline(panel, frames, span, size)
    if kind in ("barchart", "histogram"):
        bars = charts.bars_of(panel, frames) if kind == "barchart" else charts.counts_of(panel, frames)
        below, lines = _legend(panel, bars[1], width)
        return charts.bar_chart(panel, bars, (width, height - lines * _LINE)) + below
    if kind == "geomap":
        return charts.world(panel, frames, size)
    if kind == "stat":
        return figures.stat(panel, frames, width, height)
    if kind == "bargauge":
        return figures.gauge(panel, frames)
    if kind == "table":
        return figures.table(panel, frames)
    return tag("div", escape(f"the preview draws no {kind}"), class_="error")


def _legend(panel: Mapping[str, Any], of: Sequence[tuple[Config, Sequence[Value]]], width: float) -> tuple[str, int]:
    """And how many lines it has."""
    options = panel["options"].get("legend") or {}
    if not of or not options.get("showLegend"):
        return "", 0
    sums = options.get("calcs") or []
    lines = len(of) + 1 if sums else -(-sum(len(its.title) * 7 + 30 for its, _ in of) // int(width))
    return figures.legend(of, sums), min(lines, _MOST_LINES)


def frames_of(answer: Answer) -> list[Frame]:
    """An answer as Grafana's frames, in the shape that its query asks for."""
    query = answer.query
    if query.shape == "table":
        return as_table(answer.series, query.ref)
    return as_series(answer.series, query.alias, query.ref)


def _marks(board: Mapping[str, Any], answers: Sequence[Answer]) -> list[charts.Mark]:
    """Annotations, without rows in which anything is missing: Grafana leaves those out."""
    found: list[charts.Mark] = []
    for one in board.get("annotations", {}).get("list", []):
        target = one.get("target", {})
        title = str(target.get("titleColumn", "")).partition(".")[2]
        for answer in answers:
            if answer.query.of != "annotation" or answer.query.name != one["name"]:
                continue
            for frame in as_table(answer.series):
                for n in range(frame.length):
                    row = {name: column[n] for name, column in frame.columns.items()}
                    if None in row.values():
                        continue
                    labels = [str(row[name]) for name in str(target.get("tagsColumn") or "").split(",") if name in row]
                    words = f"{row.get(title, '')}: {row.get(target.get('textColumn'), '')} {' '.join(labels)}"
                    found.append((int(float(row["Time"] or 0)), words, one["iconColor"]))
    return found


def _header(board: Mapping[str, Any], span: Range, chosen: Mapping[str, Chosen]) -> str:
    picked = ""
    for variable in board.get("templating", {}).get("list", []):
        if variable.get("hide") == 2:
            continue
        its = chosen[variable["name"]]
        value = "All" if its.everything is not None else ", ".join(its.values) or "none"
        picked += escape(variable["label"]) + " " + tag("b", escape(value))
    when = f"{instant(span.from_ms)} to {instant(span.to_ms)} UTC"
    return tag(
        "header",
        tag("h1", escape(board["title"]))
        + tag("p", escape(board.get("description", "")))
        + tag("p", picked)
        + tag("p", f"{when}; a preview: Grafana draws alike, not the same"),
    )


def _markdown(text: str) -> str:
    """Paragraphs, lists, code and links; nothing else is used."""
    html = ""
    for block in re.split(r"\n\s*\n", text.strip()):
        lines = [_inline(line) for line in block.splitlines()]
        if all(line.startswith("- ") for line in lines):
            html += tag("ul", "".join(tag("li", line[2:]) for line in lines))
        else:
            html += tag("p", " ".join(lines))
    return html


def _inline(line: str) -> str:
    html = re.sub(r"`(.+?)`", r"<code>\1</code>", escape(line, quote=False))
    return re.sub(r"\[(.+?)\]\((\S+?)\)", r'<a title="\2">\1</a>', html)
