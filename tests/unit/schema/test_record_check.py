"""The table of metrics is what decides: names, types, ranges."""

import enum
import math

import numpy as np
import pytest

from tandem.schema.metrics import SERVER_MEASUREMENTS
from tandem.schema.record import Record, RecordError, check, check_server


class Cell(enum.IntEnum):
    HOME = 7


@pytest.mark.parametrize(
    ("measurement", "tags", "fields", "reason"),
    [
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
    ],
)
def test_what_breaks_the_table_is_refused_by_name(measurement, tags, fields, reason):
    with pytest.raises(RecordError, match=reason):
        check(measurement, tags, fields)


def test_common_tags_and_fields_and_derived_types_are_taken():
    fields = {"eci": Cell.HOME, "rsrp_dbm": np.float64(-90.5), "rsrq_db": -10, "seq": 1, "monotonic_ns": 0}
    check("radio", {"probe": "p", "boot": "b", "path": "a"}, fields)


def test_absent_quantities_are_left_out_of_a_record():
    record = Record.make("radio", {"path": "a", "rat": None, "driver": ""}, {"rsrp_dbm": -90.0, "pci": None}, 1)
    assert (record.tags, record.fields) == ({"path": "a"}, {"rsrp_dbm": -90.0})


def test_what_the_server_records_no_probe_may() -> None:
    for name in SERVER_MEASUREMENTS:
        with pytest.raises(RecordError, match="recorded by the server alone"):
            check(name, {"probe": "probe-1"}, {"seen": 1})
    check_server("expected", {"probe": "probe-1"}, {"seen": 1})
    with pytest.raises(RecordError, match="unknown measurement 'radio'; known: expected, probe_state"):
        check_server("radio", {}, {"state": "idle"})
    with pytest.raises(RecordError, match="unknown tag 'boot'; known: probe"):
        check_server("expected", {"boot": "b"}, {"seen": 1})
