"""A made-up campaign with the shapes of a real one: folder, truth and records. Run as a program it writes a report to look at.

Nothing here is measured. It stands in for a bench so that evaluation and report can be developed and tested alone.
"""

from __future__ import annotations

import json
import math
import random
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tandem.schema.record import Record
from tandem_server.analysis.source import Row

START_UTC_NS = 1_750_000_000 * 10**9
START_MONOTONIC_NS = 5_000 * 10**9
BOOT = "7f0c6f2e-8f7e-4c7e-9a59-0e6a3c9d2b11"
PROBE = "probe-1"
PATHS = {"a": "A", "b": "B"}
PHASES = (
    ("home", "still", 0.0),
    ("street", "walk", 48.0),
    ("tram 4", "tram", 82.0),
    ("ring road", "drive", 112.0),
    ("office", "still", 152.0),
)
SPEED = {"still": 0.0, "walk": 1.5, "tram": 9.0, "drive": 22.0}


@dataclass
class MemorySource:
    """The records in a list, as a store would hand them out. ``lost``: record numbers that it lacks."""

    points: list[tuple[str, int | None, Row]] = field(default_factory=list)
    lost: set[int] = field(default_factory=set)

    def rows(self, measurement: str, probe: str, start_utc_ns: int | None, end_utc_ns: int | None) -> list[Row]:
        low, high = start_utc_ns or 0, end_utc_ns or 2**63
        return [
            row
            for name, seq, row in self.points
            if name == measurement and row.tags["probe"] == probe and low <= row.utc_ns <= high and seq not in self.lost
        ]

    def numbers(self, measurement: str, probe: str, boot: str) -> list[int]:
        return [
            seq
            for name, seq, row in self.points
            if name == measurement
            and seq is not None
            and seq not in self.lost
            and row.tags["probe"] == probe
            and row.tags["boot"] == boot
        ]


class Synthetic:
    """One campaign. ``seconds`` its length; ``operators`` how many of the two; ``runs`` whether any download is made."""

    def __init__(
        self,
        seed: int = 1,
        seconds: float = 180.0,
        paths: dict[str, str] | None = None,
        runs: bool = True,
        events: bool = True,
    ) -> None:
        self.random = random.Random(seed)
        self.seconds, self.paths, self.with_runs, self.with_events = seconds, paths or dict(PATHS), runs, events
        self.source = MemorySource()
        self.truth: list[dict[str, Any]] = []
        self.manifests: list[dict[str, Any]] = []
        self.captures: list[tuple[str, bytes, str]] = []
        self.seq = 0
        self.by_measurement: dict[str, int] = {}
        self.down: dict[str, list[float]] = {}
        self.rtt: dict[str, list[float]] = {}
        self.cells: dict[str, list[int]] = {}
        self.rsrp: dict[str, list[float]] = {}
        self._scenario()
        self._probe()
        if runs:
            self._runs()

    def phase(self, t: float) -> tuple[str, str, float]:
        return [p for p in PHASES if p[2] <= t][-1]

    # the bench's side
    def _true(self, t: float, kind: str, **keys: Any) -> None:
        at = round(t * 1e9)
        self.truth.append(
            {
                "t_s": round(t, 3),
                "monotonic_ns": START_MONOTONIC_NS + at,
                "utc_ns": START_UTC_NS + at,
                "type": kind,
                **keys,
            }
        )

    def _scenario(self) -> None:
        for i, (name, activity, start) in enumerate(PHASES):
            until = PHASES[i + 1][2] if i + 1 < len(PHASES) else self.seconds
            if start < self.seconds:
                self._true(
                    start,
                    "phase",
                    name=name,
                    activity=activity,
                    speed_m_s=SPEED[activity],
                    until_s=min(until, self.seconds),
                )
        for t, moving in ((0.0, False), (48.0, True), (152.0, False)):
            if t < self.seconds:
                self._true(t, "mobility", moving=moving, speed_m_s=0.0)
        for k, (path, operator) in enumerate(self.paths.items()):
            self._radio_of(path, operator, k)
        self.truth.sort(key=lambda e: e["t_s"])

    def _radio_of(self, path: str, operator: str, k: int) -> None:
        way, cell, shadow, outage_until, last_drop = 170.0, 0, 0.0, -1.0, -10.0
        first = 0x12A00 + 0x1000 * k
        down, rtts, cells, rsrps = [], [], [], []
        for tick in range(int(self.seconds * 10)):
            t = tick / 10
            speed = SPEED[self.phase(t)[1]]
            way += speed / 10
            shadow = 0.97 * shadow + self.random.gauss(0, 0.15 + 0.9 * min(speed, 10) / 10)
            middle = 150 + 300 * cell + 70 * k
            rsrp = -80 - 5 * k - 22 * abs(way - middle) / 160 + shadow
            sinr = max(-5.0, min(28.0, (rsrp + 110) * 0.8 + self.random.gauss(0, 0.6)))
            eci = ((first + cell // 3) << 8) + 1 + cell % 3
            if way - middle > 155 + 10 * k and self.with_events:
                interruption = 40 + self.random.expovariate(1 / 60)
                before, cell = eci, cell + 1
                eci = ((first + cell // 3) << 8) + 1 + cell % 3
                kind = "enb" if cell % 3 == 0 else "sector"
                self._true(
                    t,
                    "handover",
                    operator=operator,
                    from_eci=before,
                    to_eci=eci,
                    handover_kind=kind,
                    interruption_ms=round(interruption, 1),
                    queue="kept",
                )
                outage_until = t + max(0.3, interruption / 1000)
            if len(rsrps) >= 10 and rsrps[-10] - rsrp >= 6 and t - last_drop > 2 and self.with_events:
                self._true(
                    t,
                    "signal_drop",
                    operator=operator,
                    change_db=round(rsrp - rsrps[-10], 2),
                    from_dbm=rsrps[-10],
                    to_dbm=rsrp,
                )
                last_drop = t
            capacity = max(1.5e6, 3.4e6 * (sinr + 4) * (0.9 - 0.1 * k))
            out = t < outage_until
            self._true(
                t,
                "radio",
                operator=operator,
                rsrp_dbm=round(rsrp, 2),
                rsrq_db=-9.5,
                sinr_db=round(sinr, 2),
                rssi_dbm=round(rsrp + 28, 2),
                plmn=f"9990{k + 1}",
                tac=7001,
                eci=eci,
                pci=30 + cell,
                earfcn=1300 + 100 * k,
                rat="LTE",
                speed_m_s=speed,
            )
            self._true(
                t,
                "link",
                operator=operator,
                down_bit_per_s=round(capacity),
                up_bit_per_s=2e7,
                rtt_ms=38 + 14 * k,
                buffer_down_bytes=750000,
                buffer_up_bytes=200000,
                loss=0.0,
                outage=out,
            )
            down.append(0.0 if out else capacity)
            rtts.append(38 + 14 * k + (700 if out else 0))
            cells.append(eci)
            rsrps.append(rsrp)
        self.down[path], self.rtt[path], self.cells[path], self.rsrp[path] = down, rtts, cells, rsrps

    # the probe's and the server's side
    def record(
        self, t: float, measurement: str, tags: dict[str, str | None], fields: dict[str, Any], numbered: bool = True
    ) -> None:
        at = round(t * 1e9)
        record = Record.make(measurement, tags, fields, START_MONOTONIC_NS + at, START_UTC_NS + at)
        seq = None
        if numbered:
            self.seq += 1
            seq = self.seq
            self.by_measurement[measurement] = self.by_measurement.get(measurement, 0) + 1
        common = {"probe": PROBE, "boot": BOOT}
        values = {**record.fields, "monotonic_ns": record.monotonic_ns, **({} if seq is None else {"seq": seq})}
        self.source.points.append((measurement, seq, Row(START_UTC_NS + at, {**record.tags, **common}, values)))

    def _probe(self) -> None:
        last_rsrp: dict[str, float] = {}
        last_cell: dict[str, int] = {}
        mobile, changed = False, -100.0
        for second in range(int(self.seconds)):
            for k, (path, operator) in enumerate(self.paths.items()):
                t = second + 0.2 + 0.31 * k
                tick = min(int(t * 10), len(self.rsrp[path]) - 1)
                rsrp, eci = float(round(self.rsrp[path][tick])), self.cells[path][tick]
                sinr = float(round((rsrp + 110) * 0.8))
                answered = not (self.with_events and path == "b" and 90 <= second < 93)
                quantities: dict[str, Any] = {
                    "rsrp_dbm": rsrp,
                    "sinr_db": max(-20.0, min(40.0, sinr)),
                    "rsrq_db": -9.5,
                    "rssi_dbm": min(-11.0, rsrp + 28),
                    "eci": eci,
                    "enb_id": eci >> 8,
                    "sector_id": eci & 255,
                    "pci": 30 + (eci & 255),
                }
                self.record(
                    t,
                    "radio",
                    {"path": path, "operator": operator, "driver": ("quectel", "huawei")[k], "rat": "LTE"},
                    {
                        "state": "connected" if answered else "no_answer",
                        **(quantities if answered else {}),
                        "poll_duration_ms": 14.0,
                        "poll_late_ms": 0.4 + (120.0 if second == 97 else 0.0),
                    },
                )
                if not answered:
                    continue
                change = rsrp - last_rsrp.get(path, rsrp)
                where = {"path": path, "operator": operator}
                if abs(change) >= 6 and self.with_events:
                    changed = t
                    if not mobile:
                        mobile = True
                        self.record(
                            t,
                            "event",
                            {"kind": "mobility_start", **where},
                            {"quantity": "rsrp_dbm", "change_db": change},
                        )
                    if change < 0:
                        self.record(
                            t, "event", {"kind": "signal_drop", **where}, {"quantity": "rsrp_dbm", "change_db": change}
                        )
                if last_cell.get(path, eci) != eci:
                    kind = "enb" if last_cell[path] >> 8 != eci >> 8 else "sector"
                    self.record(
                        t,
                        "event",
                        {"kind": "handover", **where},
                        {"from_eci": last_cell[path], "to_eci": eci, "handover_kind": kind},
                    )
                last_rsrp[path], last_cell[path] = rsrp, eci
            if mobile and second - changed >= 10:
                mobile = False
                self.record(second + 0.9, "event", {"kind": "mobility_stop"}, {"quantity": "rsrp_dbm"})

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
                self.record(
                    t,
                    "subflow",
                    {**tags, "end": "probe"},
                    {"goodput_bit_per_s": rate, "bytes_received": int(carried[path]), "rcv_rtt_ms": 60.0},
                )
                now = self.rtt[path][min(int(t * 10), len(self.rtt[path]) - 1)]
                self.record(
                    t + 0.01,
                    "subflow",
                    {**tags, "end": "server"},
                    {"goodput_bit_per_s": rate, "rtt_ms": now + queue, "bytes_acked": int(carried[path])},
                    numbered=False,
                )
            self.record(
                t,
                "connection",
                {"run": name, "kind": kind, "path": paths[0], "end": "probe"},
                {
                    "goodput_bit_per_s": total,
                    "bytes": int(sum(carried.values())),
                    "subflows": len(paths),
                    "fallback": False,
                },
            )
        moved = int(sum(carried.values()))
        goodput = moved * 8 / length
        tags = {"run": name, "kind": kind, "path": paths[0], "pair": pair, "pairing": pairing}
        self.record(
            start + length,
            "run",
            tags,
            {"bytes": moved, "duration_s": length, "goodput_bit_per_s": goodput, "ok": True, "fallback": False},
        )
        files = []
        for path in paths:
            content = bytes(64) * (1 + moved // 400_000)
            file = f"captures/{name}-{path}.pcap"
            self.captures.append((file, content, name))
            files.append({"name": file, "bytes": len(content), "sha256": "0" * 64, "packets": moved // 1400})
        first, last = round(start * 1e9), round((start + length) * 1e9)
        self.manifests.append(
            {
                "format": "tandem-run/1", "id": name, "pair": pair, "pairing": pairing, "kind": kind, "paths": paths, "probe": PROBE, "boot": BOOT,
                "trigger": "mobility_start", "experiment": {"name": "download", "version": 1}, "parameters": {"seconds": length}, "seed": 1,
                "started_utc_ns": START_UTC_NS + first, "ended_utc_ns": START_UTC_NS + last,
                "started_monotonic_ns": START_MONOTONIC_NS + first, "ended_monotonic_ns": START_MONOTONIC_NS + last,
                "environment": {}, "modems": {}, "clock": {}, "records": {}, "failure": None, "files": files,
                "result": {
                    "bytes": moved, "duration_s": length, "goodput_bit_per_s": goodput, "connect_ms": 44.0, "first_byte_ms": 90.0, "fallback": False,
                    "subflows": [{"subflow": str(i + 1), "path": p, "operator": self.paths[p], "bytes": int(carried[p]), "share": carried[p] / max(1.0, sum(carried.values())), "rtt_ms_median": None, "join_delay_ms": 48.0 if i else None} for i, p in enumerate(paths)],
                },
            }
        )  # fmt: skip

    # the folder
    def write(self, folder: Path) -> Path:
        """Write the campaign's folder as a demo leaves it; returns ``folder``."""
        own = folder / "probe" / PROBE
        (own / "runs").mkdir(parents=True)
        (own / "captures").mkdir()
        for name, content, _ in self.captures:
            (own / name).write_bytes(content)
        for manifest in self.manifests:
            (own / "runs" / f"{manifest['id']}.json").write_text(json.dumps(manifest))
        (folder / "truth.jsonl").write_text("".join(json.dumps(line) + "\n" for line in self.truth))
        (folder / "campaign.json").write_text(json.dumps(self.campaign()))
        (own / "collector.json").write_text(json.dumps(self.collector()))
        return folder

    def campaign(self) -> dict[str, Any]:
        return {
            "format": "tandem-campaign/1", "scenario": "commute", "seed": 1, "duration_s": self.seconds,
            "started_utc_ns": START_UTC_NS, "started_monotonic_ns": START_MONOTONIC_NS, "ended_utc_ns": START_UTC_NS + round((self.seconds + 6) * 1e9), "stopped": None,
            "probe": PROBE, "paths": {p: {"operator": o, "interface": f"wwan{i}"} for i, (p, o) in enumerate(self.paths.items())},
            "processes": [{"name": n, "cpu_seconds": c, "max_rss_bytes": r, "exit": 0} for n, c, r in (("collector", 9.4, 61_000_000), ("endpoint", 14.2, 70_000_000), ("gateway", 3.1, 66_000_000), ("database", 4.8, 118_000_000), ("link-a", 21.5, 9_000_000), ("link-b", 20.2, 9_000_000), ("modem-a", 0.8, 22_000_000), ("modem-b", 0.9, 22_000_000))],
            "versions": {"tandem": "0.1.0", "kernel": "6.1.0-25-amd64", "python": "3.11.2", "influxdb": "1.6.7", "tcpdump": "4.99.3"},
            "store": {"url": "http://127.0.0.1:8086", "database": "tandem"},
        }  # fmt: skip

    def collector(self) -> dict[str, Any]:
        return {
            "format": "tandem-collector/1", "probe": PROBE, "boot": BOOT, "started_utc_ns": START_UTC_NS, "ended_utc_ns": START_UTC_NS + round((self.seconds + 5) * 1e9),
            "records": {"made": self.seq, "sent": self.seq, "pending": 0, "rejected": 0, "dropped": 0, "by_measurement": self.by_measurement},
            "polls": {p: {"made": int(self.seconds), "late": int(self.seconds > 97), "late_ms_p50": 0.4, "late_ms_p99": 9.8, "late_ms_max": 120.4, "failed": 3} for p in self.paths},
            "captures": [{"file": f, "bytes": len(c), "packets": len(c) // 64, "run": r, "path": f[-6], "cut": False} for f, c, r in self.captures],
            "usage": {p: {"received_bytes": 120_000_000, "sent_bytes": 4_100_000, "control_bytes": 380_000} for p in self.paths},
            "resources": {"cpu_seconds": 9.4, "max_rss_bytes": 61_000_000, "wall_seconds": self.seconds + 4}, "versions": {"tandem": "0.1.0"},
            "environment": {"net.ipv4.tcp_rmem": "4096 131072 33554432", "net.mptcp.scheduler": "default", "congestion_control": "cubic"},
        }  # fmt: skip

    def ledger(self) -> set[str]:
        """Ids of the runs that the server's ledger holds: all."""
        return {m["id"] for m in self.manifests}


def main() -> None:
    from tandem_server.analysis.evaluate import evaluate
    from tandem_server.analysis.folder import load
    from tandem_server.report.page import render

    folder = Path(sys.argv[1])
    made = Synthetic()
    made.write(folder)
    (folder / "report.html").write_text(render(evaluate(load(folder), made.source, made.ledger())), encoding="utf-8")
    print(folder / "report.html")


if __name__ == "__main__":
    main()
