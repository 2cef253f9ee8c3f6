"""The real poller and the real ladder at the bench's modem, hung: it is recovered by the step that can, and the other is let be."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from support.modem_on_fake_clock import TICK, write_timeline
from support.polled_modem import PolledModem
from tandem.app.daemon.modems import Recovery
from tandem.app.health.reports import ModemStates, all_that_is_wrong
from tandem.modem.poll import Poll
from tandem.modem.recovery import RecoverySettings
from tandem.modem.reset import STEPS, CannotStepError
from tandem.schema.record import Record


class Rescue(PolledModem):
    """One emulated modem, its poller, the ladder. Its power can be cut by the bench's control socket."""

    def __init__(self, folder: Path, settings: RecoverySettings, tick: dict[str, Any], period_s: float = 0.3) -> None:
        super().__init__(folder, write_timeline(folder / "t.jsonl", [tick]), period_s=period_s)
        self.events: list[Record] = []
        self.recovering = Recovery(settings, {"a": self}, {"a": "A"}, self._happened)
        self.start()

    def close(self) -> None:
        self.recovering.stop()
        super().close()

    def seen(self) -> None:
        """Nothing to note of a modem that is on no USB."""

    def do(self, step: str) -> str:
        if step in ("at", "cfun"):
            return self.poller.reset(step, 300.0)
        if step == "usb":
            raise CannotStepError("no USB device")
        self.wish(power="cycle")
        return "power off and on"

    def await_that(self, condition: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(condition, 120), (self.kinds(), self.made[-2:])

    def kinds(self) -> list[Any]:
        return [(e.tags["kind"], e.fields.get("step")) for e in self.events]

    def add(self, poll: Poll) -> None:
        self.recovering.polled(poll)
        self.recovering.tick()
        super().add(poll)

    def _happened(self, records: list[Record]) -> None:
        with self._changed:
            self.events.extend(records)
            self._changed.notify_all()


Make = Callable[..., Rescue]


@pytest.fixture
def rescue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """What is to fail is given a moment, and what is to help a minute."""
    monkeypatch.setattr("tandem.modem.poller.DEADLINE_SHARE", 2.0)
    with ExitStack() as stack:

        def make(after_s: float = 0.3, answer_s: float = 0.3, radio_s: float = 0.3, **prove_s: float) -> Rescue:
            monkeypatch.setattr("tandem.modem.reset.ANSWER_S", answer_s)
            monkeypatch.setattr("tandem.modem.reset.RADIO_S", radio_s)
            quick = {**dict.fromkeys(STEPS, 0.3), **prove_s}
            made = Rescue(tmp_path, RecoverySettings(after_s=after_s, first_back_off_s=0.1, prove_s=quick), {})
            stack.callback(made.close)
            made.until(lambda poll: poll.failure is None)
            return made

        yield make


def test_a_hung_modem_is_recovered_by_switching_its_radio(rescue):
    hung = rescue(radio_s=60, cfun=60)
    hung.wish(fault="hang", seconds=3600, cured_by="AT+CFUN")
    hung.await_that(lambda: ("recovered", "cfun") in hung.kinds())
    # A modem that is late before it hangs has been recovered before.
    assert hung.kinds()[-3:] == [("recovery_step", "at"), ("recovery_step", "cfun"), ("recovered", "cfun")]
    step, _, recovered = hung.events[-3:]
    assert step.fields["detail"].startswith("failed: AT: no final result")
    assert step.fields["took_ms"] > 0
    assert recovered.tags["operator"] == "A"
    assert hung.made[-1].reading is not None
    assert hung.made[-1].reading.eci == TICK["eci"]


def test_a_dialogue_that_can_be_begun_anew_is_all_that_is_done(rescue):
    well = rescue(after_s=600, answer_s=60, radio_s=60)
    for step, detail in (("at", "port opened anew, answers AT and ATZ"), ("cfun", "radio switched off and on")):
        assert well.poller.reset(step, 120.0) == detail
        count = len(well.made)
        well.until(lambda poll: poll.reading is not None, count)
    assert well.events == []


def test_a_sim_that_asks_for_its_pin_stops_the_ladder(rescue):
    locked = rescue(answer_s=60)
    locked.wish(fault="wrong_sim", seconds=3600, how="pin")
    locked.wish(fault="hang", seconds=3600, cured_by="AT\r")
    locked.await_that(lambda: any("locked: " in str(event.fields["detail"]) for event in locked.events))
    assert locked.events[-1].fields["detail"] == "locked: the SIM asks for a code: +CPIN: SIM PIN"
    count, steps = len(locked.made), len(locked.events)
    locked.await_that(lambda: len(locked.made) >= count + 4)
    assert locked.kinds()[steps - 1 :] == [("recovery_step", "at")]


@pytest.mark.parametrize(("tick", "stale"), [({}, True), ({"registered": False}, False)], ids=["still", "no_service"])
def test_a_modem_whose_answers_do_not_change_for_an_hour_is_left_alone(tick, stale, tmp_path, monkeypatch):
    leapt_ns = (
        0  # each poll brings the clock 40 s forward; how long an answer may take stays real, and is no matter here
    )
    clock = SimpleNamespace(
        monotonic_ns=lambda: time.monotonic_ns() + leapt_ns, monotonic=lambda: (time.monotonic_ns() + leapt_ns) / 1e9
    )
    monkeypatch.setattr("tandem.modem.poller.DEADLINE_SHARE", 5000.0)
    for module in ("tandem.modem.poller", "tandem.at.channel"):
        monkeypatch.setattr(f"{module}.time", clock)
    monkeypatch.setattr("tandem.app.daemon.modems.time", clock)
    kit = Rescue(tmp_path, RecoverySettings(), tick, 0.01)
    try:
        health, seen = ModemStates(["a"], clock.monotonic_ns()), 0
        for turn in range(90):
            kit.await_that(lambda turn=turn: len(kit.made) > turn)
            leapt_ns += 40_000_000_000
            for poll in kit.made[seen:]:
                health.polled(poll)
                assert not all_that_is_wrong({"modem_health": health.to_dict(clock.monotonic_ns())})
            seen = len(kit.made)
        last = kit.made[-1]
        assert last.began_monotonic_ns - kit.made[0].began_monotonic_ns > 3500e9
        assert (kit.events, last.failure, last.stale) == ([], None, stale)
    finally:
        kit.close()
