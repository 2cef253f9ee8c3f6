"""ModemManager's dictionaries → readings."""

import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.modem.base import RATS, Reading
from tandem.modem.mm_bus import plain
from tandem.modem.mm_modem import ModemProperties, decode, place, technology
from tandem.modem.poll import Poll, in_range
from tandem.schema.metrics import RADIO_STATES

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
def test_what_each_technology_gives(given_: ModemProperties, expected: dict[str, Any]) -> None:
    reading = decode(given_)
    assert some(reading) == expected
    assert reading.plmn == "24405"
    assert in_range(reading) == (reading, ())


@pytest.mark.parametrize(
    ("state", "registration", "expected"),
    [
        (8, 1, "unknown"), (11, 5, "unknown"), (7, 2, "searching"), (6, 0, "no_service"), (6, 3, "limited"), (7, None, "searching"),
        (2, None, "no_service"), (-1, None, "no_service"), (3, 4, "no_service"), (11, 8, "limited"),
    ],
)  # fmt: skip
def test_states_are_those_of_the_at_back_end(state: int, registration: int | None, expected: str) -> None:
    registered = {} if registration is None else {"RegistrationState": registration}
    assert decode(ModemProperties({"State": state}, registered)).state == expected


def test_a_place_without_an_area_has_none() -> None:
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
    ANYTHING | st.integers(0, 2**18),
    ANYTHING | st.integers(-2, 12),
    ANYTHING,
    OF_SIGNAL,
    WHERE,
    st.lists(TABLE, max_size=3),
)
def test_anything_is_a_reading_within_the_schema(
    bits: Any, state: Any, registered: Any, signal: Any, where: Any, cells: Any
) -> None:
    modem = {"AccessTechnologies": bits, "State": state}
    reading = decode(
        ModemProperties(modem, {"RegistrationState": registered, "OperatorCode": registered}, signal, {1: where}, cells)
    )
    assert reading.rat in (None, *RATS)
    record = Poll("a", None, "modemmanager", None, 0, 0, 1, in_range(reading)[0], None).record()
    assert record.fields["state"] in RADIO_STATES


@given(st.integers(0, 2**32))
def test_every_combination_of_technologies_is_one_or_none(bits: int) -> None:
    assert technology(bits) in (None, *RATS)


def test_variants_are_opened_wherever_they_are() -> None:
    assert plain("v", ("a{sv}", {"rsrp": ("d", -97.0)})) == {"rsrp": -97.0}
    assert plain("aa{sv}", [{"ci": ("s", "1A")}]) == [{"ci": "1A"}]
    assert plain("a{oa{sa{sv}}}", {"/m": {"i": {"Ports": ("a(su)", [("ttyUSB2", 3)])}}}) == {
        "/m": {"i": {"Ports": [("ttyUSB2", 3)]}}
    }
    assert plain("a{uv}", {1: ("s", "001,01,0,1,2")}) == {1: "001,01,0,1,2"}
