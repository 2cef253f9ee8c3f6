"""Connection through the real ModemManager: a wrong PIN is sent once, roaming is refused by name, and a hung modem is a failure."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from managed_modems import Desk, Polled, desk

from tandem.modem.mm_poller import ConnectionSettings

pytestmark = pytest.mark.lab

TICK: dict[str, Any] = {
    "rsrp_dbm": -97.0, "rsrq_db": -10.0, "rssi_dbm": -67.0, "eci": 0x1902E01, "tac": 0x1A2B, "plmn": "00101", "rat": "LTE",
    "registered": True,
}  # fmt: skip


@pytest.fixture
def laid(tmp_path: Path) -> Iterator[Desk]:
    with desk(tmp_path) as made:
        made.start_manager()
        yield made


def settings(folder: Path, **more: Any) -> ConnectionSettings:
    return ConnectionSettings("internet", folder / "tried", **more)


def sent_pins(laid: Desk) -> int:
    """How often ModemManager entered a PIN at the modem."""
    return sum("--> 'AT+CPIN=" in line for line in laid.log().splitlines())


def test_a_wrong_pin_is_entered_once_also_over_restarts(laid: Desk, tmp_path: Path) -> None:
    (tmp_path / "pin").write_text("1234\n")
    wanted = settings(tmp_path, pin_file=tmp_path / "pin")
    laid.modem("p", [TICK], time.monotonic_ns(), {"t_s": 0, "fault": "wrong_sim", "how": "pin", "seconds": 3600})
    for _ in range(2):
        polled = Polled()
        poller = laid.poller("p", 0.5, polled, connection=wanted)
        polled.wait(lambda polled=polled: polled.states[-1:] != [] and polled.states[-1][0] == "pin_refused", 60)
        count = len(polled.made)
        polled.wait(lambda polled=polled, count=count: len(polled.made) >= count + 4)
        assert polled.made[-1].state == "no_service"
        poller.stop()
    assert sent_pins(laid) == 1, [line for line in laid.log().splitlines() if "CPIN" in line]


@pytest.mark.parametrize("measuring", [True, False], ids=["measured", "only connected"])
def test_roaming_is_refused_by_name_and_nothing_is_dialled(laid: Desk, tmp_path: Path, measuring: bool) -> None:
    # The first tick's network is the SIM's own; the modem is abroad by the time that it is asked.
    laid.modem("r", [TICK, {**TICK, "plmn": "24405"}], time.monotonic_ns() - 10**9)
    polled = Polled()
    laid.poller("r", 0.5, polled, connection=settings(tmp_path), measuring=measuring)
    polled.wait(lambda: ("roaming_refused", "registered with 24405, which is not this SIM's own") in polled.states, 60)
    assert "--> 'ATD" not in laid.log()
    assert "connecting" not in [state for state, _ in polled.states]
