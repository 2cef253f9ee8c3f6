"""What people see: the screen at two sizes, plain lines, tables."""

import copy
import io
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from tandem.cli.view.screen import bar, history, nice_ceiling, screen
from tandem.cli.view.text import Lines, finished_table, summary

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
SHOWN = (
    *(
        "probe-1",
        "MOVING for 1:15",
        "Alpha",
        "EC25",
        "eNB 1234/2",
        "-91 dBm",
        "no answer!!",
        "65 %",
        "35 %",
        "48 ms",
        "512 ms",
    ),
    *("MPTCP", "48.0 Mbit/s", "31.0 Mbit/s", "17.0 Mbit/s", "6.0 Mbit/s", "4 s of 8 s", "handover", "1234/2 → 1240/1"),
    *(
        "31.2 Mbit/s",
        "connect: timeout",
        "goodput, share, RTT; full bar",
        "7440",
        "(2 late)",
        "8270 sent",
        "3 rejected",
    ),
    *("34.0 MB", "█"),
)


def picture(status: dict[str, Any], width: int, height: int) -> str:
    console = Console(
        file=io.StringIO(), width=width, height=height, force_terminal=True, color_system=None, legacy_windows=False
    )
    with console.capture() as captured:
        console.print(screen(status, width, height), height=height)
    return captured.get()


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40), (100, 30), (200, 60)])
def test_the_screen_shows_what_matters_and_fits(width: int, height: int) -> None:
    shown = picture(STATUS, width, height)
    lines = shown.rstrip("\n").split("\n")
    assert len(lines) <= height
    assert all(len(line) <= width for line in lines)
    for words in (*SHOWN, "fell back" if width >= 120 else "→ TCP"):
        assert words in shown, (words, shown)


def test_colours_carry_the_meaning() -> None:
    console = Console(
        file=io.StringIO(), width=120, height=40, force_terminal=True, color_system="standard", legacy_windows=False
    )
    with console.capture() as captured:
        console.print(screen(STATUS, 120, 40), height=40)
    shown = captured.get()
    assert re.search(r"\x1b\[1;94m +▶▶ MOVING", shown)  # notice: bright blue
    assert "\x1b[31mno answer!!" in shown  # poor: red
    assert "\x1b[1;31m, 3 rejected" in shown
    assert "\x1b[33m  512 ms" in shown  # fair: yellow
    assert "\x1b[32m   48 ms" in shown  # good: green


def test_a_collector_that_just_began_a_pause_and_trouble_are_shown_too() -> None:
    empty = {"type": "status", "probe": "p", "run": None, "spool": {}, "polls": {}, "modems": {}}
    empty |= {"events": [], "finished": []}
    shown = picture(empty, 80, 24)
    assert "STANDING STILL" in shown
    assert "no run now" in shown
    young = modem(
        "A", state=None, rat=None, rsrp_dbm=None, sinr_db=None, rsrq_db=None, enb_id=None, pci=None, history_rsrp_dbm=[]
    )
    assert "no poll yet" in picture({**empty, "modems": {"a": young}}, 80, 24)
    status = copy.deepcopy(STATUS)
    status["run"] = {**status["run"], "pairing": "sequential", "number": 2, "runs": []}
    assert "pause before the next run" in picture(status, 80, 24)
    assert "run 2 of 3" in picture(status, 80, 24)
    assert "! the disk is full" in picture({**STATUS, "trouble": "the disk is full: records wait in memory"}, 80, 24)


def test_plain_lines_tell_each_thing_once() -> None:
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


def test_round_trips_are_told_where_they_are_on() -> None:
    answered, lost, none = ({"outcome": o, "rtt_ms": v} for o, v in (("answered", 41.3), ("lost", None), (None, None)))
    told = {"round_trips": {"a": answered, "b": lost, "c": none}}
    assert "round trips: a 41 ms, b lost, c –" in summary(told).splitlines()
    assert "round trip" not in summary({"round_trips": None}) + summary({})


def test_summary_and_table_are_for_reading() -> None:
    text = summary(STATUS)
    assert "probe-1: up 1:02:03, moving for 1:15" in text
    assert "path b: Beta, EC25, no answer, RSRP –" in text
    table = finished_table(STATUS["finished"]).splitlines()
    assert table[0].split() == ["RUN", "KIND", "PATH", "GOODPUT", "BYTES", "TIME"]
    assert "fell back to TCP" in table[2]
    assert table[3].endswith("connect: timeout")


def test_a_history_tells_silence_from_weakness() -> None:
    rows = history([-125.0, None, -70.0], 3, 2, -125, -70, lambda _: "white")
    assert [row.plain for row in rows] == ["  █", "▁·█"]


@given(st.floats(0, 1e12), st.floats(0, 1e12), st.integers(0, 200))
def test_a_bar_is_as_wide_as_asked(value: float, most: float, width: int) -> None:
    assert len(bar(value, most, width, "white")) == width


@given(st.floats(1, 1e12))
def test_the_scale_holds_the_value_and_is_not_far_above(value: float) -> None:
    assert value <= nice_ceiling(value) <= 2 * value
