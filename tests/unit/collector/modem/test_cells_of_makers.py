"""Makers' own cell commands where sources differ: which scale, which base, which order, and None where nothing decides."""

from collections.abc import Iterable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tandem.at.dialogue import Response
from tandem.at.grammar import Final, values
from tandem.modem.base import Identity, Reading
from tandem.modem.families import drivers
from tandem.modem.families.fibocom import nr_sinr
from tandem.modem.families.zte import AREA_FIRST, CELL_FIRST, carrier_info, cell_info, levels

OK = Final("ok", "ok")


def read(family: str, *lines: str, model: str = "") -> Reading:
    return drivers()[family].decode([Response("AT", lines, OK)], Identity(family, model))


def wrong(cases: Iterable[tuple[str, str, dict[str, Any]]], model: str = "") -> list[tuple[object, ...]]:
    """Of cases (family, lines parted by ``|``, fields): those whose reading has another value, with what it has."""
    told = [(family, text, fields, read(family, *text.split("|"), model=model)) for family, text, fields in cases]
    return [(*one, found) for *one, found in told if any(getattr(found, k) != v for k, v in one[2].items())]


# --- makers' lines alone: family, lines, fields -----------------------------------------------------------------------

LTE_WCDMA = '^HCSQ:"WCDMA",58,48,45|^MONSC: LTE,244,91,1300,5A2C30B,D3,1A2B,-95,-10,-66'
BROADMOBI = "+BMTCELLINFO:|RSSI: 65 dBm|RSRP: -95dBm|ACTVIE_BAND: 3|EARFCN DL: 1300"
LINES: list[tuple[str, str, dict[str, Any]]] = [
    ("huawei", '^HCSQ:"LTE",0,0,0,0', {"rssi_dbm": -121.0}),
    ("huawei", '^HCSQ:"LTE",96,97,251,34', {"sinr_db": 30.0, "rsrq_db": -3.0}),
    ("huawei", '^HCSQ:"WCDMA",58,48,45', {"ecno_db": -10.0}),
    ("huawei", '^HCSQ:"WCDMA",58,48,66', {"ecno_db": None}),
    ("huawei", '^HCSQ:"NR",77,236,31', {"rsrp_dbm": -64.0, "sinr_db": 27.0, "rsrq_db": None}),
    ("huawei", '^HCSQ:"GSM",60', {"rssi_dbm": -61.0}),
    # no serving cell is no service unless the registration knows better
    ("huawei", "^MONSC: NONE", {"state": "no_service"}),
    ("huawei", "+CEREG: 2,2|^MONSC: NONE", {"state": "searching"}),
    *(
        ("huawei", f"^MONSC: LTE,244,91,1300,5A2C30B,D3,{a},-95,-10,-66", {"tac": None})
        for a in ("0", "FFFE", "FFFF", "")
    ),
    # printed and coded levels of different technologies are not mixed
    ("huawei", LTE_WCDMA, {"rat": "LTE", "rsrp_dbm": -95.0, "rssi_code": None, "rscp_code": None}),
    # SINR of BroadMobi is decibels unless it cannot be
    *(
        ("broadmobi", f"+BMTCELLINFO: RSRP:-95,SINR:{text}", {"sinr_db": sinr, "sinr_code": code})
        for text, sinr, code in (("-5", -5.0, -5), ("135", 7.0, 135), ("250", 30.0, 250), ("251", None, None))
    ),
    ("broadmobi", BROADMOBI, {"rssi_dbm": -65.0, "rsrp_dbm": -95.0, "band": 3, "earfcn": 1300}),
    ("fibocom", "+XCESQ: 0,99,99,255,255,24,62,34,255,255,255,255", {"rat": "LTE", "sinr_db": 17.0}),
    ("fibocom", "+XCESQ: 1,99,99,255,255,7,21,-9", {"rat": "LTE", "sinr_db": -4.5}),
    ("fibocom", "+XCESQ: 0,99,99,46,31,255,255,255", {"rat": "WCDMA", "rscp_dbm": -75.0}),
    ("fibocom", "+XCESQ: 0,99,99,255,255,255,255,255", {"rat": None, "rsrp_dbm": None}),
    # of LTE unless it has no cells
    ("fibocom", "+XLEC: 0,2,3,5,BAND_LTE_18,0,0,0,0", {"rat": "LTE", "band": 18, "bandwidth_mhz": 10.0}),
    ("fibocom", '+XMCI: 2,220,03,"0x1F41","0x00C80BC9"|+XLEC: 0,1,3,BAND_LTE_3', {"rat": "WCDMA"}),
    ("cinterion", "^SMONI: 3G,SEARCH,SEARCH", {"state": "searching"}),
    ("cinterion", "^SMONI: 2G,673,-80,262,07,4EED,A500,35,35,7,4,G,643,4,0,-80,0,S_FR", {"state": "connected"}),
    ("cinterion", "^SMONI: 4G,6300,20,10,10,FDD,262,02,BF75,0345103,350,33,-94,-7", {"state": "unknown"}),
    ("option", "_OSIGQ: 12,0", {"rat": None, "rssi_dbm": -89.0}),
    ("option", "+CSQ: 20,99|_OSIGQ: 12,0", {"rssi_dbm": -73.0}),
    ("option", "_OWCTI: 4", {"rat": "WCDMA", "rssi_dbm": None}),
    ("option", "_OWCTI: 0|_OCTI: 2", {"rat": "GSM"}),
]


def test_makers_lines_alone():
    assert wrong(LINES) == []


def test_both_lines_of_hcsq_are_nsa_in_either_order_and_a_third_is_older():
    lte, nr = '^HCSQ:"LTE",62,52,151,25', '^HCSQ:"NR",54,191,30'
    for lines in ((lte, nr), (nr, lte), ('^HCSQ:"WCDMA",58,48,45', lte, nr)):
        found = read("huawei", *lines)
        assert (found.rat, found.rsrp_code, found.nr_rsrp_code, found.rscp_code) == ("NR-NSA", 52, 54, None)
    assert read("huawei", nr, lte, lte).rat == "LTE"
    assert read("huawei", lte, nr, '^HCSQ:"NOSERVICE"') == Reading(state="no_service")


# --- ZTE and MikroTik ------------------------------------------------------------------------------------------------

CELLS = [
    ("94552843,211,LTE B3,1300", CELL_FIRST, None, Reading(eci=94552843, pci=211, band=3, earfcn=1300)),
    ("6699,94552843,211,LTE B3,1300", AREA_FIRST, None, Reading(tac=6699, eci=94552843, pci=211, band=3, earfcn=1300)),
    ("94552843,211,LTE B3,1300", None, None, Reading(eci=94552843, pci=211, band=3, earfcn=1300)),
    ("6699,94552843,211,LTE B3,1300", None, None, Reading(tac=6699, eci=94552843, pci=211, band=3, earfcn=1300)),
    ("tac:6699,cellid:94552843,pci:211,band:3", AREA_FIRST, None, Reading(tac=6699, eci=94552843, pci=211, band=3)),
    ("300,211,LTE B3,1300", None, None, Reading(band=3, earfcn=1300)),
    ("0XFFFE,0XFFFFFFFF,0X00000000,LTE B3,1600", None, None, Reading(band=3, earfcn=1600)),
    ("300,211,LTE B3,1300", None, 300, Reading(eci=300, pci=211, band=3, earfcn=1300)),
    ("94552843,211,LTE B3,1300", AREA_FIRST, None, Reading()),
    ("6699,94552843,211,LTE B3,1300", CELL_FIRST, None, Reading()),
    ("0XFFFE,0XFFFFFFFF,0X00000000,LTE B3,1600", AREA_FIRST, None, Reading(band=3, earfcn=1600)),
    ("0XFFFE,0XFFFFFFFF,PGSM_900", AREA_FIRST, None, Reading()),
    ("", None, None, Reading()),
]
CARRIERS = [
    ("299,7,17758,2850,10;341,1,3,1802,20", Reading(tac=17758, pci=299, band=7, earfcn=2850, bandwidth_mhz=10.0)),
    ("0,20,17758,6300,1", Reading(tac=17758, pci=0, band=20, earfcn=6300, bandwidth_mhz=1.4)),
    ("0,0,0,0,0;", Reading()),
    ("299,7", Reading()),
]
LEVELS = [
    ("-102,-6.5,-76,19", None, Reading(rat="LTE", rsrp_dbm=-102.0, rsrq_db=-6.5, rssi_dbm=-76.0, sinr_db=19.0)),
    ("76,14,170", None, Reading(rat="WCDMA", rssi_dbm=-76.0, ecno_db=-7.0, rscp_dbm=-85.0)),
    ("76,1000,1000", None, Reading(rat="WCDMA", rssi_dbm=-76.0)),
    ("-81,-9.0", "WCDMA", Reading(rat="WCDMA", rscp_dbm=-81.0, ecno_db=-9.0)),
    ("72", None, Reading(rat="GSM", rssi_dbm=-72.0)),
    *(
        (row, technology, Reading())
        for row, technology in (("76,14,170", "LTE"), ("0,0,0,0", None), ("1000,1000,1000", None), ("", None))
    ),
]


def test_the_order_of_zcellinfo_the_primary_carrier_and_zrssi_by_how_many_values_it_has():
    assert [
        (line, order, known, cell_info(values(f"+ZCELLINFO: {line}"), order, known)) for line, order, known, _ in CELLS
    ] == CELLS
    assert [(line, carrier_info(values(f"+ZCAINFO: {line}"))) for line, _ in CARRIERS] == CARRIERS
    assert [(row, technology, levels(values(f"+ZRSSI: {row}"), technology)) for row, technology, _ in LEVELS] == LEVELS


# --- Fibocom ---------------------------------------------------------------------------------------------------------

SINR_OF_NR = [
    (16, 15.0, 16.0), (91, 22.0, 22.0), (91, None, 22.0), (-4, None, -4.0), (16, None, None), (16, -15.0, -15.5), (60, -20.0, -20.0),
    (None, 7.5, 7.5), (None, None, None),
]  # fmt: skip


def test_sinr_of_nr_by_cesq_or_by_what_it_can_be():
    assert [(printed, judge, nr_sinr(printed, judge)) for printed, judge, _ in SINR_OF_NR] == SINR_OF_NR


SERVING = "1,4,250,1,91DC,00111EE03,3250,116,107,100,14,47,47,22"


def test_in_gtccinfo_the_model_says_the_base_of_a_pci_and_the_unit_of_a_bandwidth_and_neighbours_serve_nobody():
    for row in ("2,4,,,FFFF,00FFFFFFF,9460,71,,43,43,10", "2,4,262,2,1A2B,0012345AB,100,42,101,50,7,29,29,4"):
        assert read("fibocom", "+GTCCINFO:", row, model="FM350-GL") == Reading()
    for model, pci in (("FM350-GL", 116), ("FM150-AE", 0x116), ("", 116)):
        assert read("fibocom", "+GTCCINFO:", SERVING, model=model).pci == pci
    assert read("fibocom", f"+GTCCINFO: {SERVING}", model="FM350-GL").eci == 0x111EE03
    index = read("fibocom", "+GTCCINFO:", SERVING.replace("107,100", "7,5"), model="FM350-GL")
    assert (index.band, index.bandwidth_mhz) == (7, 20.0), "an index of bandwidth beside a plain band"
    for model, heading, printed, width in (
        ("FM350-GL", "", 100, 20.0),
        ("FM160-CN", "", 100, 100.0),
        ("", "NR service cell:|", 100, 100.0),
        ("", "", 500, 100.0),
        ("", "", 100, None),
        ("FM350-GL", "", 7, None),
    ):
        text = f"+GTCCINFO:|{heading}1,9,460,01,DE10,0CD7C80121,99240,2,5078,{printed},60,70,70,65"
        assert wrong([("fibocom", text, {"bandwidth_mhz": width})], model) == []


# --- all -------------------------------------------------------------------------------------------------------------

_VALUE = st.one_of(
    st.integers(-2000, 2**36).map(str), st.sampled_from(["", "-", "FFFF", "0xFFFFFFFF", "LTE", "NR", "4G", "1,9"])
)
_NAMES = ("^HCSQ", "^MONSC", "+ZRSSI", "+ZCELLINFO", "+ZCAINFO", "+ZPAS", "+BMTCELLINFO", "+XMCI", "+XCESQ", "+XLEC",
          "+GTCCINFO", "^HFREQINFO", "%XMONITOR", "+EEMLTESVC", "+CCED", "+SQNMONI",
          "^SMONI", "_OWCTI", "_OSIGQ", "RAT", "lte_rsrp")  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from(_NAMES), st.lists(_VALUE, max_size=16)), max_size=4))
def test_any_values_give_quantities_of_one_technology(rows):
    lines = [f"{name}: {','.join(row)}" for name, row in rows]
    for family in ("huawei", "zte", "mikrotik", "broadmobi", "fibocom", "cinterion", "foxconn", "chipset", "option"):
        found = read(family, *lines)
        if found.rat in ("GSM", "WCDMA"):
            assert (found.rsrp_dbm, found.eci, found.tac, found.nr_rsrp_dbm) == (None,) * 4
        if found.rat not in ("WCDMA", None):
            assert (found.rscp_dbm, found.ecno_db) == (None, None)
        if found.rat != "NR-NSA":
            assert (found.nr_rsrp_dbm, found.nr_pci) == (None, None)
