"""The modem that ModemManager holds: found by device, set up, lost, dead. On a bus that is a table."""

from pathlib import Path

import pytest
from fake_bus import refused
from managed_table import Table

from tandem.at.errors import NoAnswer
from tandem.modem.mm_bus import LOCATION, MODEM, SIGNAL
from tandem.modem.mm_modem import AGAIN_S, QUIET_S


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path)


def test_what_is_not_set_up_is_set_up_until_it_is(table: Table) -> None:
    table.bus.properties[SIGNAL]["Rate"] = 0
    table.bus.properties[LOCATION] = {"Enabled": 2, "SignalsLocation": True}
    table.poll()
    assert [call.body for call in table.bus.asked("Setup")] == [(1,), (3, True)], (
        "what others enabled of the location stays"
    )
    table.bus.properties[SIGNAL]["Rate"], table.bus.properties[LOCATION]["Enabled"] = 1, 3
    table.poll(3)
    assert len(table.bus.asked("Setup")) == 2


def test_what_was_refused_is_asked_again_but_not_at_every_poll(table: Table) -> None:
    table.bus.properties[SIGNAL]["Rate"] = 0
    table.bus.answers["Setup"] = refused("Unauthorized")
    table.poll(int(AGAIN_S) + 3)
    assert len(table.bus.asked("Setup")) == 2
    assert len(table.bus.asked("GetCellInfo")) == 1, "not supported is for good"


def test_a_disabled_modem_is_enabled_once_and_not_measured(table: Table) -> None:
    table.bus.properties[MODEM]["State"] = 3
    table.bus.answers["Enable"] = None
    table.poll(3)
    assert [call.body for call in table.bus.asked("Enable")] == [(True,)]
    assert table.bus.asked("GetLocation") == []


def test_a_reply_that_does_not_come_is_no_answer(table: Table) -> None:
    table.bus.answers["GetAll"] = None
    with pytest.raises(NoAnswer, match="no reply in time"):
        table.poll()


def test_levels_that_stand_still_are_proved_by_asking_the_modem_itself(table: Table) -> None:
    table.poll(int(QUIET_S))
    assert table.bus.asked("List") == []
    table.poll(3)
    assert len(table.bus.asked("List")) == 1, "and an answer is good for a while"
    table.bus.answers["List"] = refused("Unknown", "org.freedesktop.ModemManager1.Error.MobileEquipment")
    table.poll(int(QUIET_S) + 5)
    table.bus.answers["List"] = refused("Failed")
    with pytest.raises(NoAnswer, match="cannot reach the modem"):
        table.poll(int(QUIET_S) + 3)
    table.bus.answers["List"] = ()
    table.now_s += QUIET_S
    with pytest.raises(NoAnswer):
        table.poll()
    table.poll(2)
