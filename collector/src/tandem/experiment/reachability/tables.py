"""What the rows of a survey come to: resolutions, overlap of addresses, unresponsive shares, round-trip times by way. Pure.

A *way* is a pair of paths, written as the paper writes it: the path that pings, then the path that resolved. With Wi-Fi ``W`` and
LTE ``L``, ``WL`` is an address that LTE's resolvers gave, pinged over Wi-Fi. Here the names of the paths are joined by ``/``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations, product
from typing import Any

from tandem.experiment.results import distribution, share

Row = dict[str, Any]


def summary(rows: Sequence[Row], paths: Sequence[str]) -> dict[str, Any]:
    """All tables. Absent figures are None: a share of nothing, a mean of no value."""
    allowed = [row for row in rows if not row.get("denied")]
    ways = {f"{ping}/{resolved}": (ping, resolved) for ping, resolved in product(paths, paths)}
    by_name = {way: _name_rtts(allowed, *pair) for way, pair in ways.items()}
    return {
        "names": {"done": len(rows), "denied": len(rows) - len(allowed)},
        "resolution": {path: _resolution(allowed, path) for path in paths},
        "overlap": [_overlap(allowed, one, other) for one, other in combinations(paths, 2)],
        "ways": [_way(allowed, way, *pair, by_name[way]) for way, pair in ways.items()],
        "comparison": [_comparison(one, other, by_name[one], by_name[other]) for one, other in combinations(ways, 2)],
    }


def addresses_of(row: Row, path: str) -> list[str]:
    """What ``path``'s resolvers gave for the name, both families, each once."""
    answers = row.get("resolved", {}).get(path, {})
    return list(dict.fromkeys(a for answer in answers.values() for a in answer["addresses"]))


def _resolution(rows: Sequence[Row], path: str) -> dict[str, Any]:
    statuses = {kind: Counter[str]() for kind in ("A", "AAAA")}
    resolved, with_kind, refused, times = 0, Counter[str](), Counter[str](), list[float]()
    for row in rows:
        found = addresses_of(row, path)
        resolved += bool(found)
        refused.update(row["refused"][a] for a in found if a in row.get("refused", {}))
        for kind, answer in row["resolved"].get(path, {}).items():
            status = "no address" if answer["status"] == "ok" and not answer["addresses"] else answer["status"]
            statuses[kind][status] += 1
            with_kind[kind] += bool(answer["addresses"])
            if answer["ms"] is not None:
                times.append(answer["ms"])
    return {
        "names": len(rows),
        "resolved": resolved,
        "resolved_a": with_kind["A"],
        "resolved_aaaa": with_kind["AAAA"],
        "addresses": len({a for row in rows for a in addresses_of(row, path)}),
        "addresses_not_pinged": dict(refused),
        "status_a": dict(statuses["A"]),
        "status_aaaa": dict(statuses["AAAA"]),
        "answer_ms": distribution(times),
    }


def _overlap(rows: Sequence[Row], one: str, other: str) -> dict[str, Any]:
    """``share``: of all addresses that either gave, those that both gave. ``names_…``: of the names that both resolved."""
    first = {a for row in rows for a in addresses_of(row, one)}
    second = {a for row in rows for a in addresses_of(row, other)}
    sets = [(set(addresses_of(row, one)), set(addresses_of(row, other))) for row in rows]
    both = [(a, b) for a, b in sets if a and b]
    return {
        "paths": [one, other],
        "addresses_either": len(first | second),
        "addresses_both": len(first & second),
        "share": share(len(first & second), len(first | second)),
        "names_both": len(both),
        "names_only_first": sum(bool(a and not b) for a, b in sets),
        "names_only_second": sum(bool(b and not a) for a, b in sets),
        "names_same_share": share(sum(a == b for a, b in both), len(both)),
        "names_sharing_share": share(sum(bool(a & b) for a, b in both), len(both)),
    }


def _way(rows: Sequence[Row], way: str, ping: str, resolved: str, names: dict[str, float]) -> dict[str, Any]:
    """Addresses count once for each name that has them. Those to which nothing could be sent count in ``not_sent`` only."""
    tested = [p for row in rows for p in _pinged(row, ping, resolved)]
    sent = [p for p in tested if p["sent"]]
    silent = sum(not p["answered"] and not p["resets"] for p in sent)
    per_name = [[p for p in _pinged(row, ping, resolved) if p["sent"]] for row in rows]
    names_sent = [pinged for pinged in per_name if pinged]
    names_silent = sum(not any(p["answered"] or p["resets"] for p in pinged) for pinged in names_sent)
    means = [sum(p["rtt_ms"]) / len(p["rtt_ms"]) for p in sent if p["rtt_ms"]]
    return {
        "way": way,
        "ping": ping,
        "resolved": resolved,
        "addresses": len(sent),
        "not_sent": len(tested) - len(sent),
        "unresponsive": silent,
        "unresponsive_share": share(silent, len(sent)),
        "only_resets": sum(bool(p["resets"] and not p["answered"]) for p in sent),
        "pings": sum(p["sent"] for p in sent),
        "pings_unanswered_share": share(
            sum(p["sent"] - p["answered"] - p["resets"] for p in sent), sum(p["sent"] for p in sent)
        ),
        "names": len(names_sent),
        "names_unresponsive_share": share(names_silent, len(names_sent)),
        "address_rtt_ms": distribution(means),
        "name_rtt_ms": distribution(list(names.values())),
    }


def _pinged(row: Row, ping: str, resolved: str) -> list[dict[str, Any]]:
    pings = row.get("pings", {})
    return [pings[a][ping] for a in addresses_of(row, resolved) if ping in pings.get(a, {})]


def _name_rtts(rows: Sequence[Row], ping: str, resolved: str) -> dict[str, float]:
    """Of each name: the mean over its addresses of the mean over their pings."""
    found = {}
    for row in rows:
        means = [sum(p["rtt_ms"]) / len(p["rtt_ms"]) for p in _pinged(row, ping, resolved) if p["rtt_ms"]]
        if means:
            found[row["name"]] = sum(means) / len(means)
    return found


def _comparison(one: str, other: str, first: dict[str, float], second: dict[str, float]) -> dict[str, Any]:
    """Name by name, of those that have a time both ways. Positive differences: the second way is slower."""
    common = first.keys() & second.keys()
    differences = [second[name] - first[name] for name in common]
    return {
        "ways": [one, other],
        "names": len(common),
        "second_slower_share": share(sum(d > 0 for d in differences), len(differences)),
        "difference_ms": distribution(differences),
    }
