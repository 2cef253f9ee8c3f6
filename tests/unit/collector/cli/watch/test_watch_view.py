"""What people see: the screen at two sizes, plain lines, tables, the probe's health."""

import copy
import io
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from tandem.cli.view.screen import bar, health_row, history, nice_ceiling, screen, wrong_rows
from tandem.cli.view.text import (
    Lines,
    clock_words,
    finished_table,
    health_line,
    sim_lines,
    software_line,
    summary,
    wrong_lines,
)

LEVELS = {"rsrp_dbm": -91.0, "rsrq_db": -10.0, "sinr_db": 12.0, "rssi_dbm": -62.0}
CELL = {"eci": 1234 * 256 + 2, "enb_id": 1234, "sector_id": 2, "pci": 311}


def modem(operator: str, **more: Any) -> dict[str, Any]:
    told = {
        "operator": operator,
        "driver": "quectel",
        "model": "EC25",
        "state": "connected",
        "rat": "LTE",
        "age_s": 0.3,
    }
    return {**told, **LEVELS, **CELL, "history_rsrp_dbm": [-90.0 - n % 20 for n in range(60)], **more}


def subflow(path: str, goodput: float) -> dict[str, Any]:
    told = {"path": path, "operator": path.upper(), "goodput_bit_per_s": goodput, "bytes": 10**6}
    there = {"rtt_ms": 48.4, "share": 0.646} if path == "a" else {"rtt_ms": 512.0, "share": 0.354}
    return {**told, **there, "history_bit_per_s": [goodput] * 60}


def running(number: int, kind: str, path: str, goodput: float, *subflows: dict[str, Any]) -> dict[str, Any]:
    told = {"id": f"run-{number}", "kind": kind, "path": path, "elapsed_s": 4.0, "bytes": int(goodput / 2)}
    return {**told, "goodput_bit_per_s": goodput, "subflows": list(subflows)}


def finished(number: int, **more: Any) -> dict[str, Any]:
    told = {"id": f"run-{number}", "kind": "tcp", "path": "a", "pairing": "sequential", "fallback": False}
    moved = {"goodput_bit_per_s": 31.2e6, "bytes": 31_000_000, "duration_s": 8.0}
    return {**told, **moved, "ok": True, "failure": None, **more}


def event(second: int | None, kind: str, path: str, operator: str, detail: str) -> dict[str, Any]:
    utc_ns = None if second is None else (1_790_000_000 + second) * 10**9
    return {"utc_ns": utc_ns, "kind": kind, "path": path, "operator": operator, "detail": detail}


RUN = {"id": "run-9", "pair": "pair-1", "pairing": "simultaneous", "seconds": 8.0, "bytes": None, "number": 1, "of": 3}
STATUS: dict[str, Any] = {
    "type": "status",
    "probe": "probe-1",
    "utc_ns": 1_790_000_000 * 10**9,
    "uptime_s": 3723.0,
    "mobile": True,
    "mobile_since_s": 75.0,
    "modems": {
        "a": modem("Alpha"),
        "b": modem("Beta", state="no_answer", rat=None, rsrp_dbm=None, sinr_db=None, enb_id=None),
    },
    "events": [
        event(0, "mobility_start", "a", "Alpha", "-7.1 dB RSRP"),
        event(1, "handover", "b", "Beta", "eNB 1234/2 → 1240/1"),
    ],
    "run": {
        **RUN,
        "runs": [
            running(9, "mptcp", "a", 48e6, subflow("a", 31e6), subflow("b", 17e6)),
            running(10, "tcp", "b", 6e6, subflow("b", 6e6)),
        ],
    },
    "finished": [
        finished(1),
        finished(2, kind="mptcp", fallback=True),
        finished(3, ok=False, bytes=0, failure="connect: timeout"),
    ],
    "spool": {"made": 8312, "sent": 8270, "pending": 42, "rejected": 3, "path": "a"},
    "polls": {"made": 7440, "late": 2},
    "captures_bytes": 34_000_000,
    "trouble": None,
}
SHOWN = """probe-1|MOVING for 1:15|Alpha|EC25|eNB 1234/2|-91 dBm|no answer!!|65 %|35 %|48 ms|512 ms|MPTCP|48.0 Mbit/s|31.0 Mbit/s
17.0 Mbit/s|6.0 Mbit/s|4 s of 8 s|handover|1234/2 → 1240/1|31.2 Mbit/s|connect: timeout|goodput, share, RTT; full bar|7440|(2 late)
8270 sent|3 rejected|34.0 MB|█"""


def drawn(status: dict[str, Any], width: int, height: int, colours: str | None = None) -> str:
    console = Console(
        file=io.StringIO(), width=width, height=height, force_terminal=True, color_system=colours, legacy_windows=False
    )
    with console.capture() as captured:
        console.print(screen(status, width, height), height=height)
    return captured.get()


def fitting(status: dict[str, Any], width: int, height: int) -> str:
    """What is drawn, which is no larger than was asked."""
    shown = drawn(status, width, height)
    lines = shown.rstrip("\n").split("\n")
    assert len(lines) <= height
    assert all(len(line) <= width for line in lines)
    return shown


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40)])
def test_the_screen_shows_what_matters_and_fits(width, height):
    shown = fitting(STATUS, width, height)
    for words in (*re.split(r"[|\n]", SHOWN), "fell back" if width >= 120 else "→ TCP"):
        assert words in shown, (words, shown)


def test_colours_carry_the_meaning():
    shown = drawn(STATUS, 120, 40, "standard")
    assert re.search(r"\x1b\[1;94m +▶▶ MOVING", shown)  # notice: bright blue
    assert "\x1b[31mno answer!!" in shown  # poor: red
    assert "\x1b[1;31m, 3 rejected" in shown
    assert "\x1b[33m  512 ms" in shown  # fair: yellow
    assert "\x1b[32m   48 ms" in shown  # good: green


def test_a_collector_that_just_began_a_pause_and_trouble_are_shown_too():
    empty = {"type": "status", "probe": "p", "run": None, "spool": {}, "polls": {}, "modems": {}}
    empty |= {"events": [], "finished": []}
    shown = fitting(empty, 80, 24)
    assert "STANDING STILL" in shown
    assert "no run now" in shown
    unknown = dict.fromkeys(("state", "rat", "rsrp_dbm", "sinr_db", "rsrq_db", "enb_id", "pci"))
    young = modem("A", **unknown, history_rsrp_dbm=[])
    assert "no poll yet" in fitting({**empty, "modems": {"a": young}}, 80, 24)
    paused = {**STATUS, "run": {**STATUS["run"], "pairing": "sequential", "number": 2, "runs": []}}
    shown = fitting({**paused, "trouble": "the disk is full: records wait in memory"}, 80, 24)
    for words in ("pause before the next run", "run 2 of 3", "! the disk is full"):
        assert words in shown


def test_plain_lines_tell_each_thing_once():
    lines = Lines()
    first = lines.of(STATUS)
    assert sum("event" in line for line in first) == 2
    assert sum(" run " in line for line in first) == 3
    assert "a/Alpha -91 dBm SINR 12 eNB 1234/2" in first[-1]
    assert "mptcp a 48.0 Mbit/s (a 65 % 48 ms, b 35 % 512 ms) | tcp b 6.0 Mbit/s |" in first[-1]
    assert lines.of(STATUS) == []
    later = copy.deepcopy(STATUS)
    later["uptime_s"] += 1
    later["events"].append(event(None, "modem_lost", "b", "Beta", "3 polls failed"))
    second = lines.of(later)
    assert second[0] == "--:--:-- event   b/Beta modem lost 3 polls failed"
    assert len(second) == 2


def test_round_trips_are_told_where_they_are_on():
    answered, lost, none = ({"outcome": o, "rtt_ms": v} for o, v in (("answered", 41.3), ("lost", None), (None, None)))
    told = {"round_trips": {"a": answered, "b": lost, "c": none}}
    assert "round trips: a 41 ms, b lost, c –" in summary(told).splitlines()
    assert "round trip" not in summary({"round_trips": None}) + summary({})


def test_summary_and_table_are_for_reading():
    text = summary(STATUS)
    assert "probe-1: up 1:02:03, moving for 1:15" in text
    assert "path b: Beta, EC25, no answer, RSRP –" in text
    table = finished_table(STATUS["finished"]).splitlines()
    assert table[0].split() == ["RUN", "KIND", "PATH", "GOODPUT", "BYTES", "TIME"]
    assert "fell back to TCP" in table[2]
    assert table[3].endswith("connect: timeout")


def test_a_history_tells_silence_from_weakness():
    rows = history([-125.0, None, -70.0], 3, 2, -125, -70, lambda _: "white")
    assert [row.plain for row in rows] == ["  █", "▁·█"]


@given(st.floats(0, 1e12), st.floats(0, 1e12), st.integers(0, 200))
def test_a_bar_is_as_wide_as_asked(value, most, width):
    assert len(bar(value, most, width, "white")) == width


@given(st.floats(1, 1e12))
def test_the_scale_holds_the_value_and_is_not_far_above(value):
    assert value <= nice_ceiling(value) <= 2 * value


# --- the probe's health and clock for people: one line of 80 columns, each SIM, and what is wrong


DISK = {"disk_free_bytes": 21_000_000_000, "disk_used_bytes": 8_500_000_000}
SUPPLY = {"undervoltage": False, "undervoltage_since_boot": True, "throttled": False}
MACHINE = {"memory_available_bytes": 512_000_000, "load_1min": 0.42, "uptime_s": 86_521.3, "boot_count": 17}
HEALTH = {**DISK, **SUPPLY, **MACHINE, "processor_temperature_degc": 47.7, "clock_synchronised": True}
SOFTWARE = {"tandem": "0.1.0", "kernel": "6.12.47+rpt-rpi-v8", "firmware": "2026-02-11", "machine": "Raspberry Pi 4"}
SIM = {
    "used_bytes": 3_210_000_000, "since": "2026-11-01", "counted_from": None, "reset": "2026-12-01",
    "expected_bytes": 7_900_000_000, "sure": True, "plan_bytes": 10**10, "left_bytes": 6_790_000_000, "used_up": None,
}  # fmt: skip
WELL: dict[str, Any] = {
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


def test_the_machine_in_one_line_and_each_sim():
    line = health_line(WELL)
    assert line == "48 °C, supply was too low, disk 21.0 GB free (71 %), card worn 20 %, load 0.4"
    wide = health_line(WELL, 160)
    assert wide.endswith("memory 512 MB free, load 0.4, boot 17, 24:02:01 ago")
    assert health_line({**WELL, "health": {**HEALTH, "undervoltage": True}}).startswith("48 °C, SUPPLY TOO LOW, disk")
    assert health_line({}) == ""
    a, b = sim_lines(WELL)
    assert a == "SIM a: 3.2 GB of 10.0 GB since 2026-11-01, 7.9 GB expected by 2026-12-01"
    assert b == "SIM b: 3.2 GB since 2026-11-19"
    (young,) = sim_lines({"sims": {"a": {**SIM, "sure": False}}})
    assert young == "SIM a: 3.2 GB of 10.0 GB since 2026-11-01, new on 2026-12-01"


def test_status_names_machine_clock_and_what_is_wrong():
    text = summary(WELL)
    assert "machine: 48 °C" in text
    assert "wrong (1):\n  - path b: its modem is silent, for 3 min, recovering: cfun was done" in text
    assert "nothing is wrong" in summary({**WELL, "wrong": []})
    long = wrong_lines({"wrong": ["a word " * 40]})
    assert len(long) > 3
    assert "nothing is wrong" not in summary({"probe": "of an older collector"})
    assert software_line(WELL) == "tandem 0.1.0, kernel 6.12.47+rpt-rpi-v8, firmware 2026-02-11, Raspberry Pi 4"
    assert "clock: chrony, within 12 ms" in summary({"clock": GOOD}).splitlines()


def test_plain_lines_name_a_wrong_once_while_its_duration_grows():
    lines = Lines()
    first = lines.of(WELL)
    assert sum("wrong   path b" in line for line in first) == 1
    assert sum(" machine 48 °C" in line for line in first) == 1
    later = {**WELL, "uptime_s": 62.0, "wrong": ["path b: its modem is silent, for 4 min, recovering: cfun was done"]}
    assert not any("wrong" in line or "machine" in line for line in lines.of(later))
    back = lines.of({**WELL, "uptime_s": 63.0, "wrong": []})
    again = lines.of({**WELL, "uptime_s": 64.0})
    assert not any("wrong   " in line for line in back)
    assert any("wrong   path b" in line for line in again)


@pytest.mark.parametrize(("width", "height"), [(80, 24), (60, 16)])
def test_the_screen_has_a_line_of_health_and_fits(width, height):
    for told in ([], [*WELL["wrong"], "the clock was never set"]):
        shown = fitting({**WELL, "wrong": told}, width, height)
        assert ("! path b: its modem is silent" in shown) == bool(told)
        assert ("! the clock was never set" in shown) == bool(told)
        assert "supply was too low!" in shown
        assert "tandem status" not in shown


def test_the_last_line_of_what_is_wrong_says_how_many_more_there_are():
    (one, two) = wrong_rows({**WELL, "wrong": ["first", "second", "third", "fourth"]}, 80, 2)
    assert one.plain == " ! first"
    assert two.plain == " ! second  (+2: tandem status)"
    assert all(line.cell_len <= 40 for line in wrong_rows({"wrong": ["word " * 9] * 3}, 40, 2))


def row(**more: Any) -> tuple[str, list[str]]:
    """The row of health, and what is reversed in it."""
    text = health_row({**WELL, **more}, 80)
    assert text.cell_len <= 80
    return text.plain, [text.plain[s.start : s.end].strip() for s in text.spans if "reverse" in str(s.style)]


OVER = {**SIM, "expected_bytes": 14 * 10**9}


def test_what_is_not_well_comes_first_and_reversed():
    for more, words in (
        ({"health": {**HEALTH, "undervoltage": True}}, "SUPPLY TOO LOW"),
        ({"clock": {"synchronised": False}}, "CLOCK NOT SET"),
        ({"spool": {"pending": 900}, "health": {**HEALTH, "spool_oldest_s": 7200.0}}, "spool 900, 2:00:00 old"),
        ({"spool": {"dropped": 7}}, "7 dropped"),
        ({"sims": {"b": OVER}}, "SIM b 140 % forecast"),
        ({"health": {**HEALTH, "disk_free_bytes": 10**8}}, "disk 100 MB free (1 %)"),
        ({"health": {**HEALTH, "processor_temperature_degc": 84.2}}, "84 °C"),
    ):
        plain, reversed_ = row(**more)
        assert reversed_ == [words]
        assert plain.lstrip().startswith(words)


def test_what_is_well_is_not_reversed_and_what_is_fair_bears_its_mark():
    clock = {"synchronised": True, "vouched": True, "source": "chrony", "error_ms": 2.6}
    plain, reversed_ = row(clock=clock, spool={"pending": 4})
    assert reversed_ == []
    assert plain.lstrip().startswith("supply was too low!  48 °C")
    assert "48 °C  clock chrony ±3 ms  spool 4  SIM a 32 %" in plain
    later, _ = row(clock={**clock, "vouched": False, "source": "gpsd", "age_s": 400.0})
    assert "clock gpsd ±3 ms, 6:40 ago!" in later


def test_more_that_is_not_well_than_fits_is_counted():
    sims = dict.fromkeys("abcdef", OVER)
    plain, reversed_ = row(sims=sims, health={**HEALTH, "undervoltage": True})
    assert plain.rstrip().endswith("+4")
    assert len(reversed_) == 4
    assert "48 °C" not in plain


anything = st.one_of(st.none(), st.booleans(), st.integers(0, 2**63), st.floats(0, 1e6), st.text(max_size=5))


@given(st.dictionaries(st.sampled_from(sorted(HEALTH)), anything), st.integers(20, 120))
def test_any_health_fits_its_line(health, width):
    assert len(health_line({"health": health}, width)) <= width


GOOD = {"synchronised": True, "vouched": True, "source": "chrony", "error_ms": 12.3, "age_s": 2.0}
GOOD |= {"system_error_ms": 0.1, "steps": []}


def test_the_clock_in_words():
    for state, words in (
        (GOOD, "chrony, within 12 ms"),
        (GOOD | {"vouched": False, "age_s": 3700.0}, "chrony, within 12 ms, last vouched for 1:01:40 ago"),
        (GOOD | {"system_error_ms": 5e6}, "chrony, within 12 ms; the system's clock is 5000 s off"),
        (GOOD | {"steps": [{}, {}]}, "chrony, within 12 ms; set 2 times"),
        (GOOD | {"source": "system", "error_ms": None}, "the system's clock as it stands, nobody vouches for it"),
        ({"synchronised": False, "trouble": "no chronyd answers"}, "no chronyd answers"),
        ({}, "not synchronised: records wait for their time"),
    ):
        assert clock_words(state) == words
