"""Makers' own cell commands where sources differ: which scale, which base, which order, and None where nothing decides."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.at.dialogue import Response
from tandem.at.grammar import Final, values
from tandem.modem.base import Identity, Reading
from tandem.modem.fibocom.gtccinfo import nr_sinr
from tandem.modem.registry import drivers
from tandem.modem.zte.cells import AREA_FIRST, CELL_FIRST, Cell, carrier_info, cell_info
from tandem.modem.zte.decode import levels

OK = Final("ok", "ok")


def read(family: str, *lines: str, model: str = "") -> Reading:
    return drivers()[family].decode([Response("AT", lines, OK)], Identity(family, model))


# --- Huawei ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "quantity", "value"),
    [
        ('^HCSQ:"LTE",0,0,0,0', "rssi_dbm", -121.0),
        ('^HCSQ:"LTE",96,97,251,34', "sinr_db", 30.0),
        ('^HCSQ:"LTE",96,97,251,34', "rsrq_db", -3.0),
        ('^HCSQ:"LTE",255,255,255,255', "rsrp_dbm", None),
        ('^HCSQ:"WCDMA",58,48,45', "ecno_db", -10.0),
        ('^HCSQ:"WCDMA",58,48,66', "ecno_db", None),
        ('^HCSQ:"NR",77,236,31', "rsrp_dbm", -64.0),
        ('^HCSQ:"NR",77,236,31', "sinr_db", 27.0),
        ('^HCSQ:"NR",77,236,31', "rsrq_db", None),
        ('^HCSQ:"GSM",60', "rssi_dbm", -61.0),
    ],
)
def test_bins_of_hcsq(line: str, quantity: str, value: float | None) -> None:
    assert getattr(read("huawei", line), quantity) == value


def test_both_lines_are_nsa_in_either_order_and_a_third_is_older() -> None:
    lte, nr = '^HCSQ:"LTE",62,52,151,25', '^HCSQ:"NR",54,191,30'
    for lines in ((lte, nr), (nr, lte), ('^HCSQ:"WCDMA",58,48,45', lte, nr)):
        found = read("huawei", *lines)
        assert (found.rat, found.rsrp_code, found.nr_rsrp_code, found.rscp_code) == ("NR-NSA", 52, 54, None)
    assert read("huawei", nr, lte, lte).rat == "LTE"
    assert read("huawei", lte, nr, '^HCSQ:"NOSERVICE"') == Reading(state="no_service")


def test_no_serving_cell_is_no_service_unless_the_registration_knows_better() -> None:
    assert read("huawei", "^MONSC: NONE") == Reading(state="no_service")
    assert read("huawei", "+CEREG: 2,2", "^MONSC: NONE") == Reading(state="searching")


@pytest.mark.parametrize("area", ["0", "FFFE", "FFFF", ""])
def test_no_area_is_none(area: str) -> None:
    assert read("huawei", f"^MONSC: LTE,244,91,1300,5A2C30B,D3,{area},-95,-10,-66").tac is None


def test_printed_and_coded_levels_of_different_technologies_are_not_mixed() -> None:
    found = read("huawei", '^HCSQ:"WCDMA",58,48,45', "^MONSC: LTE,244,91,1300,5A2C30B,D3,1A2B,-95,-10,-66")
    assert (found.rat, found.rsrp_dbm, found.rssi_code, found.rscp_code) == ("LTE", -95.0, None, None)


# --- ZTE and MikroTik ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "order", "known", "cell"),
    [
        ("94552843,211,LTE B3,1300", CELL_FIRST, None, Cell(None, 94552843, 211, 3, 1300)),
        ("6699,94552843,211,LTE B3,1300", AREA_FIRST, None, Cell(6699, 94552843, 211, 3, 1300)),
        ("94552843,211,LTE B3,1300", None, None, Cell(None, 94552843, 211, 3, 1300)),
        ("6699,94552843,211,LTE B3,1300", None, None, Cell(6699, 94552843, 211, 3, 1300)),
        ("tac:6699,cellid:94552843,pci:211,band:3", AREA_FIRST, None, Cell(6699, 94552843, 211, 3)),
        ("300,211,LTE B3,1300", None, None, Cell(None, None, None, 3, 1300)),
        ("0XFFFE,0XFFFFFFFF,0X00000000,LTE B3,1600", None, None, Cell(None, None, None, 3, 1600)),
        ("300,211,LTE B3,1300", None, 300, Cell(None, 300, 211, 3, 1300)),
        ("94552843,211,LTE B3,1300", AREA_FIRST, None, Cell()),
        ("6699,94552843,211,LTE B3,1300", CELL_FIRST, None, Cell()),
        ("0XFFFE,0XFFFFFFFF,0X00000000,LTE B3,1600", AREA_FIRST, None, Cell(None, None, None, 3, 1600)),
        ("0XFFFE,0XFFFFFFFF,PGSM_900", AREA_FIRST, None, Cell()),
        ("", None, None, Cell()),
    ],
)
def test_the_order_of_zcellinfo(line: str, order: str | None, known: int | None, cell: Cell) -> None:
    assert cell_info(values(f"+ZCELLINFO: {line}"), order, known) == cell


@pytest.mark.parametrize(
    ("line", "cell"),
    [
        ("299,7,17758,2850,10;341,1,3,1802,20", Cell(17758, None, 299, 7, 2850, 10.0)),
        ("0,20,17758,6300,1", Cell(17758, None, 0, 20, 6300, 1.4)),
        ("0,0,0,0,0;", Cell()),
        ("299,7", Cell()),
    ],
)
def test_the_primary_carrier_of_zcainfo(line: str, cell: Cell) -> None:
    assert carrier_info(values(f"+ZCAINFO: {line}")) == cell


@pytest.mark.parametrize(
    ("row", "technology", "expected"),
    [
        ("-102,-6.5,-76,19", None, Reading(rat="LTE", rsrp_dbm=-102.0, rsrq_db=-6.5, rssi_dbm=-76.0, sinr_db=19.0)),
        ("76,14,170", None, Reading(rat="WCDMA", rssi_dbm=-76.0, ecno_db=-7.0, rscp_dbm=-85.0)),
        ("76,1000,1000", None, Reading(rat="WCDMA", rssi_dbm=-76.0)),
        ("-81,-9.0", "WCDMA", Reading(rat="WCDMA", rscp_dbm=-81.0, ecno_db=-9.0)),
        ("72", None, Reading(rat="GSM", rssi_dbm=-72.0)),
        ("76,14,170", "LTE", Reading()),
        ("0,0,0,0", None, Reading()),
        ("1000,1000,1000", None, Reading()),
        ("", None, Reading()),
    ],
)
def test_zrssi_is_read_by_how_many_values_it_has(row: str, technology: str | None, expected: Reading) -> None:
    assert levels(values(f"+ZRSSI: {row}"), technology) == expected


# --- BroadMobi -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "sinr", "code"),
    [("12", 12.0, 12), ("-5", -5.0, -5), ("30", 30.0, 30), ("135", 7.0, 135), ("250", 30.0, 250), ("251", None, None)],
)
def test_sinr_of_broadmobi_is_decibels_unless_it_cannot_be(text: str, sinr: float | None, code: int | None) -> None:
    found = read("broadmobi", f"+BMTCELLINFO: RSRP:-95,SINR:{text}")
    assert (found.sinr_db, found.sinr_code) == (sinr, code)


def test_units_and_spellings_of_broadmobi() -> None:
    found = read("broadmobi", "+BMTCELLINFO:", "RSSI: 65 dBm", "RSRP: -95dBm", "ACTVIE_BAND: 3", "EARFCN DL: 1300")
    assert (found.rssi_dbm, found.rsrp_dbm, found.band, found.earfcn) == (-65.0, -95.0, 3, 1300)


# --- Fibocom ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("printed", "judge", "sinr"),
    [
        (16, 15.0, 16.0),
        (91, 22.0, 22.0),
        (91, None, 22.0),
        (-4, None, -4.0),
        (16, None, None),
        (16, -15.0, -15.5),
        (60, -20.0, -20.0),
        (None, 7.5, 7.5),
        (None, None, None),
    ],
)
def test_sinr_of_nr_by_cesq_or_by_what_it_can_be(printed: int | None, judge: float | None, sinr: float | None) -> None:
    assert nr_sinr(printed, judge) == sinr


def test_neighbours_of_gtccinfo_are_no_serving_cell() -> None:
    assert read("fibocom", "+GTCCINFO:", "2,4,,,FFFF,00FFFFFFF,9460,71,,43,43,10", model="FM350-GL") == Reading()
    assert (
        read("fibocom", "+GTCCINFO:", "2,4,262,2,1A2B,0012345AB,100,42,101,50,7,29,29,4", model="FM350-GL") == Reading()
    )


@pytest.mark.parametrize(("model", "pci"), [("FM350-GL", 116), ("FM150-AE", 0x116), ("", 116)])
def test_the_base_of_a_pci_in_gtccinfo_is_the_models(model: str, pci: int) -> None:
    row = "1,4,250,1,91DC,00111EE03,3250,116,107,100,14,47,47,22"
    assert read("fibocom", "+GTCCINFO:", row, model=model).pci == pci


def test_an_index_of_bandwidth_beside_a_plain_band() -> None:
    found = read("fibocom", "+GTCCINFO:", "1,4,250,1,91DC,00111EE03,3250,116,7,5,14,47,47,22", model="FM350-GL")
    assert (found.band, found.bandwidth_mhz) == (7, 20.0)


@pytest.mark.parametrize(
    ("model", "heading", "printed", "width"),
    [
        ("FM350-GL", "", 75, 15.0),
        ("FM350-GL", "", 100, 20.0),
        ("FM160-CN", "", 100, 100.0),
        ("", "NR service cell:", 100, 100.0),
        ("", "", 500, 100.0),
        ("", "", 100, None),
        ("", "", 90, 90.0),
        ("FM350-GL", "", 7, None),
    ],
)
def test_the_unit_of_nr_bandwidth_in_gtccinfo(model: str, heading: str, printed: int, width: float | None) -> None:
    row = f"1,9,460,01,DE10,0CD7C80121,99240,2,5078,{printed},60,70,70,65"
    lines = [line for line in ("+GTCCINFO:", heading, row) if line]
    assert read("fibocom", *lines, model=model).bandwidth_mhz == width


def test_rows_with_the_prefix_before_each() -> None:
    row = "+GTCCINFO: 1,4,250,1,91DC,00111EE03,3250,116,107,100,14,47,47,22"
    assert read("fibocom", row, model="FM350-GL").eci == 0x111EE03


@pytest.mark.parametrize(
    ("line", "rat", "quantity", "value"),
    [
        ("+XCESQ: 0,99,99,255,255,24,62,34,255,255,255,255", "LTE", "sinr_db", 17.0),
        ("+XCESQ: 1,99,99,255,255,7,21,-9", "LTE", "sinr_db", -4.5),
        ("+XCESQ: 0,99,99,46,31,255,255,255", "WCDMA", "rscp_dbm", -75.0),
        ("+XCESQ: 0,40,99,255,255,255,255,255", "GSM", "rssi_dbm", -71.0),
        ("+XCESQ: 0,99,99,255,255,255,255,255", None, "rsrp_dbm", None),
    ],
)
def test_xcesq_alone(line: str, rat: str | None, quantity: str, value: float | None) -> None:
    found = read("fibocom", line)
    assert (found.rat, getattr(found, quantity)) == (rat, value)


def test_xlec_alone_is_of_lte_unless_it_has_no_cells() -> None:
    found = read("fibocom", "+XLEC: 0,2,3,5,BAND_LTE_18,0,0,0,0")
    assert (found.rat, found.band, found.bandwidth_mhz) == ("LTE", 18, 10.0)
    assert read("fibocom", "+XLEC: 0,0") == Reading()
    assert read("fibocom", '+XMCI: 2,220,03,"0x1F41","0x00C80BC9"', "+XLEC: 0,1,3,BAND_LTE_3").rat == "WCDMA"


# --- Cinterion, Option -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "state"),
    [
        ("^SMONI: 3G,SEARCH,SEARCH", "searching"),
        ("^SMONI: 3G,10564,96,-7.5,-79,262,02,0143,00228FF,-92,-78,LIMSRV", "limited"),
        ("^SMONI: 2G,673,-80,262,07,4EED,A500,35,35,7,4,G,643,4,0,-80,0,S_FR", "connected"),
        ("^SMONI: 4G,6300,20,10,10,FDD,262,02,BF75,0345103,350,33,-94,-7", "unknown"),
    ],
)
def test_states_of_smoni(line: str, state: str) -> None:
    assert read("cinterion", line).state == state


@pytest.mark.parametrize(
    ("lines", "rat", "rssi"),
    [
        (("_OSIGQ: 12,0",), None, -89.0),
        (("_OSIGQ: 99,0",), None, None),
        (("+CSQ: 20,99", "_OSIGQ: 12,0"), None, -73.0),
        (("_OWCTI: 4",), "WCDMA", None),
        (("_OWCTI: 0", "_OCTI: 2"), "GSM", None),
        (("_OWCTI: 0", "_OCTI: 0"), None, None),
    ],
)
def test_options_own_commands(lines: tuple[str, ...], rat: str | None, rssi: float | None) -> None:
    found = read("option", *lines)
    assert (found.rat, found.rssi_dbm) == (rat, rssi)


# --- all -------------------------------------------------------------------------------------------------------------

_VALUE = st.one_of(
    st.integers(-2000, 2**36).map(str), st.sampled_from(["", "-", "FFFF", "0xFFFFFFFF", "LTE", "NR", "4G", "1,9"])
)
_NAMES = ("^HCSQ", "^MONSC", "+ZRSSI", "+ZCELLINFO", "+ZCAINFO", "+ZPAS", "+BMTCELLINFO", "+XMCI", "+XCESQ", "+XLEC",
          "+GTCCINFO", "^HFREQINFO", "%XMONITOR", "+EEMLTESVC", "+CCED", "+SQNMONI",
          "^SMONI", "_OWCTI", "_OSIGQ", "RAT", "lte_rsrp")  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from(_NAMES), st.lists(_VALUE, max_size=16)), max_size=4))
def test_any_values_give_quantities_of_one_technology(rows: list[tuple[str, list[str]]]) -> None:
    lines = [f"{name}: {','.join(row)}" for name, row in rows]
    for family in ("huawei", "zte", "mikrotik", "broadmobi", "fibocom", "cinterion", "foxconn", "chipset", "option"):
        found = read(family, *lines)
        if found.rat in ("GSM", "WCDMA"):
            assert (found.rsrp_dbm, found.eci, found.tac, found.nr_rsrp_dbm) == (None,) * 4
        if found.rat not in ("WCDMA", None):
            assert (found.rscp_dbm, found.ecno_db) == (None, None)
        if found.rat != "NR-NSA":
            assert (found.nr_rsrp_dbm, found.nr_pci) == (None, None)
