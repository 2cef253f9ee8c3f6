"""A drive beside its replay: what was heard, noticed and got in each, and how far they are apart."""

from __future__ import annotations

import csv
import json
import math
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from tandem_bench.scenario import ScenarioError
from tandem_bench.scenario.recorded.campaign import RUN
from tandem_bench.scenario.recorded.exported import has_records, rows
from tandem_bench.scenario.show import PictureError, aligned, picture

FORMAT = "tandem-replay/1"
KINDS = ("signal_drop", "handover", "service_lost", "mobility_start", "mobility_stop")
"""Events that are compared. The last two are the probe's and not an operator's."""
NEAR_S = 2.0
"""An event of the replay is the drive's when it lies so near: both probes poll once a second, and each sees the same change at its next
poll."""
_COLOURS = {"A": "#0072b2", "B": "#d55e00", "": "#444444"}
_EVENTS = {"signal_drop": "v", "handover": "o", "service_lost": "x", "mobility_start": ">", "mobility_stop": "s"}


def compare(drive: Path, replay: Path, into: Path | None = None) -> list[Row]:
    """A replay's folder held against the ``drive``'s campaign folder: the table, and ``into`` (``replay/`` of the replay) what shows it.
    ScenarioError where one of them cannot be read; OSError. Without matplotlib there is no picture, which is said."""
    told = _replayed(replay)
    of = told["replayed"]
    seconds = float(told["duration_s"])
    ours = {name: one["operator"] for name, one in told["paths"].items()}
    theirs = {path: operator for operator, path in of["paths"].items()}
    one = heard(drive, of["probe"], of["started_utc_ns"], seconds, theirs)
    other = heard(replay, told["probe"], told["started_utc_ns"], seconds, ours)
    table = compared(one, other)
    into = into or replay / "replay"
    into.mkdir(parents=True, exist_ok=True)
    with (into / "comparison.csv").open("w", newline="") as out:
        writer = csv.DictWriter(out, list(Row.__dataclass_fields__), lineterminator="\n")
        writer.writeheader()
        writer.writerows(as_json(table))
    content = {"format": FORMAT, "drive": {**of, "folder": drive.name}, "seconds": seconds, "rows": as_json(table)}
    (into / "comparison.json").write_text(json.dumps(content, indent=1))
    try:
        picture(into / "comparison.svg", (9, 7), lambda figure: _draw(one, other, figure))
    except PictureError as error:
        print(f"note: {error}", file=sys.stderr)
    return table


def said(table: Sequence[Row], into: Path) -> str:
    """For people."""
    head = ("", "operator", "drive", "replay", "distance", "", "n")
    lines = [(r.what, r.operator, *map(_text, (r.drive, r.replay, r.distance)), r.unit, str(r.n)) for r in table]
    text = "\n".join(aligned([head, *lines], (0, 1, 5)))
    return f"\n{text}\n\n  in {into}: comparison.csv, comparison.json, comparison.svg"


def _text(value: float | None) -> str:
    return "–" if value is None else f"{value:.0f}" if value == round(value) else f"{value:.2f}"


def _replayed(folder: Path) -> dict[str, Any]:
    file = folder / "campaign.json"
    try:
        told: dict[str, Any] = json.loads(file.read_bytes())
        if not {"probe", "paths", "started_utc_ns"} <= set(told["replayed"]):
            raise KeyError
    except OSError as error:
        raise ScenarioError(file, None, f"cannot be read: {error.strerror}", "hint: a replay's folder") from None
    except (ValueError, KeyError, TypeError):
        hint = "hint: a folder that tandem-bench demo --from-run wrote"
        raise ScenarioError(file, None, "it is of no replay", hint) from None
    return told


# --- what one probe heard, noticed and got --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Got:
    """A download. ``way``: ``MPTCP``, or ``TCP`` and its operator; ``goodput_bit_per_s`` None of a failed one."""

    t_s: float
    end_s: float
    way: str
    goodput_bit_per_s: float | None


@dataclass(frozen=True, slots=True)
class Heard:
    """``rsrp_dbm``: by operator and whole second the last poll's; ``events``: times by kind and operator ("" of the probe's)."""

    seconds: float
    rsrp_dbm: Mapping[str, Mapping[int, float]]
    events: Mapping[tuple[str, str], list[float]]
    downloads: list[Got]


def heard(folder: Path, probe: str, started_utc_ns: int, seconds: float, operators: Mapping[str, str]) -> Heard:
    """``operators``: by path. ScenarioError where the folder has no records, or they cannot be read."""
    if not has_records(folder, probe):
        hint = (
            "hint: an export has them; of a rehearsal: tandem-server report DIR --records, while its database is there"
        )
        raise ScenarioError(folder, None, f"no records of {probe}", hint)
    end_ns = started_utc_ns + int(seconds * 1e9)
    levels: dict[str, dict[int, float]] = defaultdict(dict)
    for row in rows(folder, probe, "radio", ("path", "rsrp_dbm", "state"), started_utc_ns, end_ns):
        operator, level = operators.get(str(row.get("path"))), row.get("rsrp_dbm")
        if operator is not None and level is not None:
            levels[operator][math.floor((row["utc_ns"] - started_utc_ns) / 1e9)] = float(level)
    events: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in rows(folder, probe, "event", ("kind", "path"), started_utc_ns, end_ns):
        kind = str(row.get("kind"))
        if kind in KINDS:
            of = "" if kind.startswith("mobility") else operators.get(str(row.get("path")), "")
            events[kind, of].append((row["utc_ns"] - started_utc_ns) / 1e9)
    return Heard(seconds, levels, events, _downloads(folder, probe, started_utc_ns, seconds, operators))


def _downloads(
    folder: Path, probe: str, started_utc_ns: int, seconds: float, operators: Mapping[str, str]
) -> list[Got]:
    found = []
    for file in sorted((folder / "probe" / probe / "runs").glob("*.json")):
        try:
            told: dict[str, Any] = json.loads(file.read_bytes())
            begin, end = told["started_utc_ns"], told["ended_utc_ns"]
            if told.get("format", RUN) != RUN:
                continue
            kind, names = told["kind"], [operators.get(name) for name in told["paths"]]
        except (OSError, ValueError, KeyError, TypeError):
            continue  # no manifest of a run: the report says so
        if type(begin) is not int or type(end) is not int or kind not in ("mptcp", "tcp") or None in names:
            continue  # of no known time, or of a path that is not played
        t_s = (begin - started_utc_ns) / 1e9
        if 0 <= t_s < seconds:
            result = told.get("result")
            goodput = result.get("goodput_bit_per_s") if isinstance(result, dict) else None
            known = float(goodput) if isinstance(goodput, int | float) and told.get("failure") is None else None
            way = "MPTCP" if kind == "mptcp" else f"TCP {names[0]}"
            found.append(Got(t_s, (end - started_utc_ns) / 1e9, way, known))
    return sorted(found, key=lambda one: one.t_s)


# --- how far they are apart: pure ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Row:
    """One quantity. ``distance`` in ``unit``: of levels between polls of the same second, of events how many of the drive's the replay has
    within ``NEAR_S``, of goodputs the replay's over the drive's. ``n``: seconds, the drive's events, the replay's downloads. None: not
    known."""

    what: str
    operator: str
    drive: float | None
    replay: float | None
    distance: float | None
    unit: str
    n: int


def compared(drive: Heard, replay: Heard) -> list[Row]:
    """All rows, of the time that both have."""
    operators = sorted({*drive.rsrp_dbm, *replay.rsrp_dbm})
    table = [row for operator in operators for row in _levels(drive, replay, operator)]
    for kind in KINDS:
        whose = [""] if kind.startswith("mobility") else operators
        table += [_events(drive, replay, kind, operator) for operator in whose]
    ways = dict.fromkeys(one.way for one in (*drive.downloads, *replay.downloads))
    return table + [_goodput(drive, replay, way) for way in ways]


def _levels(drive: Heard, replay: Heard, operator: str) -> list[Row]:
    one, other = drive.rsrp_dbm.get(operator, {}), replay.rsrp_dbm.get(operator, {})
    both = sorted(one.keys() & other.keys())
    apart = sorted(abs(one[second] - other[second]) for second in both)
    middles = (median(one.values()) if one else None, median(other.values()) if other else None)
    return [
        Row("RSRP, half of the polls are nearer", operator, *middles, _quantile(apart, 0.5), "dB", len(both)),
        Row("RSRP, nine in ten are nearer", operator, *middles, _quantile(apart, 0.9), "dB", len(both)),
    ]


def _quantile(ordered: Sequence[float], share: float) -> float | None:
    return ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)] if ordered else None


def _events(drive: Heard, replay: Heard, kind: str, operator: str) -> Row:
    mine, theirs = sorted(drive.events.get((kind, operator), [])), sorted(replay.events.get((kind, operator), []))
    found = 0
    left = list(theirs)
    for at in mine:
        near = min(left, key=lambda one: abs(one - at), default=None)
        if near is not None and abs(near - at) <= NEAR_S:
            left.remove(near)
            found += 1
    return Row(kind, operator, float(len(mine)), float(len(theirs)), float(found), "found again", len(mine))


def _goodput(drive: Heard, replay: Heard, way: str) -> Row:
    one, other = (
        [d.goodput_bit_per_s for d in heard.downloads if d.way == way and d.goodput_bit_per_s is not None]
        for heard in (drive, replay)
    )
    before, after = (median(rates) / 1e6 if rates else None for rates in (one, other))
    ratio = after / before if before and after is not None else None
    return Row(f"goodput of {way}, Mbit/s", "", before, after, ratio, "replay / drive", len(other))


def as_json(table: Sequence[Row]) -> list[dict[str, Any]]:
    """A row an object."""
    return [asdict(row) for row in table]


def _draw(drive: Heard, replay: Heard, figure: Any) -> None:  # noqa: ANN401  matplotlib is imported late
    levels = figure.subplots(4, 1, sharex=True, height_ratios=(2, 2, 1.4, 2))
    for axis, operator in zip(levels[:2], ("A", "B"), strict=True):
        for heard, name, style in ((drive, "drive", "-"), (replay, "replay", "--")):
            of = sorted(heard.rsrp_dbm.get(operator, {}).items())
            axis.plot([t for t, _ in of], [v for _, v in of], style, lw=1, label=name, color=_COLOURS[operator],
                      alpha=1 if name == "drive" else 0.6)  # fmt: skip
        axis.set_ylabel(f"{operator}: RSRP, dBm")
        axis.legend(loc="lower left", fontsize=7)
    events, got = levels[2:]
    for height, heard in ((1, drive), (0, replay)):
        for (kind, operator), times in sorted(heard.events.items()):
            up = height + {"A": 0.15, "B": -0.15}.get(operator, 0.0)
            events.plot(times, [up] * len(times), _EVENTS[kind], ms=4, mfc="none", color=_COLOURS[operator],
                        label=kind.replace("_", " ") if height and operator != "B" else None)  # fmt: skip
    events.set_yticks([0, 1], ["replay", "drive"])
    events.set_ylim(-0.5, 2.2)  # the legend stands above
    if drive.events:
        events.legend(loc="upper right", fontsize=7, ncols=5)
    ways = {way: n for n, way in enumerate(dict.fromkeys(one.way for one in (*drive.downloads, *replay.downloads)))}
    for heard, style in ((drive, "-"), (replay, "--")):
        for one in heard.downloads:
            if one.goodput_bit_per_s is not None:
                rate = one.goodput_bit_per_s / 1e6
                got.plot([one.t_s, one.end_s], [rate, rate], style, lw=2, color=f"C{ways[one.way]}")
    for way, n in ways.items():
        got.plot([], [], color=f"C{n}", label=way)
    if ways:
        got.legend(loc="upper right", fontsize=7, ncols=3)
    got.set_ylabel("goodput, Mbit/s")
    got.set_ylim(bottom=0)
    got.set_xlabel("s since the drive’s beginning; drive solid, replay dashed")
