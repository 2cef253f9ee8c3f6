"""A modem changes its cell and loses service between two polls: noticed when it says so, by the collector's own wiring."""

import time
from pathlib import Path

import pytest
from scripted_modem import Collected, ScriptedModem

from tandem.app.config import parse
from tandem.app.real_modems import modem_poller
from tandem.mobility.detectors import Detectors
from tandem.mobility.settings import Settings
from tandem.schema.record import Record

PERIOD_S = 3600.0
"""There is one poll, at the beginning."""
GOOD = (Path(__file__).parents[1] / "app" / "good.toml").read_text()


@pytest.mark.usefixtures("patient")
def test_a_handover_and_a_loss_are_noticed_when_the_modem_says_so(
    tmp_path: Path, modem: ScriptedModem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tandem.modem.poller.DEADLINE_SHARE", 0.1)  # of an hour
    config = parse(GOOD.replace("/dev/ttyUSB2", str(modem.link)), tmp_path / "c.toml")
    made, detectors, events = Collected(), Detectors(Settings(period_s=3.0)), list[Record]()
    path = next(p for p in config.paths if p.name == "a")
    poller = modem_poller(path, PERIOD_S, made.add, lambda _path: None)
    poller.start()
    try:
        (poll,) = made.wait(lambda things: len(things) == 1)
        events += detectors.feed(poll.record())
        for number, line in enumerate(('+CEREG: 1,"1A2B","05A2C40C",7', "+CEREG: 2"), 2):
            before_ns = time.monotonic_ns()
            modem.say(line)
            (told,) = made.wait(lambda things, n=number: len(things) == n)[-1]
            assert before_ns < told.monotonic_ns < time.monotonic_ns()
            events += detectors.feed(told)
    finally:
        poller.stop(60)
    events += detectors.tick(told.monotonic_ns + 10**12)  # a reported loss against which nothing spoke is believed
    handover, loss = (one for one in events if one.tags["kind"] in ("handover", "service_lost"))
    assert (handover.fields["from_eci"], handover.fields["to_eci"]) == (0x5A2C30B, 0x5A2C40C)
    assert (loss.tags["kind"], loss.monotonic_ns) == ("service_lost", told.monotonic_ns)
