"""What one probe heard, noticed and got in a span of a campaign folder, by operator."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tandem_bench.scenario import ScenarioError
from tandem_bench.scenario.recorded.campaign import RUN
from tandem_bench.scenario.recorded.exported import has_records, rows

KINDS = ("signal_drop", "handover", "service_lost", "mobility_start", "mobility_stop")
"""Events that are compared. The last two are the probe's and not an operator's."""


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
