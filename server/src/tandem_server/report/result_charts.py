"""Which curves belong to which experiment's tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tandem_server.analysis.estimates import quantile
from tandem_server.analysis.reading import mapping, number, text
from tandem_server.analysis.tables.facts import Facts
from tandem_server.analysis.tables.results import Results
from tandem_server.analysis.tables.view import Table
from tandem_server.analysis.tables.views import QUANTILES, rule, segment_s
from tandem_server.report.figures.hues import OTHERS
from tandem_server.report.figures.marks import Line
from tandem_server.report.figures.scale import Axis
from tandem_server.report.figures.sheet import Panel, Sheet

MOST = len(OTHERS)
"""Curves in one chart."""
_SPOTS = 25
"""Points of a curve that are marked each."""


@dataclass(frozen=True, slots=True)
class Chart:
    """A sheet with what stands above and beneath it."""

    title: str
    sheet: Sheet
    note: str = ""


def lines(
    title: str,
    x_name: str,
    y_name: str,
    curves: Sequence[tuple[str, Sequence[tuple[float, float]]]],
    *,
    log_x: bool = False,
    note: str = "",
) -> Chart | None:
    """Curves by name; None without two points of any. Absent and endless values must be left out before."""
    kept = [(name, sorted(p for p in points if p[0] > 0 or not log_x)) for name, points in curves]
    shown = [(name, points) for name, points in kept if len(points) > 1]
    if not shown:
        return None
    marks = [Line(name, points, spots=len(points) <= _SPOTS) for name, points in shown[:MOST]]
    more = f" {len(shown) - MOST} more in the CSV." if len(shown) > MOST else ""
    panel = Panel("", marks, Axis(x_name, log=log_x), Axis(y_name, zero=True))
    return Chart(title, Sheet([panel]), (note + more).strip())


def charts(results: Results, experiment: str) -> list[Chart]:
    """Of one experiment's runs; empty where a curve would have one point."""
    made = {
        "bandwidth": lambda: _columns(results, experiment),
        "delay": lambda: _columns(results, experiment),
        "dash": lambda: _plays(results.of(experiment)),
        "pageload": lambda: _values(results.tables[experiment]),
        "reachability": lambda: [_cdf("RTT by way", results.of(experiment), "ways", ("way",), "name_rtt_ms")],
        "latency": lambda: [_cdf("RTT by path", results.of(experiment), "streams", ("path", "loaded"), "rtt_ms")],
    }.get(experiment, list)()
    return [chart for chart in made if chart is not None]


def _curves(table: Table, x: str, y: str, names: Sequence[str]) -> list[tuple[str, list[tuple[float, float]]]]:
    """Of the table's rows: a curve for each combination of ``names``, medians of ``y`` over rows of one ``x``."""
    at, up, by = table.column(x), table.column(y), [table.column(n) for n in names]
    found: dict[str, dict[float, list[float]]] = {}
    for row in table.rows:
        across, value = row[at], row[up]
        if isinstance(across, int | float) and isinstance(value, int | float):
            name = ", ".join(str(row[n]) for n in by if row[n])
            found.setdefault(name, {}).setdefault(float(across), []).append(float(value))
    return [
        (name, [(where, middle) for where, values in points.items() if (middle := quantile(values, 0.5)) is not None])
        for name, points in sorted(found.items())
    ]


_RATIO = "ratio of bandwidths"
_OF_TABLE = {
    "bandwidth": (
        ("Bandwidth benefit by the ratio of the paths", "ratio", _RATIO, "benefit", "benefit", False),
        ("Share of the most loaded path", "ratio", _RATIO, "most_loaded_share", "share", False),
    ),
    "delay": (("Delay benefit by size", "from_bytes", "bytes", "benefit", "benefit", True),),
}
"""Of an experiment's table of its name: title, column and name across, column and name upwards, whether it is logarithmic across."""


def _columns(results: Results, experiment: str) -> list[Chart | None]:
    main = next((t for t in results.tables[experiment] if t.name == experiment), None)
    if main is None:
        return []
    return [
        lines(title, x_name, y_name, _curves(main, x, y, ("mode", "primary")), log_x=log)
        for title, x, x_name, y, y_name, log in _OF_TABLE[experiment]
    ]


def _plays(runs: Sequence[Facts]) -> list[Chart | None]:
    """Buffer and bitrate over time: the first play of each kind, length of segment and rule, at most ``MOST``."""
    first: dict[str, Facts] = {}
    for run in runs:
        length = segment_s(run)
        parts = (run.kind.upper(), f"{length} s" if length is not None else "", rule(run))
        first.setdefault(", ".join(p for p in parts if p), run)
    levels, rates = [], []
    for name, run in list(first.items())[:MOST]:
        rows = [(number(r, "requested_s"), number(r, "duration_ms"), r) for r in run.listed("segments")]
        came = [(asked + lasted / 1000, r) for asked, lasted, r in rows if asked is not None and lasted is not None]
        thin = came[:: max(1, len(came) // 200)]
        levels.append(
            (name, [(t, level / 1000) for t, r in thin if (level := number(r, "buffer_level_ms")) is not None])
        )
        rates.append((name, [(t, rate / 1e6) for t, r in thin if (rate := number(r, "bitrate_bit_per_s")) is not None]))
    whose = ", ".join(dict.fromkeys(run.probe for run in first.values() if run.probe))
    note = f"The first play of each kind, length of segment and rule{f': of {whose}' if whose else ''}."
    return [
        lines("Buffer over time", "seconds since the manifest was asked for", "s of video", levels, note=note),
        lines("Bitrate chosen", "seconds since the manifest was asked for", "Mbit/s", rates),
    ]


def _values(tables: Sequence[Table]) -> list[Chart | None]:
    """The loads' times by kind and path, every load a step."""
    made = []
    for key, title in (("page_load_time_ms", "Page load time"), ("object_load_time_ms", "Object load time")):
        for table in tables:
            columns = [table.value_columns.index(c) for c in ("kind", "path", key)]
            found: dict[str, list[float]] = {}
            for row in table.values:
                kind, path, value = (row[n] for n in columns)
                if isinstance(value, int | float):
                    found.setdefault(", ".join(str(p) for p in (kind, path) if p), []).append(float(value))
            curves = [(name, _steps(values)) for name, values in sorted(found.items())]
            made.append(lines(title, "ms", "share of loads below", curves))
    return made


def _steps(values: list[float]) -> list[tuple[float, float]]:
    """Of their distribution, at most a hundred points."""
    count = min(100, len(values))
    return (
        [(x, n / count) for n in range(count + 1) if (x := quantile(values, n / count)) is not None]
        if count > 1
        else []
    )


def _cdf(title: str, runs: Sequence[Facts], rows: str, names: Sequence[str], key: str) -> Chart | None:
    """From the quantiles that the runs tell, medians over runs."""
    found: dict[str, dict[int, list[float]]] = {}
    for run in runs:
        for row in run.listed(rows):
            word = {True: "under load", False: "idle"}
            parts = [word[row[n]] if isinstance(row.get(n), bool) else text(row, n) for n in names]
            points = found.setdefault(", ".join(p for p in parts if p), {})
            for q in QUANTILES:
                value = number(mapping(row, key), f"p{q}")
                if value is not None:
                    points.setdefault(q, []).append(value)
    curves = [
        (name, [(x, q / 100) for q, values in points.items() if (x := quantile(values, 0.5)) is not None])
        for name, points in found.items()
    ]
    return lines(title, "ms", "share of values below", curves, note="Quantiles of each run, medians over runs.")
