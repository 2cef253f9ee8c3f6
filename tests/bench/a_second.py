"""Forty records, as a probe makes them in one second of a run over Multipath TCP with two modems: what loads and benchmarks use.

Two polls, three subflow samples and one connection sample ten times a second less a few, now and then a position, health, usage, an
event: the shapes are those of the table, the numbers move as measured ones do (three decimals, counters that grow), since what they
compress to depends on it. By a seed.
"""

from __future__ import annotations

import random
import time

from tandem.export.clock import Stamp
from tandem.schema.record import Record, Value

PER_SECOND = 40
S_NS = 10**9


class Timed:
    """The exporter's clock where every record's time is known and nobody doubts it. ``begin_ns``: UTC at which CLOCK_MONOTONIC was 0;
    ``pace``: how many seconds of UTC one of CLOCK_MONOTONIC stands for."""

    def __init__(self, begin_ns: int, pace: int = 1) -> None:
        self._begin_ns, self._pace = begin_ns, pace

    def stamp(self, _boot: str, monotonic_ns: int) -> Stamp:
        return Stamp(self._begin_ns + self._pace * monotonic_ns, None)

    def held(self) -> list[tuple[int, int | None]]:
        return []

    def now_ns(self) -> int | None:
        return time.time_ns()

    def map_key(self) -> object:
        return None

    def doubted(self, yes: bool) -> None:
        """Nothing to forget."""

    def keep(self) -> None:
        """Nothing to keep."""


def a_second(number: int, chance: random.Random) -> list[Record]:
    """The records of second ``number``."""
    records: list[Record] = []

    def add(name: str, tags: dict[str, str], fields: dict[str, Value | None], at_ns: int) -> None:
        records.append(Record.make(name, tags, fields, number * S_NS + at_ns))

    for path, operator in (("a", "Arctel"), ("b", "Borealis")):
        rsrp = round(chance.gauss(-95, 6), 1)
        radio: dict[str, Value | None] = {
            "state": "connected", "rsrp_dbm": max(-140.0, min(-44.0, rsrp)), "rsrq_db": round(chance.gauss(-11, 2), 1),
            "sinr_db": round(chance.gauss(8, 5), 1), "rssi_dbm": max(-110.0, min(-40.0, rsrp + 30)), "plmn": "26201",
            "tac": 4660, "eci": 0x1234500 + number // 60, "enb_id": (0x1234500 + number // 60) >> 8,
            "sector_id": (number // 60) & 255, "pci": number // 60 % 504, "earfcn": 1300, "band": 3, "bandwidth_mhz": 20.0,
            "poll_duration_ms": round(chance.uniform(20, 60), 3), "poll_late_ms": round(chance.expovariate(2), 3), "stale": False,
        }  # fmt: skip
        add("radio", {"path": path, "operator": operator, "driver": "quectel", "rat": "LTE"}, radio, 1_000_003)
    run = f"pair-{number // 30:08d}-mptcp"
    for tenth in range(9):
        at = tenth * 100_000_000 + chance.randrange(3_000_000)
        total = (number % 30 * 10 + tenth) * 400_000 + chance.randrange(90_000)
        for subflow, path, operator in ((1, "a", "Arctel"), (2, "b", "Borealis"), (3, "a", "Arctel")):
            tcp: dict[str, Value | None] = {
                "goodput_bit_per_s": round(chance.gauss(1.2e7, 3e6) % 5e7, 1), "bytes_received": total // subflow,
                "bytes_sent": 517, "bytes_acked": 518, "bytes_retrans": 0, "rtt_ms": round(chance.gauss(48, 9) % 400, 3),
                "rtt_min_ms": 31.204, "rcv_rtt_ms": round(chance.gauss(60, 20) % 400, 3), "cwnd_segments": 10, "notsent_bytes": 0,
                "delivery_rate_bit_per_s": round(chance.gauss(4e5, 1e5) % 1e7, 1), "retransmits_segments": 0,
                "rcv_ooo_packets": chance.randrange(4000), "backup": False,
            }  # fmt: skip
            tags = {"run": run, "path": path, "operator": operator, "end": "probe", "subflow": str(subflow)}
            add("subflow", tags, tcp, at)
        whole: dict[str, Value | None] = {
            "goodput_bit_per_s": round(chance.gauss(2.2e7, 4e6) % 9e7, 1), "bytes": total, "subflows": 3, "fallback": False,
        }  # fmt: skip
        add("connection", {"run": run, "kind": "mptcp", "path": "a", "end": "probe"}, whole, at)
    if number % 10 == 0:
        add("health", {}, {"cpu_seconds": round(number * 0.061, 2), "rss_bytes": 41_000_000 + chance.randrange(9) * 4096,
                           "spool_records": chance.randrange(90), "mobile": True}, 5_000_017)  # fmt: skip
        add(
            "event",
            {"kind": "handover", "path": "a", "operator": "Arctel"},
            {"from_eci": number, "to_eci": number + 1},
            7,
        )
    else:
        for path, operator in (("a", "Arctel"), ("b", "Borealis")):
            used: dict[str, Value | None] = {"received_bytes": number * 3_000_000, "sent_bytes": number * 90_000}
            add("usage", {"path": path, "operator": operator}, used, 5_000_017)
    return records
