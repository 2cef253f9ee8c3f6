"""Any experiment that has no view of its own, a person's too: the numbers of its results, with the units that it declared."""

from __future__ import annotations

from collections.abc import Sequence

from tandem_server.analysis.reading import flag, mapping, number
from tandem_server.analysis.tables.facts import Facts
from tandem_server.analysis.tables.view import Figure, Observed, Table, View, tabulate

_MOST, _MOST_NAMES = 40, 8
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


def _figures(run: Facts, name: str) -> list[Figure]:
    """What a key of the result gives: a flag, a number, a distribution's middle, or a number each of a few names (paths, most often)."""
    title, unit = name.replace("_", " ")[:40], unit_of(name, run.units.get(name))
    inside = mapping(run.result, name)
    if number(inside, "p50") is not None:
        return [Figure(name, f"{title}, p50", unit)]
    if flag(run.result, name) is not None:
        return [Figure(name, title, "share", "share")]
    if number(run.result, name) is not None:
        return [Figure(name, title, unit)]
    if 0 < len(inside) <= _MOST_NAMES and any(number(inside, key) is not None for key in inside):
        return [
            Figure(f"{name}.{key}", f"{title}, {key[:30]}", unit) for key in inside if number(inside, key) is not None
        ]
    return []


def _value(run: Facts, figure: Figure) -> bool | float | None:
    """Of a figure in a run."""
    if figure.how == "share":
        return flag(run.result, figure.key)
    value = number(run.result, figure.key)
    if value is not None:
        return value
    inside = number(mapping(run.result, figure.key), "p50")
    name, dot, key = figure.key.partition(".")
    return number(mapping(run.result, name), key) if inside is None and dot else inside


def table(experiment: str, runs: Sequence[Facts]) -> Table | None:
    """Of the runs of one experiment."""
    figures: dict[str, Figure] = {}
    for run in runs:
        for name in run.result:
            for figure in _figures(run, name):
                if len(figures) < _MOST:
                    figures.setdefault(figure.key, figure)
    ordered = sorted(figures.values(), key=lambda f: f.key in ("bytes", "duration_s"))
    if not ordered:
        return None

    def observe(seen: Sequence[Facts]) -> Observed:
        for run in seen:
            told = {f.key: _value(run, f) for f in ordered}
            if any(value is not None for value in told.values()):
                yield run, {"kind": run.kind, "path": run.path, **told}

    by = (("kind", "Kind"), ("path", "Path")) if any(run.kind or run.path for run in runs) else ()
    note = "The numbers of the experiment’s results; lists and objects are in the runs’ manifests."
    return tabulate(View(experiment, experiment, by, tuple(ordered), observe, note), runs)
