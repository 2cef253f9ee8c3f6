"""Line protocol: what is written is read back, and nothing that comes from outside breaks the reader."""

import contextlib
import enum
import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support.hostile_json import said
from tandem.schema.line_protocol import Point, encode, encode_point, parse
from tandem.schema.metrics import COMMON_TAGS, MEASUREMENTS, Field
from tandem.schema.record import Record, RecordError, check
from tandem_server.schema import measurements
from tandem_server.schema.measurements import SERVER_MEASUREMENTS, check_server

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
TAG = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"], exclude_characters='\\"'), min_size=1, max_size=20
)
# Lines made of what the grammar is made of reach far more of the reader than arbitrary text does.
PIECES = st.lists(
    st.sampled_from([*'abz09-+.eEi,= \\"\n\r\t', "true", "false", "1i", "-2.5", "é", "m,t=v f=1i 5"]), max_size=30
).map("".join)


def values(field: Field) -> st.SearchStrategy:
    low = None if field.minimum is None else math.ceil(field.minimum)
    high = None if field.maximum is None else math.floor(field.maximum)
    if field.kind == "int":
        return st.integers(low if low is not None else -(2**63), high if high is not None else 2**63 - 1)
    if field.kind == "float":
        return st.floats(low, high, allow_nan=False, allow_infinity=False)
    return st.booleans() if field.kind == "bool" else TEXT


@st.composite
def records(draw: st.DrawFn) -> Record:
    kind = draw(st.sampled_from(list(MEASUREMENTS.values())))
    tags = draw(st.dictionaries(st.sampled_from(kind.tags), TAG)) if kind.tags else {}
    chosen = draw(st.lists(st.sampled_from(kind.fields), min_size=1, unique_by=lambda f: f.name))
    return Record.make(kind.name, tags, {f.name: draw(values(f)) for f in chosen}, draw(st.integers(0, 2**62)))


@given(records(), st.dictionaries(st.sampled_from(COMMON_TAGS), TAG), st.integers(1, 2**62), st.integers(0, 2**62))
def test_a_record_is_read_back_as_it_was_written(record, common, seq, utc_ns):
    line = encode(record, common, seq, utc_ns)
    point = parse(line)
    fields = {
        # The text of a field loses its line breaks: a line is a line.
        k: v.replace("\r", " ").replace("\n", " ") if isinstance(v, str) else v
        for k, v in record.fields.items()
    }
    fields |= {"seq": seq, "monotonic_ns": record.monotonic_ns}
    assert point == Point(record.measurement, {**common, **record.tags}, fields, utc_ns)
    assert "\n" not in line
    assert {k: type(v) for k, v in point.fields.items() if k in record.fields} == {
        k: float if MEASUREMENTS[record.measurement].field(k).kind == "float" else type(v)
        for k, v in record.fields.items()
    }
    assert encode_point(point) == line


@given(st.one_of(PIECES, st.text()))
@example('radio,path=a state="x\\')
@example("m f=1i ")
@example("m,a=b")
@example('m,t=a=b f="x y,z=1",g=true,h=-1.5e3,i=7i -3')
@example('m f="a"b')
@example("m f=1 2 3")
def test_any_line_is_read_or_refused_with_a_reason(line):
    with contextlib.suppress(RecordError):
        point = parse(line)
        assert point.measurement
        assert point.fields


def test_a_broken_line_or_tag_is_refused_by_name():
    rows = [
        ("", "no measurement name"),
        ("radio", "no fields"),
        ("radio,path= rsrp_dbm=1", "tag 'path' is empty"),
        ("radio,path=a,path=b rsrp_dbm=1", "tag 'path' twice"),
        ("radio rsrp_dbm", "field without a value"),
        ("radio rsrp_dbm=1,rsrp_dbm=2", "field 'rsrp_dbm' twice"),
        ('radio state="connected', "without its closing quote"),
        ("radio rsrp_dbm=NaN", "is no number"),
        ("radio rsrp_dbm=1 12ms", "is not a time"),
    ]
    assert [(line, reason) for line, reason in rows if reason not in said(RecordError, parse, line)] == []
    for value in ("ends in \\", "two\nlines", 'a "quote"', "an \x1b[0m escape", "long" * 100):
        with pytest.raises(RecordError):
            encode(Record("event", {"kind": value}, {"detail": "x"}, 5), {}, 1, 2)


class Cell(enum.IntEnum):
    HOME = 7


def test_what_breaks_the_table_is_refused_by_name():
    rows = [
        ("weather", {}, {"x": 1}, "unknown measurement 'weather'"),
        ("radio", {"colour": "red"}, {"rsrp_dbm": -90.0}, "unknown tag 'colour'"),
        ("radio", {}, {}, "no field"),
        ("radio", {}, {"rsrp": -90.0}, "unknown field 'rsrp'"),
        ("radio", {}, {"rsrp_dbm": "-90"}, "is not a number"),
        ("radio", {}, {"rsrp_dbm": True}, "is not a number"),
        ("radio", {}, {"rsrp_dbm": 99}, "above -30"),
        ("radio", {}, {"rsrp_dbm": -200.5}, "below -157"),
        ("radio", {}, {"rsrp_dbm": math.nan}, "not finite"),
        ("radio", {}, {"pci": 5.0}, "is not a whole number"),
        ("radio", {}, {"pci": False}, "is not a whole number"),
        ("radio", {}, {"stale": 1}, "is not true or false"),
        ("radio", {}, {"state": 3}, "is not text"),
        ("radio", {}, {"rsrp_dbm": -90.0, "seq": 0}, "below 1"),
        ("usage", {}, {"sent_bytes": 2**63}, "64 bits"),
    ]
    for measurement, tags, fields, reason in rows:
        assert reason in said(RecordError, check, measurement, tags, fields), fields
    fields = {"eci": Cell.HOME, "rsrp_dbm": np.float64(-90.5), "rsrq_db": -10, "seq": 1, "monotonic_ns": 0}
    check("radio", {"probe": "p", "boot": "b", "path": "a"}, fields)
    record = Record.make("radio", {"path": "a", "rat": None, "driver": ""}, {"rsrp_dbm": -90.0, "pci": None}, 1)
    assert (record.tags, record.fields) == ({"path": "a"}, {"rsrp_dbm": -90.0})


def test_what_the_server_records_no_probe_may():
    for name in SERVER_MEASUREMENTS:
        with pytest.raises(RecordError, match="recorded by the server alone"):
            measurements.check(name, {"probe": "probe-1"}, {"seen": 1})
        with pytest.raises(RecordError, match=f"unknown measurement '{name}'"):
            check(name, {"probe": "probe-1"}, {"seen": 1})
    check_server("expected", {"probe": "probe-1"}, {"seen": 1})
    with pytest.raises(RecordError, match="unknown measurement 'radio'; known: expected, probe_state"):
        check_server("radio", {}, {"state": "idle"})
    with pytest.raises(RecordError, match="unknown tag 'boot'; known: probe"):
        check_server("expected", {"boot": "b"}, {"seen": 1})
