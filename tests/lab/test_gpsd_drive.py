"""The real gpsd reads a replayed drive from a port: the collector's fixes join to radio records by time, and it vouches for the time."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import nmea
import pytest
from nmea import NmeaPort

from tandem.app.clock_watch import ClockWatch
from tandem.export.clock import Clock
from tandem.position.receiver import Gpsd, GpsdMissingError, Observer, Receiver, State, program
from tandem.position.zones import Point, Privacy, Zones, distance_m
from tandem.schema.record import Record
from tandem_server.derived.coverage import nearest

SECONDS = 8
S = 10**9
WRONG_NS = 40 * 365 * 86_400 * S


@pytest.fixture(autouse=True)
def _needs_gpsd() -> None:
    try:
        program()
    except GpsdMissingError as error:
        pytest.skip(str(error))


class Kept:
    """A receiver with a gpsd of its own, and what it gave."""

    def __init__(self, device: str) -> None:
        self.records: list[Record] = []
        self.state = State("no_gpsd")
        self.gpsd = Gpsd(lambda: device)
        self._offset = time.time_ns() - time.monotonic_ns()
        observer = Observer(Privacy("full", 0.01, Zones([], b"", Random(1))), self.utc_ns, 5.0)
        self.receiver = Receiver(self.gpsd, observer, self.records.extend, self._is)
        self.receiver.start()

    def utc_ns(self, monotonic_ns: int) -> int:
        return monotonic_ns + self._offset

    def _is(self, state: State) -> None:
        self.state = state

    def fixes(self) -> list[Record]:
        return [r for r in list(self.records) if r.measurement == "position" and r.fields["fix"] != "none"]


def until(what: Callable[[], bool], timeout_s: float = 120.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_replayed_drive_gives_fixes_that_join_to_radio_records() -> None:
    port = NmeaPort(nmea.street(120))
    kept = Kept(port.device)
    radio: list[Record] = []
    try:
        # gpsd probes a new device for some seconds, between its first reports too.
        until(lambda: len(kept.fixes()) >= 3)
        events = [r.tags["kind"] for r in kept.records if r.measurement == "event"]
        kept.records.clear()
        draw = Random(1)
        while len(kept.fixes()) < SECONDS:  # what a poller does meanwhile
            radio.append(
                Record.make(
                    "radio", {"path": "a", "rat": "LTE"}, {"state": "idle", "rsrp_dbm": -95.0}, time.monotonic_ns()
                )
            )
            time.sleep(draw.uniform(0.3, 1.0))
        assert kept.state.state == "fix"
        assert kept.state.satellites_used == nmea.USED
    finally:
        kept.receiver.stop()
        port.close()
    fixes = kept.fixes()
    seconds = [round(kept.utc_ns(f.monotonic_ns) / S) for f in fixes]
    # One for each second that the receiver told of, none missing, none twice.
    assert seconds == [at for at in port.true if seconds[0] <= at <= seconds[-1]]
    for fix, at in zip(fixes, seconds, strict=True):
        true = port.true[at]
        assert fix.fields["latitude_deg"] == pytest.approx(true.latitude_deg, abs=2e-7)
        assert fix.fields["longitude_deg"] == pytest.approx(true.longitude_deg, abs=2e-7)
        age_ms = fix.fields["fix_age_ms"]
        assert isinstance(age_ms, float)
        assert age_ms >= 100
        assert abs(kept.utc_ns(fix.monotonic_ns) - at * S) < 20_000_000  # the instant that the receiver named
    last = fixes[-1].fields
    assert (last["fix"], last["satellites_used"], last["satellites_seen"]) == ("3d", nmea.USED, len(nmea.SATELLITES))
    assert last["altitude_m"] == pytest.approx(31.0)
    assert last["hdop"] == pytest.approx(1.1, abs=0.3)
    assert all(
        f.fields["speed_m_per_s"] == pytest.approx(port.true[at].speed_m_per_s, abs=0.02)
        for f, at in zip(fixes, seconds, strict=True)
    )
    assert events == ["position_fix"]
    assert not [r for r in kept.records if r.measurement == "event"]

    joined = nearest([r.monotonic_ns for r in radio], [f.monotonic_ns for f in fixes], fixes)
    near_in_time = [
        (record, fix)
        for record, fix in zip(radio, joined, strict=True)
        if fix is not None and abs(fix.monotonic_ns - record.monotonic_ns) <= S
    ]
    assert near_in_time
    for record, fix in near_in_time:
        # The place is one where the probe truly was within that second, not one of another time.
        utc_ns = kept.utc_ns(record.monotonic_ns)
        near = [
            port.true[at]
            for at in range(utc_ns // S - 1, utc_ns // S + 3)
            if at in port.true and abs(at * S - utc_ns) <= 1.05 * S
        ]
        found = Point(float(fix.fields["latitude_deg"]), float(fix.fields["longitude_deg"]))
        assert min(distance_m(Point(true.latitude_deg, true.longitude_deg), found) for true in near) < 0.1


def test_gpsd_tells_the_time_to_a_probe_whose_clock_is_forty_years_off(tmp_path: Path) -> None:
    """Nobody sets this machine's clock."""
    port = NmeaPort(nmea.street(100))
    true_ns = time.time_ns() - time.monotonic_ns()
    clock = Clock(tmp_path / "boots.json", "boot-1", lambda: true_ns - WRONG_NS)
    watch = ClockWatch(clock, "gpsd", offset_ns=lambda: true_ns - WRONG_NS)
    receiver = Receiver(Gpsd(lambda: port.device), None, lambda _records: None, heard=watch.heard)

    def off_ms() -> float:
        return abs(clock.stamp("boot-1", 5).utc_ns - 5 - true_ns) / 1e6

    receiver.start()
    try:
        until(lambda: watch.look() > 0 and clock.synchronised)
        # On a busy machine a report may have waited longer than its error states; the next one is better.
        until(lambda: watch.look() is not None and off_ms() <= (clock.stamp("boot-1", 5).error_ms or 0))
    finally:
        receiver.stop()
        port.close()
    state = clock.state()
    assert (state["source"], state["vouched"]) == ("gpsd", True)
    assert state["system_error_ms"] == pytest.approx(-WRONG_NS / 1e6, abs=60_000)
