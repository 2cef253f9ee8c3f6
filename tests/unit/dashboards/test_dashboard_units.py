"""Every field of the schema can be shown."""

from __future__ import annotations

import pytest

from tandem.schema.metrics import COMMON_FIELDS, MEASUREMENTS, Field
from tandem_dashboards.units import GRAFANA_UNITS, Axis, UnknownUnitError, axis, unit

FIELDS = [(m.name, f) for m in MEASUREMENTS.values() for f in (*COMMON_FIELDS, *m.fields)]
# Grafana's valueFormats/categories.ts, the ids that these boards may use
GRAFANA_IDS = {
    "none", "string", "bool", "dBm", "dB", "ns", "ms", "s", "bps", "decbytes", "suffix:MHz", "degree", "lengthm", "velocityms",
    "ppm",
    "celsius", "percent",
}  # fmt: skip


@pytest.mark.parametrize(("measurement", "field"), FIELDS, ids=[f"{m}.{f.name}" for m, f in FIELDS])
def test_every_field_of_the_schema_has_an_axis(measurement, field):
    shown = axis(measurement, field.name)
    assert shown.unit in GRAFANA_IDS
    assert (shown.minimum, shown.maximum) == (field.minimum, field.maximum)
    assert shown.title
    assert shown.title == shown.title.strip()
    assert "_" not in shown.title


@pytest.mark.parametrize("name", sorted(MEASUREMENTS))
def test_titles_of_one_measurement_differ(name):
    fields = [f for m, f in FIELDS if m == name]
    shown = {(axis(name, f.name).title, axis(name, f.name).unit) for f in fields}
    assert len(shown) == len(fields)


@pytest.mark.parametrize(
    ("measurement", "field", "expected"),
    [
        ("radio", "rsrp_dbm", Axis("RSRP", "dBm", -157, -30)),
        ("radio", "sinr_db", Axis("SINR", "dB", -40, 60)),
        ("radio", "eci", Axis("ECI", "none", 0, 2**36 - 1)),
        ("radio", "enb_id", Axis("eNodeB identity", "none", 0, 2**28 - 1)),
        ("radio", "stale", Axis("Stale", "bool", None, None)),
        ("radio", "plmn", Axis("PLMN", "string", None, None)),
        ("radio", "poll_late_ms", Axis("Poll late", "ms", 0, None)),
        ("subflow", "goodput_bit_per_s", Axis("Goodput", "bps", 0, None)),
        ("subflow", "rtt_min_ms", Axis("RTT min", "ms", 0, None)),
        ("subflow", "bytes_acked", Axis("Bytes acknowledged", "decbytes", 0, None)),
        ("connection", "subflows", Axis("Subflows", "none", 0, 64)),
        ("run", "duration_s", Axis("Duration", "s", 0, None)),
        ("health", "cpu_seconds", Axis("CPU seconds", "s", 0, None)),
    ],
)
def test_axis_is_as_people_expect(measurement, field, expected):
    assert axis(measurement, field) == expected


def test_no_unit_is_kept_that_the_schema_does_not_use():
    assert set(GRAFANA_UNITS) == {f.unit for _, f in FIELDS if f.unit}


def test_unknown_unit_is_refused_and_says_where_to_add_it():
    with pytest.raises(
        UnknownUnitError, match=r"'speed_furlong_per_fortnight' has the unit 'furlong/fortnight'.*GRAFANA_UNITS"
    ):
        unit(Field("speed_furlong_per_fortnight", "float", "furlong/fortnight", "made up"))


@pytest.mark.parametrize(("measurement", "field"), [("radio", "nothing"), ("nothing", "rsrp_dbm")])
def test_what_the_schema_does_not_have_is_refused(measurement, field):
    with pytest.raises(KeyError):
        axis(measurement, field)
