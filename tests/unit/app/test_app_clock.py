"""The clock of records: UTC by the boot's offset, remembered for the records of earlier boots."""

from __future__ import annotations

from pathlib import Path

import pytest

from tandem.app.clock import PLAUSIBLE_UTC_NS, STEP_NS, Clock

SET_NS = PLAUSIBLE_UTC_NS + 10**18


class Hands:
    """Both clocks of a machine, set by hand."""

    def __init__(self, utc_ns: int, monotonic_ns: int) -> None:
        self.utc_ns, self.monotonic_ns = utc_ns, monotonic_ns

    def clock(self, file: Path, boot: str = "boot-1") -> Clock:
        return Clock(file, boot, lambda: self.utc_ns, lambda: self.monotonic_ns)


def test_records_made_before_the_clock_was_set_get_their_time_afterwards(tmp_path: Path) -> None:
    hands = Hands(1000, 5)
    clock = hands.clock(tmp_path / "boots.json")
    assert not clock.synchronised
    assert clock.utc_ns(3) is None
    hands.utc_ns = SET_NS + 5
    assert clock.observe() is None
    assert clock.utc_ns(3) == SET_NS + 3


def test_a_step_is_told_and_a_slew_is_not(tmp_path: Path) -> None:
    hands = Hands(SET_NS, 0)
    clock = hands.clock(tmp_path / "boots.json")
    hands.utc_ns += STEP_NS - 1
    assert clock.observe() is None
    hands.utc_ns += STEP_NS
    assert clock.observe() == STEP_NS
    assert clock.steps == 1


def test_an_earlier_boots_offset_is_remembered_and_an_unknown_one_is_named(tmp_path: Path) -> None:
    Hands(SET_NS, 0).clock(tmp_path / "boots.json", "boot-1")
    later = Hands(SET_NS + 10**12, 0).clock(tmp_path / "boots.json", "boot-2")
    assert later.utc_of("boot-1", 7) == SET_NS + 7
    with pytest.raises(ValueError, match="boot-0"):
        later.utc_of("boot-0", 7)


def test_an_offset_that_the_disk_did_not_take_is_written_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "boots.json"
    hands = Hands(1000, 0)
    clock = hands.clock(file)
    hands.utc_ns = SET_NS

    def refuse(_file: Path, _content: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tandem.app.clock.write_durably", refuse)
    with pytest.raises(OSError, match="No space"):
        clock.observe()
    assert clock.utc_ns(0) == SET_NS  # records get their time all the same
    monkeypatch.undo()
    clock.observe()
    assert hands.clock(file, "boot-2").utc_of("boot-1", 0) == SET_NS
