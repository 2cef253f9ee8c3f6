"""The modem that ModemManager holds: found by device, set up, lost, dead; and its connection. On a bus that is a table."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
from fake_bus import DEVICE, PATH, FakeBus, bus_of, refused

from tandem.at.errors import NoAnswer, PortLost
from tandem.modem.mm_bus import LOCATION, MODEM, MODEM_3GPP, SERVICE, SIGNAL, Signal
from tandem.modem.mm_connection import Connection, ConnectionSettings
from tandem.modem.mm_modem import AGAIN_S, PROOF_S, QUIET_S, ManagedModem


class Table:
    """A modem at a fake bus and clock, and its connection."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.bus, self.now_s, self.opened = FakeBus(), 0.0, 0
        self.told: list[tuple[str, str]] = []
        self.folder = folder
        self.modem = ManagedModem("1-1.2", self._open, lambda: self.now_s)
        self.settings = ConnectionSettings("internet", folder / "tried", **settings)
        self.connection = self.connected()

    def _open(self) -> Any:
        self.opened += 1
        return bus_of(self.bus)

    def connected(self) -> Connection:
        """A connection that remembers nothing but what is on disk."""
        return Connection(
            self.settings, self.modem, lambda state, detail: self.told.append((state, detail)), lambda: self.now_s
        )

    def poll(self, times: int = 1) -> Any:
        for _ in range(times):
            self.now_s += 1
            answer = self.modem.poll(time.monotonic() + 0.2)
            self.connection.tend(answer.path, answer.told)
        return answer

    @property
    def state(self) -> str | None:
        return self.connection.state


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path)


@pytest.mark.parametrize("device", ["1-1.2", DEVICE])
def test_it_is_found_by_its_device_never_by_its_number(device: str) -> None:
    bus = FakeBus()
    modem = ManagedModem(device, lambda: bus_of(bus))
    assert modem.poll(time.monotonic() + 1).path == PATH
    assert modem.identity.model == "EM7455"
    with pytest.raises(PortLost, match="ModemManager has no modem"):
        ManagedModem("1-1", lambda: bus_of(FakeBus())).poll(time.monotonic() + 1)


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


def test_its_restart_is_a_failed_poll_and_everything_anew(table: Table) -> None:
    table.poll()
    table.bus.broadcasts.append(
        Signal("/org/freedesktop/DBus", "org.freedesktop.DBus", "NameOwnerChanged", (SERVICE, ":1.4", ""))
    )
    table.bus.answers["GetManagedObjects"] = refused("ServiceUnknown", "org.freedesktop.DBus.Error")
    with pytest.raises(NoAnswer, match="ModemManager is not on the bus"):
        table.poll()
    del table.bus.answers["GetManagedObjects"]
    table.bus.properties[SIGNAL]["Rate"] = 0
    table.poll()
    assert table.bus.asked("Setup")[-1].body == (1,)
    assert table.opened == 1


def test_an_object_that_vanishes_is_a_lost_port(table: Table) -> None:
    table.poll()
    table.bus.properties[MODEM]["Device"] = "/elsewhere"
    table.bus.answers["GetAll"] = refused("UnknownObject", "org.freedesktop.DBus.Error")
    with pytest.raises(PortLost):
        table.poll()
    with pytest.raises(PortLost, match=r"has no modem 1-1\.2"):
        table.poll()


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


def test_a_modem_that_says_nothing_to_modemmanager_is_no_answer_until_a_level_changes(table: Table) -> None:
    table.bus.answers["List"] = None
    with pytest.raises(NoAnswer, match="did not answer ModemManager"):
        table.poll(int(QUIET_S + PROOF_S) + 3)
    table.bus.broadcasts.append(Signal(PATH, "org.freedesktop.DBus.Properties", "PropertiesChanged", (SIGNAL, {}, [])))
    assert table.poll().changes == 1


# --- the connection ----------------------------------------------------------------------------------------------------


def test_it_connects_and_reads_the_bearer_back(table: Table) -> None:
    table.poll()
    assert table.state == "connecting"
    wanted = table.bus.asked("Connect")[0].body[0]
    assert wanted == {"apn": ("s", "internet"), "allow-roaming": ("b", False), "ip-type": ("u", 4)}
    table.bus.properties[MODEM] |= {"State": 11, "Bearers": ["/b/1"]}
    ip4 = {"method": 2, "address": "10.9.8.7", "prefix": 30, "gateway": "10.9.8.6", "dns1": "1.1.1.1", "mtu": 1430}
    given = {"Interface": "wwan0", "Ip4Config": ip4, "Ip6Config": {"method": 0}}
    real = table.bus._answer
    table.bus._answer = lambda call: given if call.path == "/b/1" else real(call)  # type: ignore[method-assign]
    table.poll(3)
    assert table.state == "connected"
    assert table.told[-1] == ("connected", "wwan0: 10.9.8.7/30")
    assert table.connection.given is not None
    assert table.connection.given.addresses[0].mtu == 1430
    assert len(table.bus.asked("Connect")) == 1


def test_a_refused_connection_is_named_and_tried_again_later_and_later(table: Table) -> None:
    table.bus.answers["Connect"] = refused(
        "ServiceOptionNotSubscribed", "org.freedesktop.ModemManager1.Error.MobileEquipment"
    )
    table.poll(2)
    assert table.told[-1] == ("not_connected", "as it says; tried again in 10 s")
    table.poll(40)
    assert len(table.bus.asked("Connect")) == 3
    assert "tried again in 40 s" in table.told[-1][1]


def test_roaming_is_refused_unless_allowed(tmp_path: Path) -> None:
    table = Table(tmp_path)
    table.bus.properties[MODEM_3GPP] = {"RegistrationState": 5, "OperatorCode": "26201"}
    table.poll(3)
    assert table.told == [("roaming_refused", "registered with 26201, which is not this SIM's own")]
    assert table.bus.asked("Connect") == []
    table.bus.properties[MODEM]["State"] = 11
    table.poll()
    assert len(table.bus.asked("Disconnect")) == 1
    allowed = Table(tmp_path, roaming=True)
    allowed.bus.properties[MODEM_3GPP] = {"RegistrationState": 5}
    allowed.poll()
    assert allowed.bus.asked("Connect")[0].body[0]["allow-roaming"] == ("b", True)


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


@pytest.mark.parametrize(
    ("text", "why"), [("12\n", "4 to 8 digits"), ("abcd", "4 to 8 digits"), ("", "4 to 8 digits"), ("é123", "4 to 8")]
)
def test_a_file_that_holds_no_pin_is_not_sent(tmp_path: Path, text: str, why: str) -> None:
    pin = Pin(tmp_path, text)
    pin.table.poll(2)
    assert pin.tries == 0
    assert why in pin.table.told[-1][1]


def test_a_pin_that_polkit_keeps_back_was_not_tried(tmp_path: Path) -> None:
    pin = Pin(tmp_path)
    pin.table.bus.answers["SendPin"] = refused("Unauthorized")
    pin.table.poll(200)
    assert pin.tries == 1, "not at every poll"
    assert pin.table.told[-1] == ("pin_unusable", "as it says; mend: install the polkit rule")
    del pin.table.bus.answers["SendPin"]
    pin.table.poll(200)
    assert (pin.tries, pin.table.state) == (2, "pin_sent")
