"""A made-up commute: what a bench would play, as truth lines. Seeded; nothing here is measured."""

import random
from typing import Any

START_UTC_NS = 1_750_000_000 * 10**9
START_MONOTONIC_NS = 5_000 * 10**9
PATHS = {"a": "A", "b": "B"}
PHASES = (
    ("home", "still", 0.0),
    ("street", "walk", 48.0),
    ("tram 4", "tram", 82.0),
    ("ring road", "drive", 112.0),
    ("office", "still", 152.0),
)
SPEED = {"still": 0.0, "walk": 1.5, "tram": 9.0, "drive": 22.0}


class Scenario:
    """``seconds`` long, over ``paths`` (name to operator); without ``events`` no handover, drop or outage happens."""

    def __init__(self, seed: int, seconds: float, paths: dict[str, str], events: bool) -> None:
        self.random = random.Random(seed)
        self.seconds, self.paths, self.with_events = seconds, paths, events
        self.truth: list[dict[str, Any]] = []
        self.down: dict[str, list[float]] = {}
        self.rtt: dict[str, list[float]] = {}
        self.cells: dict[str, list[int]] = {}
        self.rsrp: dict[str, list[float]] = {}
        self._scenario()

    def phase(self, t: float) -> tuple[str, str, float]:
        return [p for p in PHASES if p[2] <= t][-1]

    def _true(self, t: float, kind: str, **keys: Any) -> None:
        at = round(t * 1e9)
        clocks = {"t_s": round(t, 3), "monotonic_ns": START_MONOTONIC_NS + at, "utc_ns": START_UTC_NS + at}
        self.truth.append({**clocks, "type": kind, **keys})

    def _scenario(self) -> None:
        for i, (name, activity, start) in enumerate(PHASES):
            until = PHASES[i + 1][2] if i + 1 < len(PHASES) else self.seconds
            if start < self.seconds:
                self._true(start, "phase", name=name, activity=activity, until_s=min(until, self.seconds))
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
                changed = {"from_eci": before, "to_eci": eci, "interruption_ms": round(interruption, 1)}
                self._true(t, "handover", operator=operator, **changed)
                outage_until = t + max(0.3, interruption / 1000)
            if len(rsrps) >= 10 and rsrps[-10] - rsrp >= 6 and t - last_drop > 2 and self.with_events:
                self._true(t, "signal_drop", operator=operator, change_db=round(rsrp - rsrps[-10], 2))
                last_drop = t
            capacity = max(1.5e6, 3.4e6 * (sinr + 4) * (0.9 - 0.1 * k))
            out = t < outage_until
            self._true(t, "radio", operator=operator, rsrp_dbm=round(rsrp, 2), eci=eci, rat="LTE", speed_m_s=speed)
            offered = {"down_bit_per_s": round(capacity), "up_bit_per_s": 2e7, "rtt_ms": 38 + 14 * k, "outage": out}
            self._true(t, "link", operator=operator, **offered)
            down.append(0.0 if out else capacity)
            rtts.append(38 + 14 * k + (700 if out else 0))
            cells.append(eci)
            rsrps.append(rsrp)
        self.down[path], self.rtt[path], self.cells[path], self.rsrp[path] = down, rtts, cells, rsrps
