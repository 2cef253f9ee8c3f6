"""The tables as the page shows them: cells in words, quartiles in the cell of their median, a bar for the main figure."""

from __future__ import annotations

from dataclasses import dataclass

from tandem_server.analysis.tables.results import Results
from tandem_server.analysis.tables.view import GROUP, Cell, Table
from tandem_server.report import words
from tandem_server.report.result_charts import Chart, charts

MOST_ROWS = 60
"""Of a table on the page; all are in its CSV."""
_UNITS = {"bit/s": "Mbit/s", "1": "", "share": "", "B": ""}


@dataclass(frozen=True, slots=True)
class Shown:
    """One cell. ``range``: the quartiles, in words. ``bar``: per cent of the column's greatest value; None: no bar."""

    text: str
    is_text: bool
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
    """Everything about one experiment."""

    name: str
    tables: list[ShownTable]
    charts: list[Chart]


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
            cells.append(Shown(value(cell, column.unit), column.unit == "", spread, bar))
        rows.append(cells)
    heads = [(c.title, _UNITS.get(c.unit, c.unit), c.unit == "") for c in (table.columns[n] for n in kept)]
    same = ", ".join(
        str(table.rows[0][keys.index(key)]) for key, _ in GROUP if key in alike and table.rows[0][keys.index(key)]
    )
    note = " ".join(part for part in (table.note, f"All of it: {same}." if same else "") if part)
    return ShownTable(table.title, note, heads, rows, max(0, len(table.rows) - MOST_ROWS))
