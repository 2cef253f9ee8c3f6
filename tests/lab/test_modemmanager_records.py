"""The real ModemManager on the host with two simulated modems: what the collector polls of it is what it polls by AT."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from managed_modems import TICK_S, Desk, Polled, desk

from tandem.modem.poll import Poll
from tandem.modem.poller import Poller

pytestmark = pytest.mark.lab

PERIOD_S = 0.5
PHASE_S = 5.0
CYCLES = 40
"""The phases come again and again, so that a busy machine sees each of them some time."""
HOME = {"a": "00101", "b": "24405"}
PHASES = (
    {"rsrp_dbm": -97.0, "rsrq_db": -10.0, "rssi_dbm": -67.0, "eci": 0x1902E01, "tac": 0x1A2B},
    {"rsrp_dbm": -83.4, "rsrq_db": -6.2, "rssi_dbm": -53.0, "eci": 0x1902E01, "tac": 0x1A2B},
    {"rsrp_dbm": -108.0, "rsrq_db": -14.5, "rssi_dbm": -79.0, "eci": 0xDD40301, "tac": 0x0102},
)
SHIFTED_DB = {"a": 0, "b": -3}
BOTH = ("state", "rat", "plmn", "tac", "eci", "rsrp_dbm", "rsrq_db", "enb_id", "sector_id")
"""What ModemManager gives of a modem by its generic AT plug-in: of LTE it asks +CESQ, which has no RSSI and no SINR."""


def ticks(name: str) -> list[dict[str, Any]]:
    served = {"plmn": HOME[name], "rat": "LTE", "registered": True}
    rows = [{**phase, "rsrp_dbm": phase["rsrp_dbm"] + SHIFTED_DB[name], **served} for phase in PHASES]
    return CYCLES * [row for row in rows for _ in range(round(PHASE_S / TICK_S))]


def told(poll: Poll) -> dict[str, Any]:
    """A poll's record, of what both back-ends give."""
    record = poll.record()
    return {key: {**record.fields, **record.tags}.get(key) for key in BOTH}


def of_phase(record: dict[str, Any], name: str, phase: dict[str, Any]) -> bool:
    """Cell, area and levels of one phase of that modem, as far as the codes of 27.007 tell levels."""
    if None in record.values() or record["plmn"] != HOME[name]:
        return False
    levels = abs(record["rsrp_dbm"] - SHIFTED_DB[name] - phase["rsrp_dbm"]), abs(record["rsrq_db"] - phase["rsrq_db"])
    return max(levels) <= 1 and (record["eci"], record["tac"]) == (phase["eci"], phase["tac"])


def equal(polled: dict[str, Polled], name: str, phase: dict[str, Any]) -> list[dict[str, Any]]:
    """Records of a phase that both back-ends made."""
    by_at, managed = (
        [one for one in map(told, list(polled[f"{name}-{kind}"].made)) if of_phase(one, name, phase)]
        for kind in ("at", "managed")
    )
    return [one for one in managed if one in by_at]


@pytest.fixture(scope="module")
def laid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with desk(tmp_path_factory.mktemp("mm")) as made:
        yield made


@pytest.fixture(scope="module")
def polled(laid: Desk) -> Iterator[dict[str, Polled]]:
    """Both modems polled by both back-ends."""
    laid.start_manager()
    epoch_ns = time.monotonic_ns()
    found: dict[str, Polled] = {}
    with ExitStack() as stack:
        for name in HOME:
            laid.modem(name, ticks(name), epoch_ns)
            found[f"{name}-managed"], found[f"{name}-at"] = Polled(), Polled()
            laid.poller(name, PERIOD_S, found[f"{name}-managed"])
            at = Poller(name, name, str(laid.terminal(name)), "auto", PERIOD_S, found[f"{name}-at"].add)
            stack.callback(at.stop)
            at.start()
        yield found


def test_records_of_both_back_ends_are_equal_in_every_phase(polled: dict[str, Polled]) -> None:
    for name in HOME:
        seen = polled[f"{name}-managed"]
        for phase in PHASES:
            seen.wait(lambda name=name, phase=phase: equal(polled, name, phase) != [], 180)
        assert {p.driver for p in seen.made} == {"modemmanager"}
        assert {p.model for p in seen.made if p.failure is None} == {"GM-4 LTE"}


def test_modemmanager_dies_and_is_back_under_other_numbers(laid: Desk, polled: dict[str, Polled]) -> None:
    seen = polled["a-managed"]
    laid.kill_manager()
    seen.wait(lambda: (seen.made[-1].failure, seen.made[-1].state) == ("no_answer", "no_answer"))
    count = len(seen.made)
    # The other one first: the numbers of the objects are given in another order.
    laid.ports = dict(reversed(laid.ports.items()))
    laid.start_manager()
    for name in HOME:
        seen = polled[f"{name}-managed"]
        seen.wait(lambda seen=seen, name=name: any(of_phase(told(seen.made[-1]), name, one) for one in PHASES))
    between = {p.failure for p in polled["a-managed"].made[count:]}
    assert between <= {"no_answer", "port_lost", None}


def test_a_modem_that_dies_behind_modemmanager_is_a_named_failure(laid: Desk, polled: dict[str, Polled]) -> None:
    """ModemManager itself goes on showing the last levels of a modem whose port hung up."""
    seen = polled["b-managed"]
    laid.modems["b-managed"].kill()
    seen.wait(lambda: seen.made[-1].failure is not None, 60)
    assert seen.made[-1].failure in ("no_answer", "port_lost")
    assert seen.made[-1].reading is None
    other = polled["a-managed"]
    count = len(other.made)
    other.wait(lambda: len(other.made) > count and other.made[-1].failure is None, 60)
