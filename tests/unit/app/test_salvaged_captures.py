"""Captures that a killed collector left: salvaged at the next start, in the budget, in the account and as an event."""

import hashlib
import struct
from pathlib import Path

from doubles import Rehearsal, account, points
from https_gateway import Gateway

from tandem.app.config import Config

HEAD = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 128, 1)
PACKET = struct.pack("<4I", 1_795_262_400, 2, 100, 1500) + bytes(100)


def test_the_next_start_salvages_counts_and_tells(tmp_path: Path, gateway: Gateway) -> None:
    folder = tmp_path / "captures"
    folder.mkdir()
    (folder / "pair-0123456789ab-b.pcap.tmp").write_bytes(HEAD + PACKET * 3 + bytes(1000))
    (folder / "run-0123456789ab-a.pcap.tmp").write_bytes(HEAD)
    counted: list[int] = []
    collector = Rehearsal(tmp_path, gateway)

    def captures(_config: Config, used_bytes: int) -> object:
        counted.append(used_bytes)
        return collector.captures

    collector = Rehearsal(tmp_path, gateway, parts={"captures": captures}).start()
    assert collector.stop()
    whole = HEAD + PACKET * 3
    assert [file.name for file in folder.iterdir()] == ["pair-0123456789ab-b.pcap"]
    assert (folder / "pair-0123456789ab-b.pcap").read_bytes() == whole
    assert counted == [len(whole)]
    of_whom = {"path": "b", "run": None, "pair": "pair-0123456789ab"}
    counts = {"bytes": len(whole), "packets": 3, "cut": True, "sha256": hashlib.sha256(whole).hexdigest()}
    assert account(tmp_path)["captures"] == [{"file": "captures/pair-0123456789ab-b.pcap", **of_whom, **counts}]
    told = {
        p.tags["path"]: p.fields["detail"]
        for p in points(gateway)
        if p.measurement == "event" and p.tags["kind"] == "capture_salvaged"
    }
    assert told == {
        "a": "captures/run-0123456789ab-a.pcap.tmp had no whole packet: 24 bytes lost, it is gone",
        "b": "captures/pair-0123456789ab-b.pcap was never closed: 3 whole packets (372 bytes) kept, 1000 bytes of its end lost",
    }
