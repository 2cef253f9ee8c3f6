"""An exported campaign folder with positions, captures and one home, made without a database."""

from __future__ import annotations

import json
import struct
from hashlib import sha256
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from support.captures import sum16
from support.synthetic_campaign import PROBE, Synthetic
from support.synthetic_scenario import START_UTC_NS
from tandem_server.analysis.record_files import TIME, day_file, schema_of

HOME = (48.20731, 11.60417)
"""Where the probe is from second 60 to 100 of 180: it drives north to south along the meridian, 40 m a second before and after."""
RADIUS_M = 300.0
ARGUMENT = f"{HOME[0]},{HOME[1]},{RADIUS_M:.0f}"
KIT = "kit-anna"
SERVER = "measure.example.org"
PUBLIC, HERS = "198.18.7.9", "9.9.9.9"  # only the second is anybody's


def north_m(second: float) -> float:
    """Metres north of the home."""
    return 40 * (60 - second) if second < 60 else 0.0 if second <= 100 else -40 * (second - 100)


def export(folder: Path, *, positions: bool = True, probe: str = KIT, made: Synthetic | None = None) -> Path:
    """Write it; ``made``: whose records and runs, else those of the made-up commute, three minutes."""
    made = made or Synthetic()
    if positions:
        for second in range(180):
            place = {
                "latitude_deg": HOME[0] + north_m(second) / 111_195,
                "longitude_deg": HOME[1],
                "horizontal_error_m": 5.0,
            }
            made.record(second, "position", {"mode": "full"}, {**place, "fix": "3d"})
    own = folder / "probe" / probe
    (own / "runs").mkdir(parents=True)
    for manifest in made.manifests:
        files = [_capture(own, file) for file in manifest["files"]]
        more = {
            "parameters": {**manifest.get("parameters", {}), "server": {"control": f"https://{SERVER}:8444"}},
            "environment": {"further": {"public_addresses": {"a": HERS}, "why": f"{KIT} asked {SERVER} over {HERS}"}},
            "modems": {"a": {"at_start": {"eci": 6339329, "pci": 285}}},
        }
        told = {**manifest, "probe": probe, "files": files, **more}
        (own / "runs" / f"{manifest['id']}.json").write_text(json.dumps(told, indent=1))
    records: dict[str, list[dict[str, Any]]] = {}
    for name, _, row in made.source.points:
        records.setdefault(name, []).append({TIME: row.utc_ns, **row.tags, **row.fields, "probe": probe})
    for name, rows in records.items():
        write_records(own, name, rows)
    end = START_UTC_NS + 186 * 10**9
    campaign = {
        "format": "tandem-campaign/1",
        "scenario": "commute",
        "duration_s": 186.0,
        "started_utc_ns": START_UTC_NS,
        "ended_utc_ns": end,
        "stopped": None,
        "probe": probe,
        "export": {"name": "commute", "probes": [probe], "from_utc_ns": None, "to_utc_ns": None},
        "probes": {probe: {"paths": {p: {"operator": o} for p, o in made.paths.items()}}},
        "store": {"url": f"https://{SERVER}:8086"},
        "traces": True,
    }
    totals = {"runs": len(made.manifests), "by_state": {"complete": len(made.manifests)}}
    ledger = {
        "format": "tandem-ledger/1",
        "probes": [{"name": probe}],
        "spools": [],
        "runs": [],
        "by_probe": {probe: totals},
        "damaged": [],
    }
    (folder / "campaign.json").write_text(json.dumps(campaign))
    (folder / "ledger.json").write_text(json.dumps(ledger))
    return folder


def write_records(own: Path, name: str, rows: list[dict[str, Any]]) -> None:
    """A file for each UTC day."""
    days: dict[Path, list[dict[str, Any]]] = {}
    for row in rows:
        days.setdefault(day_file(own / "records", name, row[TIME]), []).append(row)
    for path, found in days.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(found, schema=schema_of(name)), path)


def _capture(own: Path, file: dict[str, Any]) -> dict[str, Any]:
    content = pcap([tcp4("10.64.0.2", HERS, b"GET /secret")])
    path = own / file["name"]
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    return {**file, "bytes": len(content), "sha256": sha256(content).hexdigest()}


def pcap(packets: list[bytes], link: int = 101, order: str = "<") -> bytes:
    """A capture of whole packets, one a second."""
    head = struct.pack(f"{order}IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262_144, link)
    return head + b"".join(struct.pack(f"{order}IIII", n, 0, len(p), len(p)) + p for n, p in enumerate(packets))


def checksum(content: bytes) -> int:
    return 0xFFFF ^ sum16(content)


def tcp(source: bytes, to: bytes, payload: bytes, options: bytes = b"") -> bytes:
    size = 20 + len(options)
    made = bytearray(struct.pack(">HHIIBBHHH", 40000, 8480, 1, 2, size // 4 << 4, 0x18, 1000, 0, 0) + options + payload)
    made[16:18] = checksum(source + to + struct.pack(">IHH", len(made), 0, 6)[0:8] + bytes(made)).to_bytes(2, "big")
    return bytes(made)


def tcp4(source: str, to: str, payload: bytes, options: bytes = b"") -> bytes:
    a, b = ip_address(source).packed, ip_address(to).packed
    segment = tcp(a, b, payload, options)
    head = bytearray(struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(segment), 7, 0x4000, 64, 6, 0) + a + b)
    head[10:12] = checksum(bytes(head)).to_bytes(2, "big")
    return bytes(head) + segment


def tcp6(source: str, to: str, payload: bytes, options: bytes = b"") -> bytes:
    a, b = ip_address(source).packed, ip_address(to).packed
    segment = tcp(a, b, payload, options)
    return struct.pack(">IHBB", 6 << 28, len(segment), 6, 64) + a + b + segment


__all__ = [
    "ARGUMENT",
    "HERS",
    "HOME",
    "KIT",
    "PROBE",
    "RADIUS_M",
    "SERVER",
    "START_UTC_NS",
    "export",
    "north_m",
    "pcap",
    "tcp4",
    "tcp6",
]
