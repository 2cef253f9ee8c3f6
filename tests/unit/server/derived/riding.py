"""A probe that rides: its records as a gateway stores them, made by a seed, or of a drive log through the collector's detectors."""

import random
from dataclasses import dataclass, field
from typing import Any

from tandem.mobility.detectors import Detectors
from tandem.mobility.settings import Settings
from tandem.schema.line_protocol import encode
from tandem.schema.record import Record

S = 10**9
HOUR = 3600 * S
START = 1_700_000_000 // 86_400 * 86_400 * S


@dataclass
class Riding:
    name: str = "probe-1"
    boot: str = "b1"
    lines: list[str] = field(default_factory=list)

    def say(self, utc_ns: int, measurement: str, tags: dict[str, Any], fields: dict[str, Any]) -> Record:
        record = Record.make(measurement, tags, fields, utc_ns)
        self.lines.append(encode(record, {"probe": self.name, "boot": self.boot}, len(self.lines) + 1, utc_ns))
        return record

    def pair(self, began: int, number: int, rates: dict[str, float], pairing: str = "sequential") -> None:
        """A Multipath TCP run over all paths and a TCP run on each, one after the other: 20 seconds each."""
        pair, at = f"pair-{self.name}-{number}", began
        runs = [("mptcp", min(rates)), *(("tcp", path) for path in rates)]
        for place, (kind, path) in enumerate(runs):
            run = f"run-{self.name}-{number}-{place}"
            own = {"run": run, "kind": kind, "path": path}
            of_run = {**own, "pair": pair, "pairing": pairing, "experiment": "download", "campaign": "commute"}
            self.say(at, "run_begun", of_run, {"number": place + 1, "of": len(runs)})
            goodput = sum(rates.values()) * 0.8 if kind == "mptcp" else rates[path]
            used = rates if kind == "mptcp" else {path: rates[path]}
            for tenth in range(200):
                t = at + tenth * S // 10
                self.say(t, "connection", {**own, "end": "probe"}, {"goodput_bit_per_s": goodput})
                for one in used:
                    tags = {"run": run, "path": one, "operator": f"op-{one}", "subflow": one, "end": "probe"}
                    self.say(t, "subflow", tags, {"bytes_received": round(rates[one] * tenth)})
            at += 20 * S
            figures = {"goodput_bit_per_s": goodput, "bytes": round(goodput * 2.5)}
            self.say(at, "run", of_run, {**figures, "duration_s": 20.0, "ok": True, "fallback": False})
            for one in rates:
                self.say(at, "run_usage", {"run": run, "path": one, "operator": f"op-{one}"}, {"received_bytes": 1})


def commute(name: str, seed: int, every_s: int, hours: int = 3) -> Riding:
    """Polls of two modems, fixes, handovers, mobility and pairs, from ``START`` on."""
    chance, riding = random.Random(seed), Riding(name)
    latitude, longitude, mobile, since = 50.0, 8.0, False, 0
    for t in range(0, hours * 3600, every_s):
        at = START + t * S + seed
        if t % 600 == 0:
            mobile, since = not mobile, t
            kind = "mobility_start" if mobile else "mobility_stop"
            fields = {"detector": "fused"} if mobile else {"detector": "fused", "speed_class": "high"}
            riding.say(at, "event", {"kind": kind}, fields)
        latitude += 0.0002 if mobile else 0.0
        for path in ("a", "b"):
            rsrp = -95 + 20 * chance.uniform(-1, 1)
            of_path = {"path": path, "operator": f"op-{path}"}
            riding.say(at, "radio", {**of_path, "rat": "LTE"}, {"state": "connected", "rsrp_dbm": rsrp})
            if mobile and chance.random() < 0.02:
                riding.say(at + 1, "event", {"kind": "handover", **of_path}, {"from_eci": 1, "to_eci": 2})
        place = {"latitude_deg": latitude, "longitude_deg": longitude, "horizontal_error_m": 5.0}
        riding.say(at, "position", {"mode": "full"}, {**place, "fix": "3d"})
        if t % 10 == 0:
            told = {"speed_class": "high"} if mobile and t - since >= 60 else {}
            riding.say(at, "health", {}, {"mobile": mobile, **told})
    for number in range(hours):
        # The third goes over the end of its hour.
        began = START + number * HOUR + (3580 if number == 2 else 900 + 60 * number) * S
        riding.pair(began, number, {"a": 10e6 + number * 1e6, "b": 5e6})
    return riding


def driven(seconds: list[dict[str, Any]], start: int, name: str = "probe-1") -> Riding:
    """A log's seconds (``t``, ``rsrp``, ``eci``, ``latitude``, ``longitude``) as one modem's polls and a receiver's fixes, with the events
    and health records that the collector's detectors make of them."""
    riding, detectors = Riding(name), Detectors(Settings(detector="fused"))
    first = seconds[0]["t"]
    for second in seconds:
        at, since_ns = start + second["t"] * S, (second["t"] - first) * S
        tags = {"path": "a", "operator": "B", "rat": "LTE"}
        fields = {"state": "connected", "rsrp_dbm": second["rsrp"], "eci": second["eci"]}
        riding.say(at, "radio", tags, fields)
        place = {"latitude_deg": second["latitude"], "longitude_deg": second["longitude"], "fix": "3d"}
        riding.say(at, "position", {"mode": "full"}, place)
        for event in detectors.feed(Record.make("radio", tags, fields, since_ns)):
            riding.say(start + first * S + event.monotonic_ns, "event", dict(event.tags), dict(event.fields))
        if second["t"] % 10 == 0:
            riding.say(at, "health", {}, {"mobile": detectors.mobile})
    return riding
