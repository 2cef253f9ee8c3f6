"""The standard's commands, each alone (further ones: answers/standard.toml) and together, and what ``fill`` adds to a reading."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tandem.modem.base import Reading
from tandem.modem.ts27007 import NAMES, fill, levels, registration, standard


def told(*lines: str) -> dict[str, Any]:
    """What the lines give, without what is None and the state that tells nothing."""
    reading = standard(lines)
    fields = {"rat": reading.rat, **reading.as_fields()}
    return {k: v for k, v in fields.items() if v is not None and (k, v) != ("state", "unknown")}


LTE_CELL = {"rat": "LTE", "tac": 0x1A2B, "eci": 0x5A2C30B, "enb_id": 0x5A2C3, "sector_id": 0x0B}


ALONE = [
    ("+CSQ: 0,99", {"rssi_code": 0, "rssi_dbm": -113.0}),
    ("+CSQ: 199,99", {}),
    ("+CESQ: 99,99,255,255,255,255,255,255,255", {}),
    ("+CESQ: 20,3,255,255,255,255", {"rat": "GSM", "rssi_code": 20, "rssi_dbm": -91.0}),
    ("+CESQ: 99,99,255,255,255,0", {"rat": "LTE", "rsrp_code": 0, "rsrp_dbm": -141.0}),
    ('+CEREG: 2,1,"1A2B","05A2C30B",7', LTE_CELL),
    ('+CEREG: 1,"1A2B","05A2C30B",7', LTE_CELL),
    ("+CEREG: 2,1,1A2B,5A2C30B,7", LTE_CELL),
    ('+CEREG: 1,"1A2B","01","05A2C30B",7', LTE_CELL),
    ('+CEREG: 4,1,"1A2B","05A2C30B",7,,,"00000110","00111000"', LTE_CELL),
    ('+CEREG: 2,5,"1A2B","05A2C30B"', LTE_CELL),
    ('+CEREG: 2,1,"1A2B","05A2C30B",9', {**LTE_CELL, "rat": "NB-IOT"}),
    ("+CEREG: 2,1,1234,1234567,7", {**LTE_CELL, "tac": 0x1234, "eci": 0x1234567, "enb_id": 0x12345, "sector_id": 0x67}),
    ("+CEREG: 2,1,7,1A2D003,7", {"rat": "LTE", "tac": 7, "eci": 0x1A2D003, "enb_id": 0x1A2D0, "sector_id": 3}),
    ("+CEREG: 0,1", {"rat": "LTE"}),
    ("+CEREG: 1", {"rat": "LTE"}),
    ("+CEREG: 2", {"state": "searching"}),
    ("+CEREG: 3,3,,,,0,15", {"state": "limited"}),
    ("+CEREG: 2,4", {"state": "no_service"}),
    ('+CEREG: 2,1,"FFFE","FFFFFFFF",7', {"rat": "LTE"}),
    ('+CREG: 2,1,"1A2B","51A2",0', {"rat": "GSM", "lac": 0x1A2B, "ci": 0x51A2}),
    ('+CREG: 2,1,"1A2B","0ABC1234",2', {"rat": "WCDMA", "lac": 0x1A2B, "ci": 0xABC1234}),
    ('+CGREG: 2,1,"1A2B","0ABC1234",6,"01"', {"rat": "WCDMA", "lac": 0x1A2B, "ci": 0xABC1234}),
    ('+CREG: 2,1,"1A2B","51A2"', {"lac": 0x1A2B, "ci": 0x51A2}),
    ("+CREG: 1,1,84CD,00D30173", {"lac": 0x84CD, "ci": 0xD30173}),
    ("+CREG: 1,5,A2C3,2", {"lac": 5, "ci": 0xA2C3, "rat": "WCDMA"}),
    ("+CEREG: 1, 2, 0001, 00000100, 7", {"state": "searching"}),
    ('+CREG:002,001,"18d8","ffff"', {"lac": 0x18D8}),
    ("+CREG: ,", {}),
    ('+C5GREG: 2,1,"1A2B0C","12345A00B",11,1,"01"', {"rat": "NR-SA", "tac": 0x1A2B0C, "eci": 0x12345A00B}),
    ('+C5GREG: 2,1,"FFFFFF","FFFFFFFFF",11', {"rat": "NR-SA"}),
    ("+COPS: 0,2,310410,13", {"rat": "NR-NSA", "plmn": "310410"}),
    ('+COPS: 0,0,"Operator, the",7', {"rat": "LTE"}),
]


def test_an_answer_alone_gives_all_that_it_tells():
    assert [(line, told(line)) for line, _ in ALONE] == ALONE


def test_technologies_are_told_apart_and_of_two_answers_the_later_counts():
    lte = '+CEREG: 2,1,"1A2B","05A2C30B",7'
    for lines, rat in (
        ([lte, '+COPS: 0,2,"24491",13'], "NR-NSA"),
        ([lte, "+CESQ: 99,99,255,255,20,46,65,66,85"], "NR-NSA"),
        (["+CEREG: 2,0", '+C5GREG: 2,1,"1A2B0C","12345A00B",11'], "NR-SA"),
        ([lte, "+C5GREG: 2,0"], "LTE"),
        ([lte, "+C5GREG: 0,1"], "LTE"),
        (["+CEREG: 2,0", '+CREG: 2,1,"1A2B","51A2",3', '+CGREG: 2,1,"1A2B","51A2",3'], "GSM"),
        ([lte, '+CREG: 2,1,"1A2B","05A2C30B",7'], "LTE"),
        (["+CEREG: 2,0", '+CREG: 2,1,"1A2B","ABC1234",6'], "WCDMA"),
    ):
        reading = standard(lines)
        assert (reading.rat, reading.state) == (rat, "unknown")
        assert (reading.ci is not None) == (rat in ("GSM", "WCDMA"))
        assert (reading.eci is not None) == (rat not in ("GSM", "WCDMA"))
    assert told('+CEREG: 1,"1A2B","05A2C30C",7', lte) == LTE_CELL


def test_the_gravest_state_of_those_that_speak_of_the_serving_technology():
    assert standard(["+CREG: 0,0", "+CEREG: 0,2", "+C5GREG: 0,0"]).state == "searching"
    assert standard(["+CREG: 0,3", "+CEREG: 0,2"]).state == "limited"
    assert standard(["+C5GREG: 0,0", "+COPS: 0,2,24491,7"]).state == "unknown"


def test_fill_takes_no_cell_of_another_technology():
    assert fill(Reading(rat="WCDMA"), ['+CEREG: 2,1,"1A2B","05A2C30B",7']) == Reading(rat="WCDMA")
    assert fill(Reading(rat="LTE"), ['+CREG: 2,1,"1A2B","51A2",3']) == Reading(rat="LTE")
    assert fill(Reading(rat="WCDMA"), ["+CEREG: 2,0"]).state == "unknown"
    assert fill(Reading(rat="CAT-M"), ['+CEREG: 2,1,"1A2B","05A2C30B",7']).rat == "CAT-M"


@given(
    st.sampled_from(NAMES),
    st.integers(1, 0xFFFD),
    st.integers(1, 0xFFFE),
    st.booleans(),
    st.booleans(),
    st.integers(2, 5),
)
def test_a_2g_cell_in_any_dress(name, area, cell, quotes, asked, n):
    mark = '"' if quotes else ""
    ids = f"{mark}{area:04X}{mark},{mark}{cell:08X}{mark}"
    found = registration([f"{name}: {f'{n},' if asked else ''}1,{ids},2"], name)
    assert (found.rat, found.lac, found.ci) == ("WCDMA", area, cell)


@given(st.lists(st.one_of(st.integers(-2, 300).map(str), st.just(""), st.text(max_size=4)), max_size=11))
def test_any_row_of_codes_is_within_its_tables(row):
    found = levels([f"+CESQ: {','.join(row)}"])
    rsrp, sinr, ecno = found["LTE"].rsrp_dbm, found["NR-SA"].sinr_db, found["WCDMA"].ecno_db
    assert rsrp is None or -141 <= rsrp <= -44
    assert sinr is None or -23.5 <= sinr <= 40
    assert ecno is None or -24.5 <= ecno <= 0


def test_fill_adds_what_is_missing_and_changes_nothing_that_is_there():
    own = Reading(rat="LTE", tac=1, rsrp_dbm=-80.5, rsrq_code=3)
    filled = fill(
        own, ['+CEREG: 2,1,"1A2B","05A2C30B",7', "+CESQ: 99,99,255,255,20,46", '+COPS: 0,2,"24491",7', "+CSQ: 9,9"]
    )
    assert filled == Reading(
        rat="LTE", tac=1, rsrp_dbm=-80.5, rsrq_code=3, eci=0x5A2C30B, plmn="24491", rssi_code=9, rssi_dbm=-95.0
    )
    assert fill(own, []) == own
    assert fill(Reading(rat="LTE"), ["+CEREG: 2,3"]).state == "limited"
    assert fill(Reading(rat="LTE", state="idle"), ["+CEREG: 2,3"]).state == "idle"
