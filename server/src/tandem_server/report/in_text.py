"""The result tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from tandem_server.analysis.tables.results import Results
from tandem_server.report.result_cells import ShownTable, shown

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
            lines += ["", f"{experiment.name}: {table.title}", *_table(table)]
    for table in more:
        lines += ["", table.title, *_table(table)]
    return "".join(f"{line.rstrip()}\n" for line in [*lines, ""]) if lines else ""


def _table(table: ShownTable) -> list[str]:
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
