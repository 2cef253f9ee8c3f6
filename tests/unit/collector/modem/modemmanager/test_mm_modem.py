"""The modem that ModemManager holds, on a bus that is a table: found by device, set up, lost, dead; its dictionaries as readings."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.fake_bus import DEVICE, PATH, FakeBus, refused
from support.scripted_modem import Collected, polling
from tandem.at.dialogue import NoAnswer, PortLost
from tandem.modem.base import RATS, Reading
from tandem.modem.mm_bus import LOCATION, MODEM, MODEM_3GPP, SIGNAL, Call, plain
from tandem.modem.mm_modem import AGAIN_S, QUIET_S, ManagedModem, ModemProperties, decode, place
from tandem.modem.mm_poller import Connection, ConnectionSettings, ManagedPoller
from tandem.modem.poll import Poll, in_range
from tandem.schema.metrics import RADIO_STATES


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
        return self.bus

    def connected(self) -> Connection:
        """A connection that remembers nothing but what is on disk."""
        return Connection(
            self.settings, self.modem, lambda state, detail: self.told.append((state, detail)), lambda: self.now_s
        )

    def poll(self, times: int = 1) -> Any:
        for _ in range(times):
            self.now_s += 1
            answer = self.modem.poll(0.0)  # what the bus does not answer at once, it never does
            self.connection.update(answer.path, answer.properties)
        return answer

    @property
    def state(self) -> str | None:
        return self.connection.state


# --- the modem that ModemManager holds: found by device, set up, lost, dead. On a bus that is a table


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path)


def test_what_is_not_set_up_is_set_up_until_it_is(table):
    table.bus.properties[SIGNAL]["Rate"] = 0
    table.bus.properties[LOCATION] = {"Enabled": 2, "SignalsLocation": True}
    table.poll()
    assert [call.body for call in table.bus.asked("Setup")] == [(1,), (3, True)], (
        "what others enabled of the location stays"
    )
    table.bus.properties[SIGNAL]["Rate"], table.bus.properties[LOCATION]["Enabled"] = 1, 3
    table.poll(3)
    assert len(table.bus.asked("Setup")) == 2


def test_what_was_refused_is_asked_again_but_not_at_every_poll(table):
    table.bus.properties[SIGNAL]["Rate"] = 0
    table.bus.answers["Setup"] = refused("Unauthorized")
    table.poll(int(AGAIN_S) + 3)
    assert len(table.bus.asked("Setup")) == 2
    assert len(table.bus.asked("GetCellInfo")) == 1, "not supported is for good"


def test_a_disabled_modem_is_enabled_once_and_not_measured(table):
    table.bus.properties[MODEM]["State"] = 3
    table.bus.answers["Enable"] = None
    table.poll(3)
    assert [call.body for call in table.bus.asked("Enable")] == [(True,)]
    assert table.bus.asked("GetLocation") == []


def test_levels_that_stand_still_are_proved_by_asking_the_modem_itself_and_no_reply_is_no_answer(table):
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
    table.bus.answers["GetAll"] = None
    with pytest.raises(NoAnswer, match="no reply in time"):
        table.poll()


# --- the poller's thread at ModemManager: what a bearer was given is told; a connection is kept up where another poller measures

BEARER = {
    "Interface": "wwan0",
    "Ip4Config": {"method": 2, "address": "10.9.8.7", "prefix": 30, "gateway": "10.9.8.6"},
    "Ip6Config": {"method": 0},
}


class ConnectedBus(FakeBus):
    def __init__(self) -> None:
        super().__init__()
        self.properties[MODEM] |= {"State": 11, "Bearers": ["/b/1"]}

    def _answer(self, call: Call) -> Any:
        return BEARER if call.path == "/b/1" else super()._answer(call)


def test_what_a_bearer_was_given_is_told_and_that_it_was_taken(tmp_path):
    bus, told, settings = ConnectedBus(), Collected(), ConnectionSettings("internet", tmp_path)
    poller = ManagedPoller("a", None, DEVICE, 0.2, lambda _: None, settings, open_bus=lambda _: bus, on_given=told.add)
    with polling(poller):
        given = told.wait(lambda made: made and made[-1] is not None)[-1]
        bus.properties[MODEM] |= {"State": 8, "Bearers": []}
        told.wait(lambda made: made[-1] is None)
    assert (given.interface, given.addresses[0].address, given.addresses[0].method) == ("wwan0", "10.9.8.7", "static")


def test_a_connection_is_kept_up_without_asking_for_what_the_modem_itself_is_asked_for(tmp_path):
    bus, polls, settings = FakeBus(), Collected(), ConnectionSettings("web.example", tmp_path)
    bus.properties[MODEM]["State"] = 3  # disabled: also to be switched on

    def made(poll: Poll) -> None:
        bus.properties[MODEM]["State"] = 8
        polls.add(poll)

    keeper = ManagedPoller("a", None, DEVICE, 0.05, made, settings, open_bus=lambda _: bus, measuring=False)
    with polling(keeper):
        polls.wait(lambda made: bus.asked("Connect") and len(made) > 5)
    assert {poll.failure for poll in polls.made} == {None}
    assert {call.body[0] for call in bus.asked("GetAll") if call.path == PATH} == {MODEM, MODEM_3GPP}
    assert {call.member for call in bus.calls} == {"GetManagedObjects", "GetAll", "Enable", "Connect"}
    assert bus.asked("Connect")[0].body[0]["apn"] == ("s", "web.example")


# --- the connection through ModemManager on a bus that is a table: PIN once, roaming policy, reasons, the bearer read back


def test_a_refused_connection_is_named_and_tried_again_later_and_later(table):
    table.bus.answers["Connect"] = refused(
        "ServiceOptionNotSubscribed", "org.freedesktop.ModemManager1.Error.MobileEquipment"
    )
    table.poll(2)
    assert table.told[-1] == ("not_connected", "as it says; tried again in 10 s")
    table.poll(40)
    assert len(table.bus.asked("Connect")) == 3
    assert "tried again in 40 s" in table.told[-1][1]


def test_where_roaming_is_refused_a_connection_is_ended_and_where_it_is_allowed_made(tmp_path):
    table, allowed = Table(tmp_path), Table(tmp_path, roaming=True)
    for one in (table, allowed):
        one.bus.properties[MODEM_3GPP] = {"RegistrationState": 5, "OperatorCode": "26201"}
    table.bus.properties[MODEM]["State"] = 11
    table.poll()
    assert (len(table.bus.asked("Disconnect")), table.bus.asked("Connect")) == (1, [])
    allowed.poll()
    wanted = {"apn": ("s", "internet"), "allow-roaming": ("b", True), "ip-type": ("u", 4)}
    assert allowed.bus.asked("Connect")[0].body[0] == wanted


def test_what_keeps_it_from_connecting_has_a_name(tmp_path):
    for properties, registration, state in (
        ({"State": 8}, {"RegistrationState": 3}, "registration_denied"),
        ({"State": 7}, {"RegistrationState": 2}, "searching"),
        ({"State": -1, "StateFailedReason": 2}, {}, "sim_unusable"),
        ({"State": 2, "UnlockRequired": 4}, {}, "puk_needed"),
        ({"State": 2, "UnlockRequired": 2}, {}, "pin_needed"),
    ):
        table = Table(tmp_path)
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


def test_a_wrong_pin_is_tried_once_whatever_happens(tmp_path):
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


def test_a_collector_that_dies_after_sending_does_not_send_again(tmp_path):
    pin = Pin(tmp_path)
    pin.table.bus.answers["SendPin"] = None
    pin.table.poll(2)
    pin.restart()
    pin.table.poll(5)
    assert (pin.tries, pin.table.state) == (1, "pin_refused")


def test_the_right_pin_is_forgotten_when_the_card_is_open_and_sent_again_after_the_next_power_up(tmp_path):
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


def test_a_file_that_holds_no_pin_is_not_sent(tmp_path):
    for text in ("12\n", "abcd", "", "é123"):
        pin = Pin(tmp_path, text)
        pin.table.poll(2)
        assert pin.tries == 0
        assert "4 to 8" in pin.table.told[-1][1]


def test_a_pin_that_polkit_keeps_back_was_not_tried(tmp_path):
    pin = Pin(tmp_path)
    pin.table.bus.answers["SendPin"] = refused("Unauthorized")
    pin.table.poll(200)
    assert pin.tries == 1, "not at every poll"
    assert pin.table.told[-1] == ("pin_unusable", "as it says; hint: install the polkit rule")
    del pin.table.bus.answers["SendPin"]
    pin.table.poll(200)
    assert (pin.tries, pin.table.state) == (2, "pin_sent")


def test_it_is_found_by_its_device_never_by_its_number():
    for device in ("1-1.2", DEVICE):
        modem = ManagedModem(device, lambda: FakeBus())
        assert modem.poll(0.0).path == PATH
        assert modem.identity.model == "EM7455"
    with pytest.raises(PortLost, match="ModemManager has no modem"):
        ManagedModem("1-1", lambda: FakeBus()).poll(0.0)


# --- modemManager's dictionaries → readings


UNKNOWN = -sys.float_info.max
HOME = {"RegistrationState": 1, "OperatorCode": "24405"}


def told(bits: int, signal: dict[str, Any], location: str = "244,05,0,1902E01,1A2B", **more: Any) -> ModemProperties:
    return ModemProperties({"State": 8, "AccessTechnologies": bits}, HOME, signal, {1: location}, **more)


def some(reading: Reading) -> dict[str, Any]:
    found = {**reading.as_fields(), "rat": reading.rat}
    return {k: v for k, v in found.items() if v is not None and k not in ("state", "plmn", "enb_id", "sector_id")}


CELL = {"tac": 0x1A2B, "eci": 0x1902E01}


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        (
            told(1 << 14, {"Lte": {"rsrp": -97.0, "rsrq": -10.0, "snr": 11.4, "rssi": -67.0}}),
            {"rat": "LTE", "rsrp_dbm": -97.0, "rsrq_db": -10.0, "sinr_db": 11.4, "rssi_dbm": -67.0, **CELL},
        ),
        (told(1 << 14, {"Lte": {"rsrp": UNKNOWN, "rsrq": -32768.0, "snr": float("nan")}}), {"rat": "LTE", **CELL}),
        (
            told(3 << 14, {"Lte": {"rsrp": -97.0}, "Nr5g": {"rsrp": -88.0, "rsrq": -11.0, "snr": 20.0}}),
            {"rat": "NR-NSA", "rsrp_dbm": -97.0, "nr_rsrp_dbm": -88.0, "nr_rsrq_db": -11.0, "nr_sinr_db": 20.0, **CELL},
        ),
        (
            told(1 << 15, {"Nr5g": {"rsrp": -88.0, "rsrq": -11.0, "snr": 20.0}}, "244,05,0,123456789,1A2B"),
            {"rat": "NR-SA", "rsrp_dbm": -88.0, "rsrq_db": -11.0, "sinr_db": 20.0, "tac": 0x1A2B, "eci": 0x123456789},
        ),
        (
            told(1 << 5 | 1 << 9, {"Umts": {"rssi": -70.0, "rscp": -80.0, "ecio": -6.5}}, "244,05,1F4,ABC1234,0"),
            {"rat": "WCDMA", "rssi_dbm": -70.0, "rscp_dbm": -80.0, "ecno_db": -6.5, "lac": 500, "ci": 0xABC1234},
        ),
        (told(1 << 4, {"Gsm": {"rssi": -71.0}}, "244,05,1F4,51A2,0"), {"rat": "GSM", "rssi_dbm": -71.0, "lac": 500, "ci": 0x51A2}),
        (told(1 << 16, {"Lte": {"rsrp": -110.0}}), {"rat": "CAT-M", "rsrp_dbm": -110.0, **CELL}),
        (
            told(
                1 << 14,
                {"Lte": {"rsrp": -97.0}},
                cells=[
                    {"cell-type": 5, "serving": False, "physical-ci": "99", "ci": "1"},
                    {"cell-type": 5, "serving": True, "physical-ci": "36", "earfcn": 1300, "ci": "1902E02", "tac": "1A2C", "rsrq": -9.5},
                ],
            ),
            {"rat": "LTE", "rsrp_dbm": -97.0, "rsrq_db": -9.5, "tac": 0x1A2C, "eci": 0x1902E02, "pci": 54, "earfcn": 1300},
        ),
    ],
    ids=["lte", "unknown", "nsa", "sa", "umts", "gsm", "cat-m", "cell-info"],
)  # fmt: skip
def test_what_each_technology_gives(given_, expected):
    reading = decode(given_)
    assert some(reading) == expected
    assert reading.plmn == "24405"
    assert in_range(reading) == (reading, ())


def test_states_are_those_of_the_at_back_end():
    states = {
        (8, 1): "unknown",
        (11, 5): "unknown",
        (7, 2): "searching",
        (6, 0): "no_service",
        (6, 3): "limited",
        (7, None): "searching",
        (2, None): "no_service",
        (-1, None): "no_service",
        (11, 8): "limited",
    }
    for (state, registration), expected in states.items():
        registered = {} if registration is None else {"RegistrationState": registration}
        assert decode(ModemProperties({"State": state}, registered)).state == expected


def test_a_place_without_an_area_has_none():
    assert place("001,01,FFFE,0,0") == Reading(plmn="00101")
    assert place("310,410,0,FFFFFFF,FFFF") == Reading(plmn="310410")
    assert place("nonsense") == place(None) == place("1,2,3") == Reading()


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
NAMES = ["rsrp", "rsrq", "snr", "rssi", "rscp", "ecio", "ci", "nci", "tac", "lac", "physical-ci", "earfcn", "serving"]
TABLE = st.dictionaries(
    st.sampled_from([*NAMES, "cell-type"]), ANYTHING | st.sampled_from([True, 5, "1902E01", -97.0]), max_size=6
)
OF_SIGNAL = st.dictionaries(st.sampled_from(("Lte", "Nr5g", "Umts", "Gsm")), TABLE | ANYTHING, max_size=4)
WHERE = st.tuples(*[st.text("0123456789ABCDEFx,-", max_size=7)] * 5).map(",".join) | ANYTHING


@given(
    ANYTHING | st.integers(0, 2**32),
    ANYTHING | st.integers(-2, 12),
    ANYTHING,
    OF_SIGNAL,
    WHERE,
    st.lists(TABLE, max_size=3),
)
def test_anything_is_a_reading_within_the_schema(bits, state, registered, signal, where, cells):
    modem = {"AccessTechnologies": bits, "State": state}
    reading = decode(
        ModemProperties(modem, {"RegistrationState": registered, "OperatorCode": registered}, signal, {1: where}, cells)
    )
    assert reading.rat in (None, *RATS)
    record = Poll("a", None, "modemmanager", None, 0, 0, 1, in_range(reading)[0], None).record()
    assert record.fields["state"] in RADIO_STATES


def test_variants_are_opened_wherever_they_are():
    assert plain("v", ("a{sv}", {"rsrp": ("d", -97.0)})) == {"rsrp": -97.0}
    assert plain("aa{sv}", [{"ci": ("s", "1A")}]) == [{"ci": "1A"}]
    assert plain("a{oa{sa{sv}}}", {"/m": {"i": {"Ports": ("a(su)", [("ttyUSB2", 3)])}}}) == {
        "/m": {"i": {"Ports": [("ttyUSB2", 3)]}}
    }
    assert plain("a{uv}", {1: ("s", "001,01,0,1,2")}) == {1: "001,01,0,1,2"}
