"""Round trips on all paths at the same instants, as MONROE and Netrics measure them: the joint tail, and impairments together."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np

from tandem_server.analysis.estimates import Estimate
from tandem_server.analysis.material import Material
from tandem_server.analysis.round_trips import (
    DOWN,
    IMPAIRED_MS,
    LATE,
    LOST,
    Array,
    Codes,
    Joint,
    PathTrips,
    after_each_other,
    ccdf,
    joint,
    quantile,
    together,
)
from tandem_server.report import words
from tandem_server.report.figures import grouping
from tandem_server.report.figures.figure import LackingError, Need, figures
from tandem_server.report.figures.marks import Line, Row
from tandem_server.report.figures.sheet import MPTCP, Axis, Panel, Sheet, operator_hues

QUANTILES = (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999))
ASKED = Need(
    "round trips of two paths ([round_trip] enabled = true)", lambda m: any(len(kit.round_trips) > 1 for kit in m.each)
)
_OF_ALL = (
    "Instants at which all these paths were asked and no run was under way; what had no answer took infinitely long."
)


def tail(m: Material) -> Sheet:
    """How often a round trip took longer, of each path and of the best."""
    several = _joints(m)
    x, y = Axis("round-trip time, ms", log=True), Axis("share of instants that took longer", log=True, high=1)
    note = f"{_OF_ALL} A curve ends at its last answer: what is left below it is lost or down."
    panels = []
    for found in several:
        marks = [Line(name, ccdf(rtt_ms), n=len(rtt_ms)) for name, rtt_ms, _ in _rows(found)]
        panels.append(Panel(_title(found, several), [mark for mark in marks if mark.points], x, y))
    hues = {**operator_hues(m.named()), **{_best(found): MPTCP for found in several}}
    return grouping.sheet(panels, "answers to round trips", note, hues)


def quantiles(m: Material) -> Sheet:
    """Quantiles and losses of each path and of the best."""
    numbers: list[Row] = []
    texts = []
    several = _joints(m)
    for name, rtt_ms, code in (row for found in several for row in _rows(found, _title(found, several))):
        quants = {label: quantile(rtt_ms, share) for label, share in QUANTILES}
        shares = {word: float(np.mean(code == what)) for word, what in (("late", LATE), ("lost", LOST), ("down", DOWN))}
        told = {f"{label}_ms": None if v is None or math.isinf(v) else v for label, v in quants.items()}
        numbers.append({"path": name, "n": len(rtt_ms), **told, **shares})
        cells = [_quantile(value) for value in quants.values()]
        texts.append([name, words.count(len(rtt_ms)), *cells, *(words.percent(v, 3) for v in shares.values())])
    heads = ["", "n", *(f"{label}, ms" for label, _ in QUANTILES), "late", "lost", "down"]
    note = (
        f"{_OF_ALL} Late: answered between 2 and 10 s; lost: not within 10 s; down: the path was not up. "
        "Best: the path that answered first at each instant. "
        "A quantile that lies among what had no answer is “none”; one with less than one value beyond it is left out."
    )
    return grouping.table(heads, texts, numbers, note)


def impairments(m: Material) -> Sheet:
    """Whether paths are impaired together."""
    numbers: list[Row] = []
    texts = []
    for told in (together(found, a, b) for found in _joints(m) for a, b in permutations(range(len(found.names)), 2)):
        if told is None:
            continue
        first, second = told.a, told.b
        row: Row = {"a": first, "b": second, **_numbers("alone", told.alone), **_numbers("given", told.given)}
        numbers.append({**row, **_numbers("phi", told.phi)})
        times = "–" if told.given is None or not told.alone.value else f"{told.given.value / told.alone.value:.1f}"
        shares = (grouping.written(e, 2, words.percent, with_n=True) for e in (told.alone, told.given))
        texts.append([f"{second}, given {first}", *shares, times, grouping.written(told.phi, 2)])
    heads = ["", "impaired", "impaired, given the other", "ratio", "φ"]
    note = (
        f"{_OF_ALL} Impaired: lost, down, or above {IMPAIRED_MS:g} ms. Given the other: over the instants at which the "
        "other path was (n). "
        "φ: correlation; 0 of paths that have nothing to do with each other. "
        "95 % intervals: windows of five minutes drawn again, none below three."
    )
    return grouping.table(heads, texts, numbers, note)


def _joints(m: Material) -> list[Joint]:
    """Of kits with the same operators together, of others apart: the best of two is one of the same two."""
    found: dict[tuple[str, ...], list[Joint]] = {}
    for kit in m.each:
        if len(kit.round_trips) > 1:
            paths = _paths(kit)
            one = joint(paths, [kit.operators.get(path.path, path.path) for path in paths])
            if len(one.t_s):
                found.setdefault(tuple(sorted(one.names)), []).append(one)
    if not found:
        raise LackingError("instants at which all paths were asked and no run was under way")
    return [kits[0] if len(kits) == 1 else after_each_other(kits) for kits in found.values()]


def _paths(kit: Material) -> list[PathTrips]:
    """Those of modems where there are two of them, so that a Wi-Fi beside them takes no instants away; else all."""
    of_modems = [one for path, one in kit.round_trips.items() if path in kit.radio]
    return of_modems if len(of_modems) > 1 else list(kit.round_trips.values())


def _title(found: Joint, several: list[Joint]) -> str:
    """Whose they are, where that is not all the same."""
    return " + ".join(found.names) if len(several) > 1 else ""


def _rows(found: Joint, of: str = "") -> list[tuple[str, Array, Codes]]:
    """Each path's, then the best's; ``of``: what is said of these, in brackets."""
    each = [(name, found.rtt_ms[n], found.code[n]) for n, name in enumerate(found.names)]
    return [(f"{name} ({of})" if of else name, *rest) for name, *rest in [*each, (_best(found), *found.best())]]


def _best(found: Joint) -> str:
    return "best of two" if len(found.names) == 2 else f"best of {len(found.names)}"


def _quantile(value: float | None) -> str:
    return "none" if value is not None and math.isinf(value) else words.fixed(value, 1)


def _numbers(name: str, e: Estimate | None) -> Row:
    if e is None:
        return {}
    return {name: e.value, f"{name}_low": e.low, f"{name}_high": e.high, f"{name}_n": e.n}


FIGURES = figures(
    "Round trips all the time",
    ("trips-tail", "Figure 1", "Tail of the round-trip time, of each path and of the best", tail, ASKED),
    ("trips-quantiles", "Table 1", "Quantiles and losses of round trips", quantiles, ASKED),
    ("trips-impaired", "Table 2", "Impairments of one path given those of another", impairments, ASKED),
)
