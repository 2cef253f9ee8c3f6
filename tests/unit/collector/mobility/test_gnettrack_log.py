"""Reading logs of G-NetTrack Pro: what is taken, what is refused and how."""

from hypothesis import example, given
from hypothesis import strategies as st

from support.hostile_json import badly_refused, said
from tandem.mobility.gnettrack import LogError, Second, read

HEADER = "Timestamp,Speed,NetworkMode,RSRP,RSRQ,SNR,RSSI,CELLHEX,NODEHEX,LACHEX,RAWCELLID"
ROW = "2019.12.16_07.22.43,12,5G,-98,-10,3.0,-88,C,A81B,9CBA,11016972"


def log(*rows: str, header: str = HEADER) -> bytes:
    return "\n".join([header, *rows, ""]).encode()


ROWS: dict[str, tuple[str, str, float | None, str | None, dict[str, object]]] = {
    "LTE with a 5G carrier": (
        HEADER, ROW, 12.0, "NR-NSA",
        {"rsrp_dbm": -98.0, "rsrq_db": -10.0, "sinr_db": 3.0, "rssi_dbm": -88.0, "tac": 0x9CBA, "eci": 0xA81B0C},
    ),
    "3G has RSCP and its own cells": (
        HEADER, "2019.12.16_07.22.43,12,HSPA+,-78,-6,-,-,D,1,9CBA,838534", 12.0, "WCDMA",
        {"rscp_dbm": -78.0, "ecno_db": -6.0, "lac": 0x9CBA, "ci": 838534},
    ),
    "dashes and Android's largest integers are absent": (
        HEADER, "2019.12.16_07.22.43,-,LTE,2147483647,-,-,0,-,-,-,-", None, "LTE", {},
    ),
    "the cell is made of node and sector where it is not told whole": (
        HEADER, "2019.12.16_07.22.43,0,LTE,-98,-,-,-,C,A81B,-,-", 0.0, "LTE", {"rsrp_dbm": -98.0, "eci": 0xA81B0C},
    ),
    "other spellings, tabs and missing columns": (
        "Timestamp\tSpeed\tLevel", "2019.12.16_07.22.43\t7\t-101", 7.0, None, {"rsrp_dbm": -101.0},
    ),
}  # fmt: skip


def test_what_a_row_tells_and_a_place_is_both_its_degrees_or_none():
    for name, (header, row, speed, rat, fields) in ROWS.items():
        (second,) = read(log(row, header=header))
        assert (second.speed_km_h, second.rat, second.fields) == (speed, rat, {"state": "unknown", **fields}), name
    header = "Timestamp,Longitude,Latitude,Speed,Level"
    places = ("-8.5,51.9", "-,51.9", "-8.5,91")
    found = read(log(*(f"2020.01.01_00.00.0{i},{place},3,-90" for i, place in enumerate(places)), header=header))
    assert [second.place for second in found] == [(51.9, -8.5), None, None]


def test_rows_in_disorder_doubled_or_cut_off():
    rows = [
        f"2019.12.16_07.{time},{speed},LTE,-90"
        for time, speed in (("22.43", 1), ("30.00", 4), ("22.44", 2), ("22.43", 3))
    ]
    seconds = read(log(*rows, header="Timestamp,Speed,NetworkMode,RSRP"))
    assert [(s.at_s - seconds[0].at_s, s.speed_km_h) for s in seconds] == [(0, 3.0), (1, 2.0), (437, 4.0)]
    assert len(read(log(ROW)[:-1] + b"\n2019.12.16_07.22.44,12,5G,-9")) == 1


REFUSED = [
    (b"", "line 1: the file is empty"),
    (log(), "line 1: no row after the first line"),
    (b"a,b,c\n1,2,3\n", "line 1: no column Timestamp"),
    (log(ROW.replace("-98", "strong")), "line 2: RSRP 'strong' is no number"),
    (log(ROW, ROW.replace("12.16", "13.16")), "line 3: '2019.13.16_07.22.43' is no time"),
    (log(ROW, "2019.12.16_07.22.44,12,5G", ROW), "line 3: 3 columns where the first line has 11"),
    (log(ROW, ROW.replace(",12,", ",fast,")), "line 3: Speed 'fast' is no number"),
    (HEADER.encode() + b'\n"' + b"x" * 200_000 + b'"\n', "line 2: not comma-separated text"),
    (log("2019.12.16_07.22.43,12,-98", header="Timestamp,Speed (mph),RSRP"), "line 1: Speed is in 'mph'"),
]


def test_what_is_no_log_is_refused_with_line_and_hint():
    assert badly_refused(LogError, read, REFUSED) == []
    assert badly_refused(LogError, read, [(raw, "; hint: ") for raw, _ in REFUSED]) == []


WORDS = ["-", "", "5G", "LTE", "HSPA+", "-98", "3.5", "1e9", "1e-9", "-1e99", "2147483647", "A81B", '"', "nan", "inf"]
CELL = st.sampled_from(WORDS) | st.text(max_size=6)


@given(st.lists(st.lists(CELL, min_size=10, max_size=10), max_size=6), st.integers(0, 99))
def test_any_cells_give_records_or_one_line(rows, second):
    check(log(*(f"2019.12.16_07.22.{second:02}," + ",".join(row) for row in rows)))


@given(st.binary(max_size=200), st.integers(0, 300), st.integers(0, 300))
@example(b"\x00", 5, 5)
@example(b'"', 100, 100)
@example(b"\r", 100, 100)
@example("\u2028".encode(), 100, 100)
@example(b"\xef\xbb\xbf", 0, 0)
def test_any_bytes_in_a_log_give_records_or_one_line(wrong, begin, end):
    whole = log(ROW, ROW.replace("43", "44"))
    check(whole[:begin] + wrong + whole[end:])


def check(raw: bytes) -> None:
    refused = said(LogError, lambda: check_seconds(read(raw)))
    assert "\n" not in refused
    assert not refused or refused.startswith("line ")


def check_seconds(seconds: list[Second]) -> None:
    assert seconds
    assert [s.at_s for s in seconds] == sorted({s.at_s for s in seconds})
    for i, second in enumerate(seconds):
        assert second.record("a", i).fields  # within the schema's ranges
        assert second.speed_km_h is None or 0 <= second.speed_km_h <= 1200


OTHERS = [
    ("Timestamp;Speed;RSRP", "2019.12.16_07.22.43;12,5;-98,0"),
    ("Timestamp\tSpeed\tLevel", "2019.12.16_07.22.43\t12,5\t-98"),
    ("RSRP,Speed (km/h),CQI,Timestamp", "-98,12.5,-,2019.12.16_07.22.43"),
    ("Timestamp,Speed,RSRP", "2019.12.16_07.22.43,12.5 km/h,-98 dBm"),
    ("Timestamp,Speed,RSRP,", "2019.12.16_07.22.43,12.5,-98,"),
    ("Timestamp,Speed,RSRP", "2019.12.16_07.22.43,12.5,-98,,"),
    ('"Timestamp","Speed","RSRP"', '"2019.12.16_07.22.43","12.5","-98"'),
    ("Timestamp,Speed,RSRP,RSRQ,SNR", "2019.12.16_07.22.43,12.5,-98,NA,n/a"),
    ("Timestamp,Speed,RSRP", "2019-12-16T07:22:43,12.5,-98"),
    ("Timestamp,Speed,RSRP", "2019-12-16 09:22:43.250+02:00,12.5,-98"),
    ("Timestamp,Speed,RSRP", "2019.12.16_02.22.43-0500,12.5,-98"),
]


def test_logs_of_other_versions_and_hands():
    expected = [Second(1576480963, 12.5, None, {"state": "unknown", "rsrp_dbm": -98.0})]
    for header, row in OTHERS:
        found = {c: read(f"{header}\r\n{row}\r\n".encode(c)) for c in ("utf-8", "utf-8-sig", "utf-16")}
        assert found == dict.fromkeys(found, expected), header
