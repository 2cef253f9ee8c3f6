"""What a probe's exporter sends while a run is on, made by the exporter's own encoder: templates whose times and numbers are filled in."""

import random
import zlib

from tandem.schema.line_protocol import encode
from tandem.schema.record import Record

MONOTONIC, SEQ, UTC = 777_000_111, 777_000_222, 777_000_333
"""Stand in a template where a record's own numbers go."""

LINES = 20
"""Of a second: two polls, a position, twelve readings of two subflows, five of the connection."""

COUNTS = {"radio": 2, "position": 1, "subflow": 12, "connection": 5}


def _radio(chance, path):
    fields = {
        "state": "connected", "rsrp_dbm": float(-chance.randint(80, 115)), "rsrq_db": float(-chance.randint(6, 16)),
        "sinr_db": round(chance.uniform(-3, 25), 1), "rssi_dbm": float(-chance.randint(50, 90)), "plmn": "26201",
        "tac": 12345, "eci": 27447297 + chance.randint(0, 3), "enb_id": 107216, "sector_id": chance.randint(1, 3),
        "pci": chance.randint(0, 503), "earfcn": 1300, "band": 3, "bandwidth_mhz": 20.0,
        "poll_duration_ms": chance.uniform(20, 60), "poll_late_ms": chance.uniform(0, 2), "stale": False,
    }  # fmt: skip
    tags = {"path": path, "operator": path.upper(), "driver": "quectel", "rat": "lte"}
    return Record.make("radio", tags, fields, MONOTONIC)


def _position(chance):
    fields = {
        "latitude_deg": chance.uniform(52.4, 52.6), "longitude_deg": chance.uniform(13.2, 13.6), "altitude_m": 34.5,
        "speed_m_per_s": chance.uniform(0, 20), "track_deg": chance.uniform(0, 360), "fix": "3d",
        "horizontal_error_m": chance.uniform(2, 9), "hdop": 0.9, "satellites_used": 9, "satellites_seen": 14,
        "fix_age_ms": chance.uniform(0, 1000),
    }  # fmt: skip
    return Record.make("position", {"mode": "full"}, fields, MONOTONIC)


def _subflow(chance, run, path, number):
    fields = {
        "goodput_bit_per_s": chance.uniform(1e6, 4e7), "bytes_received": chance.randint(10**5, 10**9), "bytes_sent": 412,
        "bytes_acked": 412, "bytes_retrans": 0, "rtt_ms": chance.randint(20000, 90000) / 1000, "rtt_min_ms": 18.204,
        "rcv_rtt_ms": chance.randint(20000, 90000) / 1000, "cwnd_segments": 10, "notsent_bytes": 0,
        "delivery_rate_bit_per_s": chance.uniform(1e5, 1e6), "retransmits_segments": 0,
        "rcv_ooo_packets": chance.randint(0, 5000), "backup": False,
    }  # fmt: skip
    tags = {"run": run, "path": path, "operator": path.upper(), "end": "probe", "subflow": str(number)}
    return Record.make("subflow", tags, fields, MONOTONIC)


def _connection(chance, run):
    fields = {"goodput_bit_per_s": chance.uniform(1e6, 6e7), "bytes": chance.randint(10**5, 10**9)}
    fields |= {"subflows": 2, "fallback": False}
    return Record.make("connection", {"run": run, "kind": "mptcp", "path": "a+b", "end": "probe"}, fields, MONOTONIC)


def template(chance: random.Random, probe: str, boot: str, run: str) -> str:
    """One second's batch of ``LINES`` lines for ``%`` with ``numbers``."""
    records = [_radio(chance, "a"), _radio(chance, "b"), _position(chance)]
    records += [_subflow(chance, run, path, number) for _ in range(6) for number, path in ((1, "a"), (2, "b"))]
    records += [_connection(chance, run) for _ in range(5)]
    text = "\n".join(encode(record, {"probe": probe, "boot": boot}, SEQ, UTC) for record in records)
    for number in (MONOTONIC, SEQ, UTC):
        text = text.replace(str(number), "%d")
    return text


def numbers(first_seq: int, monotonic_ns: int, utc_ns: int, period_ns: int = 50_000_000) -> tuple[int, ...]:
    """For a template: its records lie ``period_ns`` apart and the last of them is of now. Within a line: monotonic, seq, time."""
    out: list[int] = []
    for i in range(LINES):
        earlier = (LINES - 1 - i) * period_ns
        out += (monotonic_ns - earlier, first_seq + i, utc_ns - earlier)
    return tuple(out)


def gzipped(text: str, level: int = 6) -> bytes:
    """As the exporter does it."""
    packer = zlib.compressobj(level, zlib.DEFLATED, 31)
    return packer.compress(text.encode()) + packer.flush()
