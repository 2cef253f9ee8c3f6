"""The probe's health and clock for people: one line of 80 columns, each SIM, and what is wrong."""

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from tandem.cli.view.screen import health_row, screen, wrong_rows
from tandem.cli.view.text import Lines, clock_words, health_line, sim_lines, software_line, summary, wrong_lines

DISK = {"disk_free_bytes": 21_000_000_000, "disk_used_bytes": 8_500_000_000}
SUPPLY = {"undervoltage": False, "undervoltage_since_boot": True, "throttled": False}
MACHINE = {"memory_available_bytes": 512_000_000, "load_1min": 0.42, "uptime_s": 86_521.3, "boot_count": 17}
HEALTH = {**DISK, **SUPPLY, **MACHINE, "processor_temperature_degc": 47.7, "clock_synchronised": True}
SOFTWARE = {"tandem": "0.1.0", "kernel": "6.12.47+rpt-rpi-v8", "firmware": "2026-02-11", "machine": "Raspberry Pi 4"}
SIM = {
    "used_bytes": 3_210_000_000, "since": "2026-11-01", "counted_from": None, "reset": "2026-12-01",
    "expected_bytes": 7_900_000_000, "sure": True, "plan_bytes": 10**10, "left_bytes": 6_790_000_000, "used_up": None,
}  # fmt: skip
STATUS: dict[str, Any] = {
    "type": "status",
    "probe": "probe-1",
    "utc_ns": 1_795_262_400 * 10**9,
    "uptime_s": 61.0,
    "modems": {},
    "health": HEALTH,
    "cards": {"mmcblk0": {"life_used_a_percent": 20, "life_used_b_percent": None}},
    "software": SOFTWARE,
    "sims": {"a": SIM, "b": {**SIM, "plan_bytes": None, "counted_from": "2026-11-19"}},
    "wrong": ["path b: its modem is silent, for 3 min, recovering: cfun was done"],
}


def test_the_machine_in_one_line_and_each_sim() -> None:
    line = health_line(STATUS)
    assert line == "48 °C, supply was too low, disk 21.0 GB free (71 %), card worn 20 %, load 0.4"
    wide = health_line(STATUS, 160)
    assert wide.endswith("memory 512 MB free, load 0.4, boot 17, 24:02:01 ago")
    assert health_line({**STATUS, "health": {**HEALTH, "undervoltage": True}}).startswith("48 °C, SUPPLY TOO LOW, disk")
    assert health_line({}) == ""
    a, b = sim_lines(STATUS)
    assert a == "SIM a: 3.2 GB of 10.0 GB since 2026-11-01, 7.9 GB expected by 2026-12-01"
    assert b == "SIM b: 3.2 GB since 2026-11-19"
    (young,) = sim_lines({"sims": {"a": {**SIM, "sure": False}}})
    assert young == "SIM a: 3.2 GB of 10.0 GB since 2026-11-01, new on 2026-12-01"


def test_status_names_machine_clock_and_what_is_wrong() -> None:
    text = summary(STATUS)
    assert "machine: 48 °C" in text
    assert "wrong (1):\n  - path b: its modem is silent, for 3 min, recovering: cfun was done" in text
    assert "nothing is wrong" in summary({**STATUS, "wrong": []})
    long = wrong_lines({"wrong": ["a word " * 40]})
    assert len(long) > 3
    assert "nothing is wrong" not in summary({"probe": "of an older collector"})
    assert software_line(STATUS) == "tandem 0.1.0, kernel 6.12.47+rpt-rpi-v8, firmware 2026-02-11, Raspberry Pi 4"
    assert "clock: chrony, within 12 ms" in summary({"clock": GOOD}).splitlines()


def test_plain_lines_name_a_wrong_once_while_its_duration_grows() -> None:
    lines = Lines()
    first = lines.of(STATUS)
    assert sum("wrong   path b" in line for line in first) == 1
    assert sum(" machine 48 °C" in line for line in first) == 1
    later = {**STATUS, "uptime_s": 62.0, "wrong": ["path b: its modem is silent, for 4 min, recovering: cfun was done"]}
    assert not any("wrong" in line or "machine" in line for line in lines.of(later))
    back = lines.of({**STATUS, "uptime_s": 63.0, "wrong": []})
    again = lines.of({**STATUS, "uptime_s": 64.0})
    assert not any("wrong   " in line for line in back)
    assert any("wrong   path b" in line for line in again)


@pytest.mark.parametrize(("width", "height"), [(80, 24), (60, 16)])
@pytest.mark.parametrize("told", [[], [*STATUS["wrong"], "the clock was never set"]])
def test_the_screen_has_a_line_of_health_and_fits(width: int, height: int, told: list[str]) -> None:
    console = Console(file=io.StringIO(), width=width, height=height, force_terminal=False)
    console.print(screen({**STATUS, "wrong": told}, width, height))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    lines = shown.rstrip("\n").split("\n")
    assert len(lines) <= height
    assert all(len(line) <= width for line in lines)
    assert ("! path b: its modem is silent" in shown) == bool(told)
    assert ("! the clock was never set" in shown) == (len(told) == 2)
    assert "supply was too low!" in shown
    assert "tandem status" not in shown


def test_the_last_line_of_what_is_wrong_says_how_many_more_there_are() -> None:
    (one, two) = wrong_rows({**STATUS, "wrong": ["first", "second", "third", "fourth"]}, 80, 2)
    assert one.plain == " ! first"
    assert two.plain == " ! second  (+2: tandem status)"
    assert all(line.cell_len <= 40 for line in wrong_rows({"wrong": ["word " * 9] * 3}, 40, 2))


def row(**more: Any) -> tuple[str, list[str]]:
    """The row of health, and what is reversed in it."""
    text = health_row({**STATUS, **more}, 80)
    assert text.cell_len <= 80
    return text.plain, [text.plain[s.start : s.end].strip() for s in text.spans if "reverse" in str(s.style)]


OVER = {**SIM, "expected_bytes": 14 * 10**9}


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"health": {**HEALTH, "undervoltage": True}}, "SUPPLY TOO LOW"),
        ({"clock": {"synchronised": False}}, "CLOCK NOT SET"),
        ({"spool": {"pending": 900}, "health": {**HEALTH, "spool_oldest_s": 7200.0}}, "spool 900, 2:00:00 old"),
        ({"spool": {"dropped": 7}}, "7 dropped"),
        ({"sims": {"b": OVER}}, "SIM b 140 % forecast"),
        ({"health": {**HEALTH, "disk_free_bytes": 10**8}}, "disk 100 MB free (1 %)"),
        ({"health": {**HEALTH, "processor_temperature_degc": 84.2}}, "84 °C"),
    ],
)
def test_what_is_not_well_comes_first_and_reversed(more: dict[str, Any], words: str) -> None:
    plain, reversed_ = row(**more)
    assert reversed_ == [words]
    assert plain.lstrip().startswith(words)


def test_what_is_well_is_not_reversed_and_what_is_fair_bears_its_mark() -> None:
    plain, reversed_ = row(
        clock={"synchronised": True, "vouched": True, "source": "chrony", "error_ms": 2.6}, spool={"pending": 4}
    )
    assert reversed_ == []
    assert plain.lstrip().startswith("supply was too low!  48 °C")
    assert "48 °C  clock chrony ±3 ms  spool 4  SIM a 32 %" in plain
    later, _ = row(clock={"synchronised": True, "vouched": False, "source": "gpsd", "error_ms": 2.6, "age_s": 400.0})
    assert "clock gpsd ±3 ms, 6:40 ago!" in later


def test_more_that_is_not_well_than_fits_is_counted() -> None:
    sims = dict.fromkeys("abcdef", OVER)
    plain, reversed_ = row(sims=sims, health={**HEALTH, "undervoltage": True})
    assert plain.rstrip().endswith("+4")
    assert len(reversed_) == 4
    assert "48 °C" not in plain


anything = st.one_of(st.none(), st.booleans(), st.integers(0, 2**63), st.floats(0, 1e6), st.text(max_size=5))


@given(st.dictionaries(st.sampled_from(sorted(HEALTH)), anything), st.integers(20, 120))
def test_any_health_fits_its_line(health: dict[str, Any], width: int) -> None:
    assert len(health_line({"health": health}, width)) <= width


GOOD = {"synchronised": True, "vouched": True, "source": "chrony", "error_ms": 12.3, "age_s": 2.0}
GOOD |= {"system_error_ms": 0.1, "steps": []}


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (GOOD, "chrony, within 12 ms"),
        (GOOD | {"vouched": False, "age_s": 3700.0}, "chrony, within 12 ms, last vouched for 1:01:40 ago"),
        (GOOD | {"system_error_ms": 5e6}, "chrony, within 12 ms; the system's clock is 5000 s off"),
        (GOOD | {"steps": [{}, {}]}, "chrony, within 12 ms; set 2 times"),
        (GOOD | {"source": "system", "error_ms": None}, "the system's clock as it stands, nobody vouches for it"),
        ({"synchronised": False, "trouble": "no chronyd answers"}, "no chronyd answers"),
        ({}, "not synchronised: records wait for their time"),
    ],
)  # fmt: skip
def test_words(state: dict[str, Any], words: str) -> None:
    assert clock_words(state) == words
