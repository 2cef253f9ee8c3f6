"""gpsd's lines: what real ones mean, and that no bytes break the reading."""

import json
import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from support.fake_gpsd import iso
from tandem.position.receiver import Lines
from tandem.position.reports import Broken, Pulse, Sky, Tpv, read
from tandem.schema.record import Record

TPV_322 = {
    "class": "TPV", "device": "/dev/ttyUSB1", "status": 2, "mode": 3, "time": "2026-11-21T08:15:30.250Z", "ept": 0.005,
    "lat": 51.897911667, "lon": -8.4717, "altHAE": 70.1, "altMSL": 14.2, "alt": 14.2, "epx": 3.5, "epy": 4.1, "epv": 9.2,
    "track": 181.3, "magtrack": 184.0, "speed": 12.345, "climb": 0.0, "eps": 8.2, "epc": 18.4, "geoidSep": 55.9, "eph": 7.6,
    "sep": 11.4,
}  # fmt: skip


def line(**told: Any) -> bytes:
    return json.dumps(told).encode()


def test_a_fix_of_gpsd_3_22_and_the_old_name_of_the_height():
    expected = Tpv(3, "/dev/ttyUSB1", 1_795_248_930_250_000_000, 51.897911667, -8.4717, 14.2, 12.345, 181.3, 7.6)
    assert read(json.dumps(TPV_322).encode()) == expected
    told = {k: v for k, v in TPV_322.items() if k not in ("altMSL", "altHAE")}
    fix = read(json.dumps(told).encode())
    assert isinstance(fix, Tpv)
    assert fix.altitude_m == 14.2


ODD: list[tuple[dict[str, Any], str, object]] = [
    ({"altMSL": None, "alt": 20.5}, "altitude_m", None),  # a null altMSL is what it is
    ({"mode": 2}, "altitude_m", None),  # a 2d fix has no height of its own
    ({"eph": 200_000}, "error_m", math.hypot(3.5, 4.1)),
    ({"speed": -1}, "speed_m_per_s", None),
    ({"track": 361}, "track_deg", None),
    ({"lat": 91}, "mode", 1),  # a fix without a place is none
    ({"lat": "51.9"}, "latitude_deg", None),
    ({"lon": 1e999}, "longitude_deg", None),
    ({"mode": 1}, "latitude_deg", None),
    ({"mode": 7}, "mode", 0),
    ({"time": 1795248930.25}, "time_utc_ns", None),
    ({"time": "1980-13-06T00:00:00Z"}, "time_utc_ns", None),
    ({"time": "2016-12-31T23:59:60.000Z"}, "time_utc_ns", 1_483_228_800_000_000_000),
    ({"device": 5}, "device", None),
]


def test_what_cannot_be_is_not_known():
    found = [(change, name, getattr(read(line(**{**TPV_322, **change})), name)) for change, name, _ in ODD]
    assert found == ODD


PULSE: dict[str, Any] = {"device": "/dev/x", "real_sec": 1_790_000_000, "real_nsec": 0, "precision": -20}
PULSE |= {"clock_sec": 1_790_000_001, "clock_nsec": 250}
EDGE = (1_790_000_000 * 10**9, 1_790_000_001 * 10**9 + 250)
REPORTS: dict[str, tuple[dict[str, Any], object]] = {
    "satellites in a list are counted": (
        {"class": "SKY", "device": "d", "hdop": 0.9, "satellites": [{"PRN": n, "used": n < 7} for n in range(11)]}, Sky("d", 0.9, 7, 11),
    ),
    "3.25, without the list": ({"class": "SKY", "nSat": 12, "uSat": 8}, Sky(None, None, 8, 12)),
    "a dilution alone": ({"class": "SKY", "hdop": 99.99}, Sky(None, 99.99)),
    "what cannot be": ({"class": "SKY", "nSat": -1, "uSat": "8", "hdop": -2}, Sky()),
    "who answers": ({"class": "VERSION", "release": "3.25", "proto_major": 3}, None),
    "nothing to know": ({"class": "WATCH", "enable": True}, None),
    "the edge of a pulse": ({"class": "PPS", **PULSE}, Pulse("PPS", "/dev/x", *EDGE)),
    "the beginning of sentences": ({"class": "TOFF", **PULSE}, Pulse("TOFF", "/dev/x", *EDGE)),
    "half an edge": ({"class": "PPS", "clock_sec": 1}, None),
    "an edge before all time": ({"class": "PPS", **PULSE, "real_sec": -1}, None),
    "an edge of too many nanoseconds": ({"class": "PPS", **PULSE, "real_nsec": 10**9}, None),
    "no whole second": ({"class": "TOFF", "real_sec": 1.5}, None),
}  # fmt: skip


def test_what_a_report_says():
    assert {name: found for name, (told, report) in REPORTS.items() if (found := read(line(**told))) != report} == {}


def test_what_is_no_report_is_named_without_quoting_it():
    for bad in (b"", b"[]", b"{}", b'{"class":5}', b"[" * 30_000, b"\xff", b"$GPGGA,51.9"):
        report = read(bad)
        assert isinstance(report, Broken)
        assert "51" not in report.why


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.just(10**400)
JSON = (
    SCALARS
    | st.lists(SCALARS, max_size=3)
    | st.lists(st.dictionaries(st.sampled_from(["used", "path"]), SCALARS), max_size=3)
)
KEYS = (*TPV_322, "satellites", "nSat", "uSat", "hdop", "devices", "path", "release", "proto_major")


@given(
    st.sampled_from(["TPV", "SKY", "VERSION", "DEVICES", "DEVICE", "ERROR", "?"]),
    st.dictionaries(st.sampled_from(KEYS), JSON | st.just(2) | st.just(3) | st.floats(-90, 90), max_size=12),
)
def test_whatever_a_report_holds_its_quantities_fit_the_schema(kind, told):
    report, fields = read(json.dumps({**told, "class": kind}).encode()), {}
    if isinstance(report, Tpv):
        assert (report.latitude_deg is None) == (report.longitude_deg is None) == (report.mode < 2)
        names = ("latitude_deg", "longitude_deg", "altitude_m", "speed_m_per_s", "track_deg")
        fields = {name: getattr(report, name) for name in names} | {"horizontal_error_m": report.error_m}
    elif isinstance(report, Sky):
        fields = {name: getattr(report, name) for name in ("hdop", "satellites_used", "satellites_seen")}
    Record.make("position", {"mode": "full"}, {"fix": "none", **fields}, 0)


NEAR_MISSES = st.builds(
    lambda whole, at, put: whole[:at] + put + whole[at + len(put) :],
    st.just(json.dumps(TPV_322).encode()), st.integers(0, 400), st.binary(min_size=1, max_size=8),
)  # fmt: skip


@given(st.binary(max_size=400) | NEAR_MISSES)
def test_no_bytes_break_the_reading_and_none_are_quoted(text):
    report = read(text)
    assert isinstance(report, Broken | Tpv | Sky | Pulse | None)
    assert not isinstance(report, Broken) or "51.89" not in report.why


@given(st.integers(0, 4_000_000_000_000))
def test_times_are_read_to_the_millisecond(time_ms):
    if time_ms < 315_532_800_000:  # before 1980 no satellite told the time
        return
    report = read(line(**{"class": "TPV"}, mode=1, time=iso(time_ms * 10**6)))
    assert isinstance(report, Tpv)
    assert report.time_utc_ns == time_ms * 10**6


@given(st.lists(st.binary(max_size=30).map(lambda b: b.replace(b"\n", b"")), max_size=8), st.data())
def test_lines_do_not_depend_on_how_they_came(lines, data):
    stream = b"".join(one + b"\r\n" for one in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    cutter, found = Lines(longest=20), []
    for begin, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += cutter.feed(stream[begin:end])
    fitting = [one for one in lines if len(one) + 1 <= 20]
    assert found == [one.strip() for one in fitting if one.strip()]
    assert cutter.dropped == len(lines) - len(fitting)


def test_an_endless_line_takes_no_memory():
    cutter = Lines(longest=1000)
    for _ in range(1000):
        assert cutter.feed(b"x" * 5000) == []
    assert cutter.feed(b'\n{"class":"WATCH"}\n') == [b'{"class":"WATCH"}']
    assert cutter.dropped == 1
