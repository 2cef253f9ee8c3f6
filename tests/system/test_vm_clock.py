"""A probe without a battery for its clock, in a virtual machine that boots in 2021: the real kernel, chronyd and collector, the real
gateway and database outside. Its clock is set, jumps a year ahead in mid-recording, and is set back (``vm/scene_clock.py``); in the
database all is at its true time, which the outside knows from markers."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from vm import machine

from support.ntp_server import ntp_server
from support.serve_on_loopback import whole_server
from tandem.schema.metrics import MEASUREMENTS

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(2500), machine.NEEDED]
SCENE = (machine.REPOSITORY / "tests" / "system" / "vm" / "scene_clock.py").read_text()
ROW = {
    "rat": "LTE", "registered": True, "rsrp_dbm": -92.0, "rsrq_db": -9.0, "sinr_db": 14.0, "rssi_dbm": -63.0,
    "plmn": "00101", "tac": 0x1A2B, "eci": 0x05201002, "pci": 54, "earfcn": 1300, "band": 3,
}  # fmt: skip
BOOTED = "2021-03-04T05:06:07"
YEAR_MS = 365 * 86_400_000
UNSTATED_MS = 100.0
"""A record that states no error is within this (tandem.export.exporter.TELL_ERROR_MS)."""
MARKERS_MS = 50.0
"""What the fastest marker may have taken through the emulated network, and the emulated quartz have drifted."""


@dataclass
class Markers:
    """What came: the machine's CLOCK_MONOTONIC and our UTC, ns."""

    heard: list[tuple[int, int]] = field(default_factory=list)

    def offset_ns(self) -> int:
        """UTC less the machine's CLOCK_MONOTONIC, by the marker that was fastest."""
        return min(utc_ns - monotonic_ns for monotonic_ns, utc_ns in self.heard)

    def spread_ms(self) -> float:
        """How the fastest of the first and the last quarter differ."""
        quarter = max(1, len(self.heard) // 4)
        ends = [min(u - m for m, u in part) for part in (self.heard[:quarter], self.heard[-quarter:])]
        return abs(ends[0] - ends[1]) / 1e6


@contextlib.contextmanager
def markers() -> Iterator[tuple[int, Markers]]:
    told = Markers()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as hearing:
        hearing.bind(("127.0.0.1", 0))

        def hear() -> None:
            while (marker := hearing.recv(100)) != b"end":
                told.heard.append((int(marker), time.time_ns()))

        thread = threading.Thread(target=hear, daemon=True)
        thread.start()
        port = hearing.getsockname()[1]
        try:
            yield port, told
        finally:
            hearing.sendto(b"end", ("127.0.0.1", port))
            thread.join()


@dataclass
class Story:
    seen: dict[str, Any]
    markers: Markers
    points: list[dict[str, Any]]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    header = {"format": "tandem-timeline/1", "operator": "A", "tick_s": 1.0, "duration_s": 600.0}
    timeline = [header, *({"t_s": float(second), **ROW} for second in range(600))]
    with (
        whole_server(tmp_path_factory.mktemp("clock")) as server,
        ntp_server() as ntp,
        markers() as (port, told),
    ):
        files: dict[str, str | bytes] = {
            "scene.py": SCENE,
            "timeline": "".join(json.dumps(row) + "\n" for row in timeline),
            "ca.pem": (server.folder / "tls" / "ca.pem").read_bytes(),
            "token": (server.folder / "token").read_bytes(),
        }
        ports = [str(p) for p in (server.gateway_port, server.control_port, server.measurement_port, ntp, port)]
        qemu = ["-rtc", f"base={BOOTED}", "-netdev", "user,id=n0", "-device", "virtio-net-pci,netdev=n0"]
        seen = machine.played(["python3", "{folder}/scene.py", *ports], files, timeout_s=2400, qemu=qemu)
        with server.store() as store:
            points = [
                {"measurement": name, **dict(zip(series.columns, row, strict=True))}
                for name in MEASUREMENTS
                for series in store.query(f'SELECT * FROM "{name}"')  # noqa: S608 names of our own
                for row in series.rows
            ]
        yield Story(seen, told, points)


def test_nothing_was_sent_before_somebody_vouched_for_the_clock(story: Story) -> None:
    held = story.seen["held"]
    assert time.gmtime(story.seen["booted_utc_s"])[:2] == (2021, 3)
    assert held["spool"]["sent"] == 0
    assert held["spool"]["rejected"] == 0
    assert (held["clock"]["synchronised"], held["utc_ns"]) == (False, None)
    assert "not synchronised" in held["trouble"]


def test_every_record_is_in_the_database_once_at_its_true_time(story: Story) -> None:
    account = story.seen["account"]["records"]
    assert story.seen["exit"] == 0
    assert (account["pending"], account["rejected"], account["dropped"]) == (0, 0, 0)
    assert sorted(point["seq"] for point in story.points) == list(range(1, account["made"] + 1))
    true_ns = story.markers.offset_ns()
    slack_ms = MARKERS_MS + story.markers.spread_ms()
    off_ms = {p["seq"]: (p["time"] - p["monotonic_ns"] - true_ns) / 1e6 for p in story.points}
    stated_ms = {p["seq"]: p.get("utc_error_ms") or UNSTATED_MS for p in story.points}
    worst = max(off_ms, key=lambda seq: abs(off_ms[seq]))
    print(
        f"{len(off_ms)} records, {len(story.markers.heard)} markers (spread {story.markers.spread_ms():.1f} ms); the worst is off by "
        f"{off_ms[worst]:.1f} ms and states {stated_ms[worst]:.0f} ms"
    )
    assert all(abs(off) <= stated_ms[seq] + slack_ms for seq, off in off_ms.items())
    before = [p for p in story.points if p["monotonic_ns"] < story.seen["jumped_monotonic_ns"]]
    assert len(before) > 15
    assert len(story.points) - len(before) > 5


def test_the_clocks_steps_are_told(story: Story) -> None:
    steps = [p for p in story.points if p["measurement"] == "event" and p["kind"] == "clock_step"]
    seconds = [float(p["detail"].removesuffix(" s")) for p in sorted(steps, key=lambda p: p["seq"])]
    print(f"steps {seconds}")
    assert any(s > 100_000_000 for s in seconds), "from 2021"
    assert any(s == pytest.approx(YEAR_MS / 1000, abs=5) for s in seconds), "a year ahead"
    assert any(s == pytest.approx(-YEAR_MS / 1000, abs=5) for s in seconds), "and back"
    assert story.seen["back"]["clock"]["steps"], "and in the status"


def test_the_collector_reads_chronyd_as_chronyc_does(story: Story) -> None:
    fields = story.seen["chronyc"].split(",")
    told = [p for p in story.points if p["measurement"] == "clock" and p["source"] == "chrony"]
    assert (told[-1]["reference"], str(told[-1]["stratum"])) == (fields[0], fields[2])
    # A source that is further away chronyd does not take (its maxdistance).
    assert all(0 <= p["root_distance_ms"] < 3000 for p in told)
    assert 0 <= told[-1]["error_ms"] < 3000
