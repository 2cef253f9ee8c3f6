"""A view: what one table shows of an experiment's runs, values observed run by run and summed up over each group of runs; and the table of
any experiment that has no view of its own, a person's too: the numbers of its results, with the units that it declared."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from tandem_server.analysis.estimates import quantile
from tandem_server.analysis.reading import flag, mapping, number
from tandem_server.analysis.tables.facts import Facts

Cell = str | int | float | None
Values = Mapping[str, object]
Observed = Iterable[tuple[Facts, Values]]
How = Literal["median", "sum", "share", "tally"]
GROUP = (("campaign", "Campaign"), ("step", "Step"), ("arm", "Arm"))
PATHS = {"path", "paths", "primary", "way", "ways"}
"""Columns that name paths, between / and →."""


@dataclass(frozen=True, slots=True)
class Figure:
    """``how`` values become one: their median, their sum, the share of true ones, or how often each text came. ``spread``: quartiles
    beside the median. ``unit`` as in the schema; "1" for shares and numbers without one."""

    key: str
    title: str
    unit: str = "1"
    how: How = "median"
    spread: bool = False


@dataclass(frozen=True, slots=True)
class View:
    """``by``: values that split a group further, key and title. ``observe``: from all runs of the experiment to the values."""

    name: str
    title: str
    by: tuple[tuple[str, str], ...]
    figures: tuple[Figure, ...]
    observe: Callable[[Sequence[Facts]], Observed]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """``unit`` "" for text."""

    key: str
    title: str
    unit: str


@dataclass(frozen=True, slots=True)
class Table:
    """``rows`` in the columns' order. ``values``: each observation, with its run: what the rows were made of."""

    name: str
    title: str
    note: str
    columns: tuple[Column, ...]
    rows: list[tuple[Cell, ...]]
    value_columns: tuple[str, ...]
    values: list[tuple[Cell, ...]] = field(default_factory=list)


def tabulate(view: View, runs: Sequence[Facts]) -> Table | None:
    """The table of ``view``; None when nothing was observed. A pool's kits are observed apart: pairs are of one."""
    groups: dict[tuple[Cell, ...], list[Values]] = {}
    ids: dict[tuple[Cell, ...], set[tuple[str, str]]] = {}
    values: list[tuple[Cell, ...]] = []
    kits: dict[str, list[Facts]] = {}
    for run in runs:
        kits.setdefault(run.probe, []).append(run)
    parts = tuple(dict.fromkeys((key, key.capitalize()) for run in runs for key in run.part))
    pooled = any(kits)
    head = ("run", "probe", "started_utc_ns") if pooled and "probe" not in dict(parts) else ("run", "started_utc_ns")
    for run, seen in (found for mine in kits.values() for found in view.observe(mine)):
        own = (named(run, plain(seen.get(name))) if name in PATHS else plain(seen.get(name)) for name, _ in view.by)
        key = (run.campaign, run.step, run.arm, *(run.part.get(name) for name, _ in parts), *own)
        groups.setdefault(key, []).append(seen)
        ids.setdefault(key, set()).add((run.probe, run.id))
        of = (run.probe,) if "probe" in head else ()
        values.append((run.id, *of, run.started_utc_ns, *key, *(plain(seen.get(f.key)) for f in view.figures)))
    if not groups:
        return None
    columns = [Column(key, title, "") for key, title in (*GROUP, *parts, *view.by)]
    columns += [Column("probes", "Probes", "1")] if pooled else []
    columns += [Column("runs", "Runs", "1"), Column("values", "n", "1")]
    for figure in view.figures:
        columns.append(Column(figure.key, figure.title, "" if figure.how == "tally" else figure.unit))
        if figure.spread:
            columns += [Column(f"{figure.key}_p{q}", f"{figure.title}, p{q}", figure.unit) for q in (25, 75)]
    rows = [
        (
            *key,
            *([len({probe for probe, _ in ids[key]})] if pooled else []),
            len(ids[key]),
            len(seen),
            *(cell for figure in view.figures for cell in _cells(figure, seen)),
        )
        for key, seen in sorted(groups.items(), key=lambda item: tuple(_order(cell) for cell in item[0]))
    ]
    heads = (*head, *(k for k, _ in (*GROUP, *parts, *view.by)), *(f.key for f in view.figures))
    return Table(view.name, view.title, view.note, tuple(columns), rows, heads, values)


def named(run: Facts, paths: Cell) -> Cell:
    """Paths of a pool's run under the names that they have in all kits; of one campaign as they are."""
    if not run.operators or not isinstance(paths, str):
        return paths
    return re.sub(r"[^/→\s]+", lambda found: run.operators.get(found[0], found[0]), paths)


_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]+)?)")


def _order(cell: Cell) -> tuple[tuple[int, float, str], ...]:
    """Numbers by size, then texts, in which numbers count by size too: "2 Mbit/s" before "10 Mbit/s"."""
    if isinstance(cell, int | float):
        return ((0, float(cell), ""),)
    pieces = _NUMBER.split((cell or "")[:300])
    return tuple((1, float(piece[:300]), "") if n % 2 else (2, 0.0, piece) for n, piece in enumerate(pieces))


def _cells(figure: Figure, seen: Sequence[Values]) -> list[Cell]:
    raw = [values.get(figure.key) for values in seen]
    if figure.how == "tally":
        counted = Counter(str(v) for v in raw if isinstance(v, str) and v)
        return [", ".join(word if n == len(raw) else f"{word} ×{n}" for word, n in counted.most_common(6)) or None]
    if figure.how == "share":
        known = [v for v in raw if isinstance(v, bool)]
        return [sum(known) / len(known) if known else None]
    found = [float(v) for v in raw if isinstance(v, int | float) and not isinstance(v, bool) and math.isfinite(v)]
    if figure.how == "sum":
        return [sum(found) if found else None]
    cells: list[Cell] = [quantile(found, 0.5)]
    return cells + ([quantile(found, 0.25), quantile(found, 0.75)] if figure.spread else [])


def plain(value: object) -> Cell:
    """A value as a cell: text, number, or None."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float) else None


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


def generic_table(experiment: str, runs: Sequence[Facts]) -> Table | None:
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
