"""The connection through ModemManager on a bus that is a table: PIN once, roaming policy, reasons, the bearer read back."""

import os
from pathlib import Path
from typing import Any

import pytest
from fake_bus import refused
from managed_table import Table

from tandem.modem.mm_bus import MODEM, MODEM_3GPP


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path)


def test_a_refused_connection_is_named_and_tried_again_later_and_later(table: Table) -> None:
    table.bus.answers["Connect"] = refused(
        "ServiceOptionNotSubscribed", "org.freedesktop.ModemManager1.Error.MobileEquipment"
    )
    table.poll(2)
    assert table.told[-1] == ("not_connected", "as it says; tried again in 10 s")
    table.poll(40)
    assert len(table.bus.asked("Connect")) == 3
    assert "tried again in 40 s" in table.told[-1][1]


def test_where_roaming_is_refused_a_connection_is_ended_and_where_it_is_allowed_made(tmp_path: Path) -> None:
    table, allowed = Table(tmp_path), Table(tmp_path, roaming=True)
    for one in (table, allowed):
        one.bus.properties[MODEM_3GPP] = {"RegistrationState": 5, "OperatorCode": "26201"}
    table.bus.properties[MODEM]["State"] = 11
    table.poll()
    assert (len(table.bus.asked("Disconnect")), table.bus.asked("Connect")) == (1, [])
    allowed.poll()
    wanted = {"apn": ("s", "internet"), "allow-roaming": ("b", True), "ip-type": ("u", 4)}
    assert allowed.bus.asked("Connect")[0].body[0] == wanted


@pytest.mark.parametrize(
    ("properties", "registration", "state"),
    [
        ({"State": 8}, {"RegistrationState": 3}, "registration_denied"),
        ({"State": 7}, {"RegistrationState": 2}, "searching"),
        ({"State": -1, "StateFailedReason": 2}, {}, "sim_unusable"),
        ({"State": 2, "UnlockRequired": 4}, {}, "puk_needed"),
        ({"State": 2, "UnlockRequired": 2}, {}, "pin_needed"),
    ],
)
def test_what_keeps_it_from_connecting_has_a_name(
    table: Table, properties: dict[str, Any], registration: dict[str, Any], state: str
) -> None:
    table.bus.properties[MODEM] |= properties
    table.bus.properties[MODEM_3GPP] = registration
    table.poll(2)
    assert [told[0] for told in table.told] == [state]
    assert table.bus.asked("SendPin") == table.bus.asked("Connect") == []


class Pin:
    """A locked SIM, and a PIN file."""

    def __init__(self, folder: Path, text: str = "1234\n") -> None:
        self.file = folder / "pin"
        self.file.write_text(text)
        self.table = Table(folder, pin_file=self.file)
        self.table.bus.properties[MODEM] |= {"State": 2, "UnlockRequired": 2, "UnlockRetries": {2: 3}}

    @property
    def tries(self) -> int:
        return len(self.table.bus.asked("SendPin"))

    def restart(self) -> None:
        """A new collector: it knows only what is on disk."""
        self.table.connection = self.table.connected()
        self.table.modem.close()


def test_a_wrong_pin_is_tried_once_whatever_happens(tmp_path: Path) -> None:
    pin = Pin(tmp_path)
    pin.table.bus.answers["SendPin"] = refused(
        "IncorrectPassword", "org.freedesktop.ModemManager1.Error.MobileEquipment"
    )
    pin.table.poll(10)
    assert pin.table.state == "pin_refused"
    assert "1234" not in str(pin.table.told)
    pin.restart()
    pin.table.poll(10)
    assert (pin.tries, pin.table.state) == (1, "pin_refused")
    assert pin.table.bus.asked("SendPin")[0].body == ("1234",)
    pin.file.write_text("4321")
    os.utime(pin.file, ns=(1, 1))
    pin.table.bus.properties[MODEM]["UnlockRetries"] = {2: 2}
    pin.table.poll(10)
    assert pin.tries == 2, "another PIN file is another PIN"
    pin.file.write_text("5555")
    os.utime(pin.file, ns=(2, 2))
    pin.table.bus.properties[MODEM]["UnlockRetries"] = {2: 1}
    pin.table.poll(10)
    pin.restart()
    pin.table.poll(10)
    assert pin.tries == 2, "the card's last try is never taken"
    assert "one try left" in pin.table.told[-1][1]


def test_a_collector_that_dies_after_sending_does_not_send_again(tmp_path: Path) -> None:
    pin = Pin(tmp_path)
    pin.table.bus.answers["SendPin"] = None
    pin.table.poll(2)
    pin.restart()
    pin.table.poll(5)
    assert (pin.tries, pin.table.state) == (1, "pin_refused")


def test_the_right_pin_is_forgotten_when_the_card_is_open_and_sent_again_after_the_next_power_up(
    tmp_path: Path,
) -> None:
    pin = Pin(tmp_path)
    locked = dict(pin.table.bus.properties[MODEM])
    pin.table.poll(2)
    pin.table.bus.properties[MODEM] |= {"State": 8, "UnlockRequired": 1}
    pin.table.poll(2)
    assert pin.table.state == "connecting"
    assert list((tmp_path / "tried").iterdir()) == []
    pin.table.bus.properties[MODEM] = locked
    pin.table.poll(2)
    assert pin.tries == 2


def test_a_file_that_holds_no_pin_is_not_sent(tmp_path: Path) -> None:
    for number, text in enumerate(("12\n", "abcd", "", "é123")):
        (tmp_path / str(number)).mkdir()
        pin = Pin(tmp_path / str(number), text)
        pin.table.poll(2)
        assert pin.tries == 0
        assert "4 to 8" in pin.table.told[-1][1]


def test_a_pin_that_polkit_keeps_back_was_not_tried(tmp_path: Path) -> None:
    pin = Pin(tmp_path)
    pin.table.bus.answers["SendPin"] = refused("Unauthorized")
    pin.table.poll(200)
    assert pin.tries == 1, "not at every poll"
    assert pin.table.told[-1] == ("pin_unusable", "as it says; mend: install the polkit rule")
    del pin.table.bus.answers["SendPin"]
    pin.table.poll(200)
    assert (pin.tries, pin.table.state) == (2, "pin_sent")
