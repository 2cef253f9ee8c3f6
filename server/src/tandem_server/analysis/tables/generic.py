"""Any experiment that has no view of its own, a person's too: the numbers of its results, with the units that it declared."""

from __future__ import annotations

from collections.abc import Sequence

from tandem_server.analysis.reading import flag, number
from tandem_server.analysis.tables.facts import Facts
from tandem_server.analysis.tables.view import Figure, Observed, Table, View, tabulate

_MOST = 40
_ENDINGS = (
    ("_bit_per_s", "bit/s"),
    ("_bytes", "B"),
    ("_per_minute", "1/min"),
    ("_share", "share"),
    ("_ms", "ms"),
    ("_db", "dB"),
    ("_dbm", "dBm"),
    ("_hz", "1/s"),
    ("_s", "s"),
)
"""Where the experiment declared none: every name ends in its unit."""


def unit_of(name: str, declared: str | None) -> str:
    """The unit of a figure."""
    if declared:
        return "share" if declared == "1" and name.endswith("_share") else declared
    if name == "bytes":
        return "B"
    return next((unit for ending, unit in _ENDINGS if name.endswith(ending)), "1")


def table(experiment: str, runs: Sequence[Facts]) -> Table | None:
    """Of the runs of one experiment."""
    figures: dict[str, Figure] = {}
    for run in runs:
        for name in run.result:
            if name in figures or len(figures) >= _MOST:
                continue
            title = name.replace("_", " ")[:40]
            if flag(run.result, name) is not None:
                figures[name] = Figure(name, title, "share", "share")
            elif number(run.result, name) is not None:
                figures[name] = Figure(name, title, unit_of(name, run.units.get(name)))
    ordered = sorted(figures.values(), key=lambda f: f.key in ("bytes", "duration_s"))
    if not ordered:
        return None

    def observe(seen: Sequence[Facts]) -> Observed:
        for run in seen:
            told = {f.key: flag(run.result, f.key) if f.how == "share" else number(run.result, f.key) for f in ordered}
            if any(value is not None for value in told.values()):
                yield run, {"kind": run.kind, "path": run.path, **told}

    by = (("kind", "Kind"), ("path", "Path")) if any(run.kind or run.path for run in runs) else ()
    note = "The numbers of the experiment’s results; lists and objects are in the runs’ manifests."
    return tabulate(View(experiment, experiment, by, tuple(ordered), observe, note), runs)
