"""Campaigns and tables for programs: the keys ``campaigns`` and ``tables`` of summary.json (server/spec/campaign-folder.md)."""

from __future__ import annotations

from typing import Any

from tandem_server.analysis.tables.overview import Overview
from tandem_server.analysis.tables.results import Results
from tandem_server.analysis.tables.view import Table


def told(results: Results) -> dict[str, Any]:
    """Both keys, as JSON values."""
    tables = {t.name: {"experiment": name, **plain_table(t)} for name, made in results.tables.items() for t in made}
    return {"campaigns": [_campaign(one) for one in results.campaigns], "tables": tables}


def _campaign(one: Overview) -> dict[str, Any]:
    steps = [
        {
            "step": s.step,
            "experiment": s.experiment,
            "planned": one.planned.get(s.step),
            "measured": len(s.numbers),
            "ok": s.ok,
            "failed": dict(s.failed),
            "bytes": s.bytes,
        }
        for s in one.steps
    ]
    return {"name": one.name, "form": one.form, "substitutes": one.substitutes, "bytes": one.bytes, "steps": steps}


def plain_table(table: Table) -> dict[str, Any]:
    """A table as JSON values: title, columns, rows."""
    columns = [{"key": c.key, "title": c.title, "unit": c.unit} for c in table.columns]
    return {"title": table.title, "columns": columns, "rows": [list(row) for row in table.rows]}
