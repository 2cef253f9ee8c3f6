"""The result tables: as the page shows them (cells in words, quartiles in the cell of their median, a bar for the main figure), the curves
beside them, for a terminal, and as CSV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tandem_server.analysis.estimates import cdf
from tandem_server.analysis.reading import mapping, number, text
from tandem_server.analysis.tables.facts import Facts
from tandem_server.analysis.tables.results import Results
from tandem_server.analysis.tables.view import GROUP, Cell, Table, named
from tandem_server.analysis.tables.views import distributions, rule, segment_s
from tandem_server.report import words
from tandem_server.report.figures.marks import Line
from tandem_server.report.figures.sheet import OTHERS, Axis, Panel, Sheet, csv_text

MOST_ROWS = 60
"""Of a table on the page; all are in its CSV."""
_UNITS = {"bit/s": "Mbit/s", "1": "", "share": "", "B": ""}


@dataclass(frozen=True, slots=True)
class Shown:
    """One cell. ``range``: the quartiles, in words. ``bar``: per cent of the column's greatest value; None: no bar."""

    text: str
    range: str = ""
    bar: float | None = None


@dataclass(frozen=True, slots=True)
class ShownTable:
    """``heads``: title, unit, whether the column is text."""

    title: str
    note: str
    heads: list[tuple[str, str, bool]]
    rows: list[list[Shown]]
    left_out: int


@dataclass(frozen=True, slots=True)
class ShownExperiment:
    """Everything about one experiment; ``charts`` by title."""

    name: str
    tables: list[ShownTable]
    charts: dict[str, Sheet]


def shown(results: Results) -> list[ShownExperiment]:
    """In the order of the results."""
    return [
        ShownExperiment(name, [_table(t) for t in tables], charts(results, name))
        for name, tables in results.tables.items()
    ]


def substituted(results: Results) -> list[tuple[list[str], list[str]]]:
    """What stood in for what was asked, each with the campaigns of which that holds."""
    found: dict[tuple[str, ...], list[str]] = {}
    for campaign in results.campaigns:
        if campaign.substitutes:
            found.setdefault(tuple(campaign.substitutes), []).append(campaign.name or "runs of no campaign")
    return [(list(lines), names) for lines, names in found.items()]


def value(cell: Cell, unit: str) -> str:
    """A cell in words."""
    if cell is None or cell == "":
        return words.ABSENT
    if isinstance(cell, str):
        return cell
    if unit == "bit/s":
        return words.mega(cell)
    if unit == "B":
        return words.size(cell)
    if unit == "share":
        return words.percent(cell)
    if isinstance(cell, int) or float(cell).is_integer():
        return words.count(int(cell))
    return words.fixed(cell, 0 if abs(cell) >= 1000 else 1 if abs(cell) >= 100 else 2)


def _table(table: Table) -> ShownTable:
    keys = [column.key for column in table.columns]
    # Groups that are the same in every row say nothing: a page has a phone's width.
    alike = {key for key, _ in GROUP if len({row[keys.index(key)] for row in table.rows}) == 1}
    if all(column.unit or column.key in alike for column in table.columns):
        alike.discard("step")  # a row begins with a word
    quartiles = {key: (keys.index(f"{key}_p25"), keys.index(f"{key}_p75")) for key in keys if f"{key}_p25" in keys}
    hidden = {n for pair in quartiles.values() for n in pair} | {keys.index(key) for key in alike}
    empty = {n for n in range(len(keys)) if n not in hidden and all(row[n] in (None, "") for row in table.rows)}
    kept = [n for n in range(len(keys)) if n not in hidden | empty]
    main = next(iter(quartiles), None)
    most = max(
        (abs(v) for row in table.rows if main and isinstance(v := row[keys.index(main)], int | float)), default=0
    )
    rows = []
    for row in table.rows[:MOST_ROWS]:
        cells = []
        for n in kept:
            column, cell = table.columns[n], row[n]
            low, high = quartiles.get(column.key, (None, None))
            spread = ""
            if low is not None and high is not None and row[low] != row[high]:
                spread = f"{value(row[low], column.unit)} to {value(row[high], column.unit)}"
            bar = None
            if column.key == main and most and isinstance(cell, int | float):
                bar = max(0.0, cell / most * 100)
            cells.append(Shown(value(cell, column.unit), spread, bar))
        rows.append(cells)
    heads = [(c.title, _UNITS.get(c.unit, c.unit), c.unit == "") for c in (table.columns[n] for n in kept)]
    same = ", ".join(
        str(table.rows[0][keys.index(key)]) for key, _ in GROUP if key in alike and table.rows[0][keys.index(key)]
    )
    note = " ".join(part for part in (table.note, f"All of it: {same}." if same else "") if part)
    return ShownTable(table.title, note, heads, rows, max(0, len(table.rows) - MOST_ROWS))


# --- which curves belong to which experiment's tables


MOST = len(OTHERS)
"""Curves in one chart."""
_SPOTS = 25
"""Points of a curve that are marked each."""


def line_chart(
    title: str,
    x_name: str,
    y_name: str,
    curves: Sequence[tuple[str, Sequence[tuple[float, float]]]],
    note: str = "",
) -> dict[str, Sheet]:
    """Curves by name, a sheet by its title; none without two points of any. Absent and endless values must be left out before."""
    shown = [(name, sorted(points)) for name, points in curves if len(points) > 1]
    if not shown:
        return {}
    marks = [Line(name, points, spots=len(points) <= _SPOTS) for name, points in shown[:MOST]]
    more = f" {len(shown) - MOST} more in the CSV." if len(shown) > MOST else ""
    panel = Panel("", marks, Axis(x_name), Axis(y_name, zero=True))
    return {title: Sheet([panel], (note + more).strip())}


def charts(results: Results, experiment: str) -> dict[str, Sheet]:
    """Of one experiment's runs; empty where a curve would have one point."""
    runs = results.of(experiment)
    match experiment:
        case "dash":
            return _plays(runs)
        case "pageload":
            return _values(results.tables[experiment])
        case "reachability":
            return _cdf("RTT by way", runs, "ways", ("way",), "name_rtt_ms")
        case "latency":
            return _cdf("RTT by path", runs, "streams", ("path", "loaded"), "rtt_ms")
    return {}


def _plays(runs: Sequence[Facts]) -> dict[str, Sheet]:
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
    x = "seconds since the manifest was asked for"
    return {
        **line_chart("Buffer over time", x, "s of video", levels, note=note),
        **line_chart("Bitrate chosen", x, "Mbit/s", rates),
    }


def _values(tables: Sequence[Table]) -> dict[str, Sheet]:
    """The loads' times by kind and path, every load a step."""
    made: dict[str, Sheet] = {}
    for key, title in (("page_load_time_ms", "Page load time"), ("object_load_time_ms", "Object load time")):
        for table in tables:
            columns = [table.value_columns.index(c) for c in ("kind", "path", key)]
            found: dict[str, list[float]] = {}
            for row in table.values:
                kind, path, value = (row[n] for n in columns)
                if isinstance(value, int | float):
                    found.setdefault(", ".join(str(p) for p in (kind, path) if p), []).append(float(value))
            curves = [(name, cdf(values, 100)) for name, values in sorted(found.items())]
            made |= line_chart(title, "ms", "share of loads below", curves)
    return made


def _cdf(title: str, runs: Sequence[Facts], rows: str, names: Sequence[str], key: str) -> dict[str, Sheet]:
    """From the quantiles that the runs tell, medians over runs."""
    word = {True: "under load", False: "idle"}

    def name(row: Mapping[str, Any]) -> str:
        parts = [word[row[n]] if isinstance(row.get(n), bool) else text(row, n) for n in names]
        return ", ".join(p for p in parts if p)

    found = distributions((name(row), mapping(row, key)) for run in runs for row in run.listed(rows))
    return line_chart(
        title, "ms", "share of values below", list(found.items()), note="Quantiles of each run, medians over runs."
    )


# --- for a terminal


_WIDEST = 28


def in_text(results: Results, more: Sequence[ShownTable] = ()) -> str:
    """Every table, and ``more`` after them, columns apart by two blanks; "" without one."""
    lines: list[str] = []
    for campaign in results.campaigns:
        failed = f", {campaign.failed} failed" if campaign.failed else ""
        lines.append(f"{campaign.name or 'of no campaign'}: {campaign.runs} runs{failed}")
        lines += [f"  not what the paper had: {line}" for line in campaign.substitutes]
    for experiment in shown(results):
        for table in experiment.tables:
            lines += ["", f"{experiment.name}: {table.title}", *_text(table)]
    for table in more:
        lines += ["", table.title, *_text(table)]
    return "".join(f"{line.rstrip()}\n" for line in [*lines, ""]) if lines else ""


def _text(table: ShownTable) -> list[str]:
    heads = [f"{title} {unit}".strip() for title, unit, _ in table.heads]
    rows = [heads, *([cell.text for cell in row] for row in table.rows)]
    cut = [[cell if len(cell) <= _WIDEST else cell[: _WIDEST - 1] + "…" for cell in row] for row in rows]
    widths = [max(len(row[n]) for row in cut) for n in range(len(heads))]
    told = [
        "  ".join(
            c.ljust(w) if is_text else c.rjust(w)
            for c, w, (_, _, is_text) in zip(row, widths, table.heads, strict=True)
        )
        for row in cut
    ]
    return [*told, *([f"… {table.left_out} more"] if table.left_out else [])]


# --- as CSV: NAME.csv as the page shows it, NAME-values.csv with every observation and its run, runs.csv


_RUN = (
    "run", "campaign", "step", "arm", "number", "pair", "experiment", "kind", "path", "started_utc_ns", "duration_s",
    "usage_bytes", "failure",
)  # fmt: skip
_NAMED = {"run": "id", "usage_bytes": "usage"}
"""Of ``Facts``, where it is not named as its column."""


def csv_files(results: Results, more: Sequence[Table] = ()) -> dict[str, str]:
    """Content by name of file; ``more``: further tables that have rows. Names of columns end in their units, as everywhere;
    numbers with a point, an absent value empty."""
    more_of_runs = tuple(dict.fromkeys(key for run in results.runs for key in _of_pool(run)))
    rows = (
        (*(getattr(run, _NAMED.get(key, key)) for key in _RUN), *(_of_pool(run).get(key) for key in more_of_runs))
        for run in results.runs
    )
    made = {"runs.csv": csv_text((*_RUN, *more_of_runs), rows)}
    for table in (*results.flat, *(one for one in more if one.rows)):
        made[f"{safe(table.name)}.csv"] = csv_text([column.key for column in table.columns], table.rows)
        made[f"{safe(table.name)}-values.csv"] = csv_text(table.value_columns, table.values)
    return made


def _of_pool(run: Facts) -> dict[str, Cell]:
    """Whose run it is, the operator of its path, and its part."""
    return {"probe": run.probe, "operator": named(run, run.path), **run.part} if run.probe else {}


def safe(name: str) -> str:
    """A name for a file: a person's experiment may be called anything in a manifest that was not made by a collector."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "_" for c in name)[:60] or "_"
