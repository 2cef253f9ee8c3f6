"""A collector killed in mid-capture (``kill -9``): the next start keeps every whole packet and says so."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from support.running_kit import KitOnRig, awaited

pytestmark = [pytest.mark.lab, pytest.mark.slow]

WRITTEN = 20_000
"""Bytes that a capture must hold before the collector is killed: packets of the measured path, not only the file's header."""


def packets(file: Path) -> int:
    """As tcpdump reads it: it fails on a capture that is cut in a packet."""
    done = subprocess.run(["tcpdump", "-n", "-r", "-"], input=file.read_bytes(), capture_output=True, check=True)
    return len(done.stdout.splitlines())


def test_a_capture_that_kill_9_left_is_kept_to_its_last_whole_packet(kit: KitOnRig) -> None:
    folder = kit.probe / "captures"
    closed = set(folder.glob("*.pcap"))
    running = kit.experiment("--kind", "mptcp", "--path", "a", "--seconds", "3000")
    try:
        left = awaited(
            "every path's capture grows",
            lambda: (
                len(found := sorted(folder.glob("*.pcap.tmp"))) == 3
                and all(f.stat().st_size > WRITTEN for f in found)
                and found
            ),
        )
        kit.collector_cut()
    finally:
        running.communicate(timeout=120)  # it was handed over to the collector, and ends with it
    assert list(folder.glob("*.pcap.tmp")) == []
    salvaged = {file: packets(file) for file in sorted(set(folder.glob("*.pcap")) - closed)}
    assert [file.name for file in salvaged] == [file.name.removesuffix(".tmp") for file in left]
    assert all(count > 20 for count in salvaged.values())
    told = awaited(
        "their events are in the database",
        lambda: (
            len(
                found := kit.query(
                    'SELECT "detail" FROM "event" WHERE "kind" = $kind GROUP BY "path"', kind="capture_salvaged"
                )
            )
            == 3
            and found
        ),
    )
    details = {series["tags"]["path"]: series["rows"][-1][1] for series in told}
    for file, count in salvaged.items():
        path = file.stem.rpartition("-")[2]
        assert f"{file.name} was never closed: {count} whole packets" in details[path]
