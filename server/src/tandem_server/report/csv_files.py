"""The result tables as CSV: ``NAME.csv`` as the page shows it, ``NAME-values.csv`` with every observation and its run, ``runs.csv``."""

from __future__ import annotations

from collections.abc import Sequence

from tandem_server.analysis.tables.facts import Facts
from tandem_server.analysis.tables.results import Results
from tandem_server.analysis.tables.view import Cell, Table, named
from tandem_server.report.figures.sheet import csv_text

_RUN = (
    "run", "campaign", "step", "arm", "number", "pair", "experiment", "kind", "path", "started_utc_ns", "duration_s",
    "usage_bytes", "failure",
)  # fmt: skip


def files(results: Results, more: Sequence[Table] = ()) -> dict[str, str]:
    """Content by name of file; ``more``: further tables that have rows. Names of columns end in their units, as everywhere;
    numbers with a point, an absent value empty."""
    more_of_runs = tuple(dict.fromkeys(key for run in results.runs for key in _of_pool(run)))
    rows = ((*_run(run), *(_of_pool(run).get(key) for key in more_of_runs)) for run in results.runs)
    made = {"runs.csv": csv_text((*_RUN, *more_of_runs), rows)}
    for table in (*results.flat, *(one for one in more if one.rows)):
        made[f"{safe(table.name)}.csv"] = csv_text([column.key for column in table.columns], table.rows)
        made[f"{safe(table.name)}-values.csv"] = csv_text(table.value_columns, table.values)
    return made


def _run(run: Facts) -> tuple[Cell, ...]:
    return (
        run.id, run.campaign, run.step, run.arm, run.number, run.pair, run.experiment, run.kind, run.path, run.started_utc_ns,
        run.duration_s, run.usage, run.failure,
    )  # fmt: skip


def _of_pool(run: Facts) -> dict[str, Cell]:
    """Whose run it is, the operator of its path, and its part."""
    return {"probe": run.probe, "operator": named(run, run.path), **run.part} if run.probe else {}


def safe(name: str) -> str:
    """A name for a file: a person's experiment may be called anything in a manifest that was not made by a collector."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "_" for c in name)[:60] or "_"
