"""The recovery ladder on a fake clock, and the steps that touch USB."""

from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.modem.recovery import (
    FIRST_BACK_OFF_S,
    PROVE_S,
    RELAPSE_S,
    RecoveryEvent,
    RecoverySettings,
    RecoveryStateMachine,
)
from tandem.modem.reset import (
    STEPS,
    CannotStepError,
    StepFailedError,
    UsbPlace,
    port_power,
    switches_alone,
    usb_place,
    usb_reset,
)

AFTER_S = 60.0


@dataclass
class Field:
    """Two modems, a clock, and steps that go as told. Polled once a second."""

    settings: RecoverySettings = field(default_factory=RecoverySettings)
    how: dict[str, str] = field(default_factory=dict)
    now_s: float = 0.0
    sick: dict[str, Any] = field(default_factory=lambda: {"a": None, "b": None})
    locked: set[str] = field(default_factory=set)
    cured_by: dict[str, str] = field(default_factory=dict)
    told: list[tuple[float, RecoveryEvent]] = field(default_factory=list)
    done: list[tuple[float, str, str]] = field(default_factory=list)
    took_s: float = 2.0
    measuring: bool = False

    def __post_init__(self) -> None:
        self.machine = RecoveryStateMachine(self.sick, self.settings)

    def turn(self) -> None:
        """One second: polls, then what is due."""
        self.now_s += 1
        for path, sick in self.sick.items():
            self._note(self.machine.polled(path, sick, self.now_s, locked=path in self.locked))
        busy = self.machine.busy
        due, told = self.machine.due(self.now_s, lambda: not self.measuring)
        self._note(told)
        gave_up = {one.path for one in told if one.kind == "recovery_gave_up"}
        assert due is None or busy in (None, due.path, *gave_up), "two recoveries at once"
        if due is not None:
            assert self.machine.busy == due.path
            assert self.machine.due(self.now_s) == (None, []), "nothing while a step is under way"
            self.done.append((self.now_s, due.path, due.step))
            how: Any = self.how.get(due.step, "done")
            self.now_s += self.took_s if how != "skipped" else 0
            if how == "done" and self.cured_by.get(due.path) == due.step:
                self.sick[due.path] = None
            self._note(self.machine.did(due, how, "so", self.took_s, self.now_s))

    def run(self, seconds: float, **sick: str | None) -> None:
        """``sick``: what becomes of a path now."""
        self.sick.update(sick)
        until = self.now_s + seconds
        while self.now_s < until:
            self.turn()

    def _note(self, told: list[RecoveryEvent]) -> None:
        self.told.extend((self.now_s, one) for one in told)

    def kinds(self, path: str = "a") -> list[str]:
        return [
            one.kind if one.step is None or one.kind != "recovery_step" else one.step
            for _, one in self.told
            if one.path == path
        ]

    def steps(self, path: str = "a") -> list[str]:
        return [step for _, of, step in self.done if of == path]


def test_a_modem_that_stays_silent_is_taken_up_the_ladder_and_given_up_and_tried_again_rarely():
    field = Field()
    field.run(600, a="silent")
    assert field.kinds() == [*STEPS, "recovery_gave_up"]
    assert field.told[-1][1].detail.startswith("silent for ")
    assert "at, cfun, usb, power did not help" in field.told[-1][1].detail
    gave_up_s = field.told[-1][0]
    field.run(3600 - (field.now_s - gave_up_s) - 2)
    assert field.steps() == [*STEPS]
    field.run(600)
    assert field.steps() == [*STEPS, *STEPS]


def test_each_step_has_its_time_to_prove_itself_and_a_growing_wait_follows():
    off = Field(RecoverySettings(enabled=False))
    off.run(600, a="silent")
    assert off.told == []
    field = Field()
    field.run(600, a="silent")
    times = [at for at, _, _ in field.done]
    assert times[0] == AFTER_S + 1
    waits = [later - earlier - field.took_s for earlier, later in pairwise(times)]
    least = [PROVE_S[step] + FIRST_BACK_OFF_S * 2**n for n, step in enumerate(STEPS[:-1])]
    assert all(low <= wait <= low + 2 for low, wait in zip(least, waits, strict=True)), (least, waits)


def test_the_step_that_helps_is_the_last_and_is_named():
    for cure in STEPS:
        field = Field(cured_by={"a": cure})
        field.run(900, a="silent")
        assert field.kinds() == [*STEPS[: STEPS.index(cure) + 1], "recovered"]
        recovered = field.told[-1][1]
        assert recovered.step == cure
        assert recovered.took_ms is not None
        assert recovered.took_ms > 0


def test_a_relapse_begins_above_what_last_helped_and_later_ones_from_the_bottom():
    field = Field(cured_by={"a": "at"})
    field.run(100, a="silent")
    assert field.steps() == ["at"]
    field.cured_by["a"] = "cfun"
    field.run(120, a="silent")
    assert field.steps() == ["at", "cfun"]
    field.run(RELAPSE_S)
    field.cured_by["a"] = "at"
    field.run(120, a="silent")
    assert field.steps() == ["at", "cfun", "at"]


def test_what_this_machine_cannot_do_is_told_and_passed_over_at_once():
    field = Field(how={"at": "skipped", "cfun": "skipped", "usb": "skipped", "power": "skipped"})
    field.run(AFTER_S + 10, a="silent")
    assert field.kinds() == [*STEPS, "recovery_gave_up"]
    assert [one.detail for _, one in field.told[:4]] == ["skipped: so"] * 4
    assert "no step can be done here" in field.told[-1][1].detail


def test_a_sim_that_asks_for_its_pin_is_left_alone():
    field = Field(locked={"a"})
    field.run(600, a="silent")
    assert field.done == []
    field.locked.clear()
    field.how["at"] = "locked"
    field.run(AFTER_S + 10)
    assert field.steps() == ["at"], "the step itself found the PIN asked for"
    assert field.machine.busy is None


def test_what_interrupts_waits_for_the_end_of_a_run_and_what_does_not_is_done():
    field = Field(measuring=True)
    field.run(3600, a="silent")
    assert field.kinds() == ["at"]
    field.measuring = False
    field.run(600)
    assert field.kinds() == [*STEPS, "recovery_gave_up"]


def test_one_that_comes_back_by_itself_is_told_once_and_one_that_was_well_is_not():
    field = Field()
    field.run(AFTER_S - 2, a="silent")
    field.run(5, a=None)
    assert field.told == []
    field.run(600, a="silent")
    field.run(5, a=None)
    assert field.kinds()[-2:] == ["recovery_gave_up", "recovered"]
    assert field.told[-1][1].detail == "by itself"


MINUTES = st.tuples(st.sampled_from("ab"), st.sampled_from([None, "silent", "refusing", "locked"]), st.integers(1, 240))
HOWS = st.fixed_dictionaries({step: st.sampled_from(["done", "failed", "skipped", "locked"]) for step in STEPS})


@given(st.lists(MINUTES, max_size=12), HOWS, st.sampled_from([None, *STEPS]), st.sets(st.sampled_from(STEPS)))
def test_any_course_of_things_keeps_the_rules(course, how, cure, steps):
    settings = RecoverySettings(steps=tuple(steps), longest_back_off_s=300.0)
    field = Field(settings, how=how, cured_by={} if cure is None else {"a": cure, "b": cure})
    for path, state, seconds in course:
        field.locked.discard(path)
        if state == "locked":
            field.locked.add(path)
        else:
            field.sick[path] = state
        before = len(field.done)
        field.run(seconds)
        assert not [1 for _, of, _ in field.done[before:] if of in field.locked]
    assert {step for _, _, step in field.done} <= steps
    open_recovery: dict[str, list[tuple[float, str]]] = {"a": [], "b": []}
    for at, one in field.told:
        if one.kind == "recovery_step":
            assert one.step is not None
            row = open_recovery[one.path]
            if row and STEPS.index(one.step) <= STEPS.index(row[-1][1]):
                row.clear()  # only a locked SIM ends a recovery without a word; the next begins at the bottom
            row.append((at, one.step))
            assert one.detail.split(":")[0] in ("so", "failed", "skipped", "locked")
        else:
            open_recovery[one.path].clear()
    for path in "ab":
        mine = [(at, step) for at, of, step in field.done if of == path]
        for (earlier, low), (later, high) in pairwise(mine):
            if STEPS.index(high) > STEPS.index(low) and how[low] in ("done", "failed") and field.told:
                assert later - earlier >= min(PROVE_S[low], AFTER_S)
    # Left sick for long enough, each is given up or still waits for its hour; left well, each is well again.
    field.locked.clear()
    field.cured_by.clear()
    field.how = dict.fromkeys(STEPS, "done")
    field.run(1500, a="silent", b="silent")
    for path in "ab":
        assert "recovery_gave_up" in field.kinds(path)
    field.run(3, a=None, b=None)
    assert field.machine.busy is None
    assert {field.kinds(path)[-1] for path in "ab"} == {"recovered"}


# --- the steps that touch USB, on a sysfs and a uhubctl made of files


LISTING = """Current status for hub 1-1 [2109:3431 USB2.0 Hub, USB 2.10, 4 ports, {switching}]
  Port 1: 0100 power
  Port 2: 0103 power enable connect [2c7c:0125 Android Android]
"""


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A modem at 1-1.2 whose third interface is ttyUSB2."""
    usb = tmp_path / "sys/devices/platform/usb1/1-1/1-1.2"
    tty = usb / "1-1.2:1.2/ttyUSB2/tty/ttyUSB2"
    tty.mkdir(parents=True)
    (tty / "device").symlink_to("../..")
    for name, text in (("busnum", "1\n"), ("devnum", "7\n"), ("authorized", "1\n")):
        (usb / name).write_text(text)
    (usb.parent / "devnum").write_text("2\n")
    for name, to in (("class/tty/ttyUSB2", tty), ("bus/usb/devices/1-1.2", usb)):
        (tmp_path / "sys" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "sys" / name).symlink_to(to)
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/modem-a").symlink_to("ttyUSB2")
    return tmp_path


def test_a_modem_is_found_by_port_link_path_and_network_interface(machine):
    sys = machine / "sys"
    (sys / "class/net/eth2").mkdir(parents=True)
    (sys / "class/net/eth2/device").symlink_to(next((sys / "devices/platform/usb1/1-1/1-1.2").glob("1-1.2:*")))
    by_path = "/sys/devices/platform/usb1/1-1/1-1.2"
    for port in ("/dev/ttyUSB2", str(machine / "dev/modem-a"), "1-1.2", by_path, "eth2"):
        assert usb_place(port, sys) == UsbPlace("1-1.2")
    assert [usb_place(port, sys) for port in ("/dev/ttyUSB3", "/dev/ttyS0", "eth3")] == [None] * 3
    # hub and port as uhubctl names them
    for path, hub, port in (("1-1.2", "1-1", "2"), ("1-1", "1", "1"), ("2-1.4.3", "2-1.4", "3")):
        assert (UsbPlace(path).hub, UsbPlace(path).port) == (hub, port)


def test_without_its_device_file_the_authorisation_is_taken_and_given(machine, monkeypatch):
    monkeypatch.setattr("tandem.modem.reset.UNAUTHORIZED_S", 0.0)
    told = usb_reset(UsbPlace("1-1.2"), machine / "sys", machine / "dev")
    assert "unauthorised and authorised" in told
    assert (machine / "sys/bus/usb/devices/1-1.2/authorized").read_text() == "1"


def test_a_device_that_refuses_the_reset_is_a_failed_step_and_none_cannot_be_reset(machine):
    file = machine / "dev/bus/usb/001/007"
    file.parent.mkdir(parents=True)
    file.touch()
    with pytest.raises(StepFailedError, match="USB reset: Inappropriate ioctl"):
        usb_reset(UsbPlace("1-1.2"), machine / "sys", machine / "dev")
    with pytest.raises(CannotStepError, match="no USB device at"):
        usb_reset(UsbPlace("1-1.3"), machine / "sys", machine / "dev")


@pytest.fixture
def uhubctl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A uhubctl that lists what ``listing`` holds and notes how it was called."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "uhubctl"
    program.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/called\ncase "$*" in -l*) cat {tmp_path}/listing ;; *) exit $(cat {tmp_path}/status) ;; esac\n'
    )
    program.chmod(0o755)
    (tmp_path / "listing").write_text(LISTING.format(switching="ppps"))
    (tmp_path / "status").write_text("0")
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return tmp_path


def test_a_hub_that_can_has_its_port_cycled_and_others_are_left_alone(uhubctl, monkeypatch):
    assert "hub 1-1 port 2" in port_power(UsbPlace("1-1.2"))
    (uhubctl / "status").write_text("1")
    with pytest.raises(StepFailedError, match="status 1"):
        port_power(UsbPlace("1-1.2"))
    (uhubctl / "listing").write_text(LISTING.format(switching="ganged"))  # all ports together
    with pytest.raises(CannotStepError, match="cannot switch one port"):
        port_power(UsbPlace("1-1.2"))
    cycled = ["-l 1-1", "-a cycle -d 2 -l 1-1 -p 2"]
    assert (uhubctl / "called").read_text().splitlines() == [*cycled, *cycled, "-l 1-1"]
    monkeypatch.setattr("shutil.which", lambda *_args, **_more: None)
    with pytest.raises(CannotStepError, match="uhubctl is not installed"):
        port_power(UsbPlace("1-1.2"))


@given(st.text(max_size=200) | st.just(LISTING.format(switching="ppps")), st.text(max_size=8) | st.just("1-1"))
def test_any_listing_of_a_hub_is_read(text, hub):
    assert switches_alone(text, hub) in (True, False)
    assert not switches_alone(text, "1-1") or "ppps" in text
