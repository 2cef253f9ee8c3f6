"""The real ModemManager on the host with two simulated modems: what the collector polls of it is what it polls by AT."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from managed_modems import TICK_S, Desk, Polled, desk

from tandem.modem.poll import Poll
from tandem.modem.poller import Poller

pytestmark = pytest.mark.lab

PERIOD_S = 0.5
PHASE_S = 6.0
HOME = {"a": "00101", "b": "24405"}
PHASES = (
    {"rsrp_dbm": -97.0, "rsrq_db": -10.0, "rssi_dbm": -67.0, "eci": 0x1902E01, "tac": 0x1A2B},
    {"rsrp_dbm": -83.4, "rsrq_db": -6.2, "rssi_dbm": -53.0, "eci": 0x1902E01, "tac": 0x1A2B},
    {"rsrp_dbm": -108.0, "rsrq_db": -14.5, "rssi_dbm": -79.0, "eci": 0xDD40301, "tac": 0x0102},
)
BOTH = ("state", "rat", "plmn", "tac", "eci", "rsrp_dbm", "rsrq_db", "enb_id", "sector_id")
"""What ModemManager gives of a modem by its generic AT plug-in: of LTE it asks +CESQ, which has no RSSI and no SINR."""


def ticks(name: str) -> list[dict[str, Any]]:
    """Three phases, and the last one for ever."""
    shifted = 0 if name == "a" else -3
    rows = [
        {**phase, "rsrp_dbm": phase["rsrp_dbm"] + shifted, "plmn": HOME[name], "rat": "LTE", "registered": True}
        for phase in PHASES
    ]
    return [row for row in rows for _ in range(round(PHASE_S / TICK_S))]


def told(poll: Poll) -> dict[str, Any]:
    """A poll's record, of what both back-ends give."""
    record = poll.record()
    return {key: {**record.fields, **record.tags}.get(key) for key in BOTH}


@pytest.fixture(scope="module")
def laid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with desk(tmp_path_factory.mktemp("mm")) as made:
        yield made


@pytest.fixture(scope="module")
def polled(laid: Desk) -> Iterator[dict[str, Polled]]:
    """Both modems polled by both back-ends through all phases. The clock of the phases starts when all are measured."""
    laid.start_manager()
    lead_s = 6.0
    epoch_ns = time.monotonic_ns() + round(lead_s * 1e9)
    found: dict[str, Polled] = {}
    stack = []
    for name in HOME:
        laid.modem(name, ticks(name), epoch_ns)
        found[f"{name}-managed"], found[f"{name}-at"] = Polled(), Polled()
        laid.poller(name, PERIOD_S, found[f"{name}-managed"])
        at = Poller(name, name, str(laid.terminal(name)), "auto", PERIOD_S, found[f"{name}-at"].add)
        at.start()
        stack.append(at)
    end_ns = epoch_ns + round(len(PHASES) * PHASE_S * 1e9)
    for one in found.values():
        one.wait(lambda one=one: bool(one.made) and one.made[-1].began_monotonic_ns > end_ns, 60)
        one.epoch_ns = epoch_ns  # type: ignore[attr-defined]
    yield found
    for at in stack:
        at.stop()


def in_phase(polled: Polled, phase: int) -> list[Poll]:
    """The polls that fell into a phase."""
    begin_ns = polled.epoch_ns + round(phase * PHASE_S * 1e9)  # type: ignore[attr-defined]
    return [
        p for p in polled.made if begin_ns <= p.began_monotonic_ns and p.ended_monotonic_ns < begin_ns + PHASE_S * 1e9
    ]


@pytest.mark.parametrize("name", sorted(HOME))
@pytest.mark.parametrize("phase", range(len(PHASES)))
def test_records_of_both_back_ends_are_equal(polled: dict[str, Polled], name: str, phase: int) -> None:
    by_at = told(in_phase(polled[f"{name}-at"], phase)[-1])
    managed = told(in_phase(polled[f"{name}-managed"], phase)[-1])
    assert managed == by_at
    assert None not in by_at.values()
    assert (managed["plmn"], managed["eci"], managed["tac"]) == (HOME[name], PHASES[phase]["eci"], PHASES[phase]["tac"])


@pytest.mark.parametrize("name", sorted(HOME))
def test_levels_and_cell_follow_within_moments(polled: dict[str, Polled], name: str) -> None:
    seen = polled[f"{name}-managed"]
    for phase in range(1, len(PHASES)):
        right = [p for p in in_phase(seen, phase) if told(p) == told(in_phase(seen, phase)[-1])]
        begin_ns = seen.epoch_ns + phase * PHASE_S * 1e9  # type: ignore[attr-defined]
        assert (right[0].began_monotonic_ns - begin_ns) / 1e9 < PHASE_S / 2
    assert {p.driver for p in seen.made} == {"modemmanager"}
    assert {p.model for p in seen.made if p.failure is None} == {"GM-4 LTE"}


def test_modemmanager_dies_and_is_back_under_other_numbers(laid: Desk, polled: dict[str, Polled]) -> None:
    seen = polled["a-managed"]
    laid.kill_manager()
    seen.wait(lambda: seen.made[-1].failure == "no_answer")
    assert seen.made[-1].state == "no_answer"
    count = len(seen.made)
    # The other one first: the numbers of the objects are given in another order.
    laid._profiles = dict(reversed(laid._profiles.items()))
    laid.start_manager()
    for name in HOME:
        seen = polled[f"{name}-managed"]
        seen.wait(lambda seen=seen: told(seen.made[-1])["eci"] == PHASES[-1]["eci"], 60)
        seen.wait(lambda seen=seen: told(seen.made[-1])["rsrp_dbm"] is not None, 60)
        assert told(seen.made[-1]) == told(polled[f"{name}-at"].made[-1])
    between = {p.failure for p in polled["a-managed"].made[count:]}
    assert between <= {"no_answer", "port_lost", None}


def test_a_modem_that_dies_behind_modemmanager_is_a_named_failure(
    laid: Desk, polled: dict[str, Polled], tmp_path: Path
) -> None:
    """ModemManager itself goes on showing the last levels of a modem whose port hung up."""
    assert tmp_path.is_dir()
    seen = polled["b-managed"]
    laid.modems["b-managed"].kill()
    seen.wait(lambda: seen.made[-1].failure is not None, 60)
    assert seen.made[-1].failure in ("no_answer", "port_lost")
    assert seen.made[-1].reading is None
    assert polled["a-managed"].made[-1].failure is None
