"""Packet-delivery traces (mahimahi's format) as links' capacity, and made of a recording.

One whole number a line: a millisecond at which 1500 bytes may pass. After the last the trace begins again. From mm-link(1); the
program ``tandem-link`` plays them opportunity by opportunity, so what is computed here, means over ticks, is only for the timeline:
what people, plots and scores see.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from tandem_bench.scenario.model import TICK_S
from tandem_bench.scenario.played import Played, Timeline
from tandem_bench.scenario.toml_table import ScenarioError

OPPORTUNITY_BYTES = 1500
LONGEST_MS = 1_000_000_000
MOST_LINES = 20_000_000
_HINT = "give one whole number of milliseconds a line"
PAYLOAD_BYTES = 1448
"""Of an opportunity of 1500 bytes: IPv4 and TCP with its time stamps take the rest."""

_RECORD = (
    "hint: RUN.json of the probe's folder of runs, made by the experiment delivery (collector/examples/experiments)"
)


def read(path: str | Path) -> list[int]:
    """The milliseconds of a trace. ScenarioError with file, line and hint for what is none."""
    path = Path(path)
    try:
        lines = path.read_bytes().decode("ascii").split("\n")
    except (OSError, ValueError) as error:
        why = "not ASCII text" if isinstance(error, UnicodeDecodeError) else str(error)
        raise ScenarioError(path, None, f"cannot be read: {why}", "give a packet-delivery trace") from None
    if lines[-1] == "":
        lines.pop()
    if not lines:
        raise ScenarioError(path, 1, "the trace is empty", _HINT)
    if len(lines) > MOST_LINES:
        raise ScenarioError(path, MOST_LINES + 1, f"more than {MOST_LINES} lines", "cut the trace")
    times: list[int] = []
    for number, line in enumerate(lines, start=1):
        text = line.removesuffix("\r")
        # isdigit is of ASCII here; at most ten digits, so that no number is absurdly long to convert
        if not text.isdigit() or len(text) > 10 or int(text) > LONGEST_MS:
            raise ScenarioError(path, number, f"{text[:20]!r} is no time", _HINT)
        if times and int(text) < times[-1]:
            raise ScenarioError(path, number, f"{int(text)} comes after a later time", "sort the lines by number")
        times.append(int(text))
    if times[-1] == 0:
        raise ScenarioError(path, len(times), "the trace ends at 0 and could never begin again", "end it later")
    return times


def rates(times_ms: Sequence[int], ticks: int) -> list[int]:
    """Mean capacity of each tick, bit/s. An opportunity at the very beginning of a tick belongs to the tick before, as to the link
    it is the last of what came until then."""
    tick_ms, period_ms, count = round(TICK_S * 1000), times_ms[-1], len(times_ms)

    def until(ms: int) -> int:
        rounds, within = divmod(ms, period_ms)
        return rounds * count + bisect_right(times_ms, within)

    sums = [until(tick * tick_ms) for tick in range(ticks + 1)]
    return [round((b - a) * OPPORTUNITY_BYTES * 8 / TICK_S) for a, b in pairwise(sums)]


def with_traces(played: Played, traces: Mapping[str, Mapping[str, Path]]) -> Played:
    """``played`` with the capacity of some directions from traces: operator → ``down``, ``up``, ``down-light`` or ``up-light`` → file.

    A light trace is for the link alone: timeline and truth hold the means of the other.

    A trace has its own gaps, so the scenario's outages do not close its direction: in the timeline there is then no outage but a
    rate of 0 in the other direction, and where both directions are traced the truth has no outages of that operator.
    """
    operators, events = dict(played.operators), list(played.events)
    kept: dict[str, dict[str, Path]] = {}
    for name, files in traces.items():
        if name not in operators:
            known = ", ".join(operators)
            raise ScenarioError(f"--{min(files)}-trace", None, f"no operator {name!r}", known)
        for side in ("down", "up"):
            if f"{side}-light" in files:
                read(files[f"{side}-light"])
                if side not in files:
                    wrong = f"no --{side}-trace {name}=FILE beside it"
                    raise ScenarioError(f"--{side}-light-trace", None, wrong, "give that of the link under load too")
        timeline = operators[name]
        columns = dict(timeline.columns)
        outage, ticks = columns["outage"], len(timeline)
        for side in ("down", "up"):
            column = f"{side}_bit_per_s"
            if side in files:
                columns[column] = rates(read(files[side]), ticks)
            else:
                columns[column] = [0 if out else rate for out, rate in zip(outage, columns[column], strict=True)]
        columns["outage"] = [False] * ticks
        columns["queue"] = ["kept"] * ticks
        operators[name] = Timeline(name, timeline.scenario, timeline.seed, timeline.duration_s, columns)
        kept[name] = {side: Path(file).absolute() for side, file in files.items()}
        if {"down", "up"} <= files.keys():
            events = [e for e in events if not (e["type"] == "outage" and e.get("operator") == name)]
    return replace(played, operators=operators, events=events, traces=kept)


def traces(manifest: Path) -> tuple[dict[str, list[int]], float]:
    """Of a run of the experiment ``delivery`` (collector/examples), from its ``manifest``: milliseconds of opportunities of the ``loaded``
    link and of the ``light`` one, hardly used; and the light path's round trip, ms. ScenarioError where it is none, or it recorded
    nothing."""
    try:
        told: dict[str, Any] = json.loads(manifest.read_bytes())
        result = told["result"]
        packets = [int(n) for n in result["loaded"]["packets"]]
        trains = [(int(first), int(last), int(count)) for first, last, count in result["light"]["trains"]]
        rtt_ms = float(result["light"]["rtt_ms"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        why = error.strerror if isinstance(error, OSError) else "no recording of deliveries"
        raise ScenarioError(manifest, None, str(why), _RECORD) from None
    found = {"loaded": [ms for ms, n in enumerate(packets) for _ in range(n)], "light": light(trains)}
    for name, lines in found.items():
        if not lines or lines[-1] == 0:
            raise ScenarioError(manifest, None, f"nothing came over the {name} path", "hint: record again")
    return found, rtt_ms


def light(trains: list[tuple[int, int, int]]) -> list[int]:
    """Each train (µs of its first and last arrival, bytes after the first) is the pace until the next one begins; one whose packets
    were read together tells none."""
    paced = [
        (first, last, (last - first) * PAYLOAD_BYTES / count)
        for first, last, count in trains
        if last > first and count > 0
    ]
    ends = [first for first, *_ in paced[1:]] + [last + apart for _, last, apart in paced[-1:]]
    lines: list[int] = []
    for (first, _, apart), end in zip(paced, ends, strict=True):
        lines += [int(first + n * apart) // 1000 for n in range(max(1, round((end - first) / apart)))]
    return sorted(lines)


def write(found: dict[str, list[int]], folder: Path) -> dict[str, Path]:
    """``FOLDER/loaded.down`` and ``FOLDER/light.down``; OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {name: folder / f"{name}.down" for name in found}
    for name, lines in found.items():
        files[name].write_text("".join(f"{ms}\n" for ms in lines))
    return files
