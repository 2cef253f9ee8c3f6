"""The real gpsd, fed by a receiver of ours on a port, vouches for the time; nobody sets this machine's clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import nmea
import pytest
from test_gpsd_drive import NmeaPort

from tandem.app.clock import Clock
from tandem.app.clock.watch import ClockWatch
from tandem.position.gpsd import Gpsd, GpsdMissingError, program
from tandem.position.receiver import Receiver

WRONG_NS = 40 * 365 * 86_400 * 10**9


def until(what: Callable[[], bool], timeout_s: float = 60.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_gpsd_tells_the_time_to_a_probe_whose_clock_is_forty_years_off(tmp_path: Path) -> None:
    try:
        program()
    except GpsdMissingError as error:
        pytest.skip(str(error))
    port = NmeaPort(nmea.street(100))
    true_ns = time.time_ns() - time.monotonic_ns()
    clock = Clock(tmp_path / "boots.json", "boot-1", lambda: true_ns - WRONG_NS)
    watch = ClockWatch(clock, "gpsd", offset_ns=lambda: true_ns - WRONG_NS)
    receiver = Receiver(Gpsd(lambda: port.device), None, lambda _records: None, heard=watch.heard)

    def off_ms() -> float:
        """A record of long before."""
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
