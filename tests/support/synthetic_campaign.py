"""A made-up campaign with the shapes of a real one: truth, records and manifests.

Nothing here is measured. It stands in for a bench so that evaluation and report can be developed and tested alone.
"""

import math
import random
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from support.synthetic_scenario import PATHS, START_MONOTONIC_NS, START_UTC_NS, Scenario
from tandem.schema.line_protocol import Point, encode_point
from tandem.schema.record import Record
from tandem_server.analysis.records import EVER, Piece, Span, piece_of
from tandem_server.store import Series

BOOT = "7f0c6f2e-8f7e-4c7e-9a59-0e6a3c9d2b11"
PROBE = "probe-1"


def run_manifest(
    run: str, experiment: str, start_s: float, length_s: float, result: dict[str, Any] | None, /, **more: Any
) -> dict[str, Any]:
    """Of a run that did not fail, at its time of the made-up commute."""
    first, last = round(start_s * 1e9), round((start_s + length_s) * 1e9)
    return {
        "format": "tandem-run/1",
        "id": run,
        "probe": PROBE,
        "boot": BOOT,
        "experiment": {"name": experiment, "version": 1},
        "seed": 1,
        "started_utc_ns": START_UTC_NS + first,
        "ended_utc_ns": START_UTC_NS + last,
        "started_monotonic_ns": START_MONOTONIC_NS + first,
        "ended_monotonic_ns": START_MONOTONIC_NS + last,
        **{part: {} for part in ("environment", "modems", "clock", "records")},
        "failure": None,
        "files": [],
        "result": result,
        **more,
    }


class Row(NamedTuple):
    """One record, with ``probe`` and ``boot`` among its tags."""

    utc_ns: int
    tags: dict[str, str]
    fields: dict[str, Any]


def as_piece(measurement: str, rows: list[Row]) -> Piece:
    """Of records with the same tags."""
    names = list(dict.fromkeys(name for row in rows for name in row.fields))
    values = [[row.utc_ns, *map(row.fields.get, names)] for row in rows]
    return piece_of(measurement, Series(measurement, dict(rows[0].tags), ["time", *names], values))


@dataclass
class MemorySource:
    """The records in a list, as a store would hand them out. ``lost``: record numbers that it lacks."""

    points: list[tuple[str, int | None, Row]] = field(default_factory=list)
    lost: set[int] = field(default_factory=set)

    def pieces(self, measurement: str, probe: str, span: Span = EVER, _fields: object = None) -> list[Piece]:
        low, high = span[0] or 0, span[1] or 2**63
        found: dict[tuple[tuple[str, str], ...], list[Row]] = {}
        for name, seq, row in self.points:
            if (name, row.tags["probe"]) == (measurement, probe) and low <= row.utc_ns <= high and seq not in self.lost:
                found.setdefault(tuple(sorted(row.tags.items())), []).append(row)
        return [as_piece(measurement, rows) for rows in found.values()]

    def numbers(self, measurement: str, probe: str, boots: set[str]) -> np.ndarray:
        found = [
            seq
            for name, seq, row in self.points
            if name == measurement
            and seq is not None
            and seq not in self.lost
            and row.tags["probe"] == probe
            and row.tags["boot"] in boots
        ]
        return np.array(found, dtype=np.int64)


class Synthetic:
    """One campaign. ``seconds`` its length; ``paths`` name to operator; ``runs`` whether any download is made."""

    def __init__(
        self,
        seed: int = 1,
        seconds: float = 180.0,
        paths: dict[str, str] | None = None,
        runs: bool = True,
        events: bool = True,
    ) -> None:
        self.random = random.Random(seed)
        self.seconds, self.paths, self.with_events = seconds, paths or dict(PATHS), events
        scenario = Scenario(seed, seconds, self.paths, events)
        self.truth, self.down, self.rtt = scenario.truth, scenario.down, scenario.rtt
        self.cells, self.rsrp = scenario.cells, scenario.rsrp
        self.source = MemorySource()
        self.manifests: list[dict[str, Any]] = []
        self.captures: list[tuple[str, bytes, str]] = []
        self.seq = 0
        self.by_measurement: dict[str, int] = {}
        self._probe()
        if runs:
            self._runs()

    def record(
        self, t: float, measurement: str, tags: dict[str, str | None], fields: dict[str, Any], numbered: bool = True
    ) -> None:
        at = round(t * 1e9)
        record = Record.make(measurement, tags, fields, START_MONOTONIC_NS + at)
        seq = None
        if numbered:
            self.seq += 1
            seq = self.seq
            self.by_measurement[measurement] = self.by_measurement.get(measurement, 0) + 1
        common = {"probe": PROBE, "boot": BOOT}
        values = {**record.fields, "monotonic_ns": record.monotonic_ns, **({} if seq is None else {"seq": seq})}
        self.source.points.append((measurement, seq, Row(START_UTC_NS + at, {**record.tags, **common}, values)))

    def _event(self, t: float, kind: str, where: dict[str, str], **fields: Any) -> None:
        self.record(t, "event", {"kind": kind, **where}, fields)

    def _probe(self) -> None:
        last_rsrp: dict[str, float] = {}
        last_cell: dict[str, int] = {}
        mobile, changed = False, -100.0
        for second in range(int(self.seconds)):
            for k, (path, operator) in enumerate(self.paths.items()):
                t = second + 0.2 + 0.31 * k
                tick = min(int(t * 10), len(self.rsrp[path]) - 1)
                rsrp, eci = float(round(self.rsrp[path][tick])), self.cells[path][tick]
                sinr = max(-20.0, min(40.0, float(round((rsrp + 110) * 0.8))))
                answered = not (self.with_events and path == "b" and 90 <= second < 93)
                told: dict[str, Any] = {"poll_duration_ms": 14.0, "poll_late_ms": 120.4 if second == 97 else 0.4}
                told["state"] = "connected" if answered else "no_answer"
                if answered:
                    told |= {"rsrp_dbm": rsrp, "sinr_db": sinr, "eci": eci}
                tags = {"path": path, "operator": operator, "driver": ("quectel", "huawei")[k], "rat": "LTE"}
                self.record(t, "radio", tags, told)
                if not answered:
                    continue
                change = rsrp - last_rsrp.get(path, rsrp)
                where = {"path": path, "operator": operator}
                if abs(change) >= 6 and self.with_events:
                    changed = t
                    if not mobile:
                        mobile = True
                        self._event(t, "mobility_start", where, quantity="rsrp_dbm", change_db=change)
                    if change < 0:
                        self._event(t, "signal_drop", where, quantity="rsrp_dbm", change_db=change)
                if last_cell.get(path, eci) != eci:
                    kind = "enb" if last_cell[path] >> 8 != eci >> 8 else "sector"
                    self._event(t, "handover", where, from_eci=last_cell[path], to_eci=eci, handover_kind=kind)
                last_rsrp[path], last_cell[path] = rsrp, eci
            if mobile and second - changed >= 10:
                mobile = False
                self._event(second + 0.9, "mobility_stop", {}, quantity="rsrp_dbm")

    def _runs(self) -> None:
        number = 0
        names = list(self.paths)
        for start, pairing in (
            (4.0, "sequential"),
            (54.0, "simultaneous"),
            (88.0, "simultaneous"),
            (120.0, "simultaneous"),
            (158.0, "sequential"),
        ):
            if start + 8 > self.seconds:
                continue
            kinds = [("tcp", [n]) for n in names] + [("mptcp", names)]
            self.random.shuffle(kinds)
            number += 1
            at = start
            for kind, paths in kinds:
                length = 6.0 if pairing == "sequential" else 8.0
                shared = 0.5 if pairing == "simultaneous" else 1.0
                self._run(
                    f"run-{number:02d}{kind[0]}{paths[0]}", f"pair-{number}", kind, paths, pairing, at, length, shared
                )
                if pairing == "sequential":
                    at += length + 1.5

    def _run(
        self,
        name: str,
        pair: str,
        kind: str,
        paths: list[str],
        pairing: str,
        start: float,
        length: float,
        shared: float,
    ) -> None:
        carried = dict.fromkeys(paths, 0.0)
        for step in range(1, int(length * 10) + 1):
            t = start + step / 10
            total = 0.0
            for i, path in enumerate(paths):
                ramp = min(1.0, step / 8) * (0.94 if kind == "mptcp" else 0.96) * shared
                if i and kind == "mptcp" and step < 4:
                    ramp = 0.0
                rate = (
                    self.down[path][min(int(t * 10), len(self.down[path]) - 1)] * ramp * self.random.uniform(0.97, 1.0)
                )
                carried[path] += rate / 80
                total += rate
                queue = 40 * (1 - math.exp(-step / 10)) * self.random.uniform(0.8, 1.2)
                tags = {"run": name, "path": path, "operator": self.paths[path], "subflow": str(i + 1)}
                seen = {"goodput_bit_per_s": rate, "bytes_received": int(carried[path]), "rcv_rtt_ms": 60.0}
                self.record(t, "subflow", {**tags, "end": "probe"}, seen)
                rtt_ms = self.rtt[path][min(int(t * 10), len(self.rtt[path]) - 1)] + queue
                sent = {"goodput_bit_per_s": rate, "rtt_ms": rtt_ms, "bytes_acked": int(carried[path])}
                self.record(t + 0.01, "subflow", {**tags, "end": "server"}, sent, numbered=False)
            whole = {"goodput_bit_per_s": total, "bytes": int(sum(carried.values())), "subflows": len(paths)}
            of = {"run": name, "kind": kind, "path": paths[0], "end": "probe"}
            self.record(t, "connection", of, {**whole, "fallback": False})
        moved = int(sum(carried.values()))
        goodput = moved * 8 / length
        result = {"bytes": moved, "duration_s": length, "goodput_bit_per_s": goodput, "fallback": False}
        tags = {"run": name, "kind": kind, "path": paths[0], "pair": pair, "pairing": pairing}
        self.record(start + length, "run", tags, {**result, "ok": True})
        files = []
        for path in paths:
            content = bytes(64) * (1 + moved // 400_000)
            file = f"captures/{name}-{path}.pcap"
            self.captures.append((file, content, name))
            files.append({"name": file, "bytes": len(content), "sha256": "0" * 64, "packets": moved // 1400})
        subflows = [
            {
                "subflow": str(i + 1),
                "path": p,
                "operator": self.paths[p],
                "bytes": int(carried[p]),
                "share": carried[p] / max(1.0, sum(carried.values())),
                "rtt_ms_median": None,
                "join_delay_ms": 48.0 if i else None,
            }
            for i, p in enumerate(paths)
        ]
        result |= {"connect_ms": 44.0, "first_byte_ms": 90.0, "subflows": subflows}
        of = {"pair": pair, "pairing": pairing, "kind": kind, "paths": paths, "trigger": "mobility_start"}
        made = run_manifest(name, "download", start, length, result, parameters={"seconds": length}, files=files, **of)
        self.manifests.append(made)

    def lines(self) -> list[str]:
        """The records in line protocol, for a real database."""
        return [encode_point(Point(name, dict(r.tags), dict(r.fields), r.utc_ns)) for name, _, r in self.source.points]

    def ledger(self) -> set[str]:
        """Ids of the runs that the server's ledger holds: all."""
        return {m["id"] for m in self.manifests}
