"""Every field of the schema can be shown."""

from __future__ import annotations

from collections import Counter

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


def test_every_field_of_the_schema_has_an_axis():
    def fits(field, shown):
        words = shown.title and shown.title == shown.title.strip() and "_" not in shown.title
        return words and shown.unit in GRAFANA_IDS and (shown.minimum, shown.maximum) == (field.minimum, field.maximum)

    shown = {(m, f.name): axis(m, f.name) for m, f in FIELDS}
    assert {(m, f.name): shown[m, f.name] for m, f in FIELDS if not fits(f, shown[m, f.name])} == {}
    named = Counter((m, one.title, one.unit) for (m, _), one in shown.items())
    assert [name for name, times in named.items() if times > 1] == []


def test_axis_is_as_people_expect():
    expected = {
        ("radio", "rsrp_dbm"): Axis("RSRP", "dBm", -157, -30),
        ("radio", "sinr_db"): Axis("SINR", "dB", -40, 60),
        ("radio", "eci"): Axis("ECI", "none", 0, 2**36 - 1),
        ("radio", "enb_id"): Axis("eNodeB identity", "none", 0, 2**28 - 1),
        ("radio", "stale"): Axis("Stale", "bool", None, None),
        ("radio", "plmn"): Axis("PLMN", "string", None, None),
        ("radio", "poll_late_ms"): Axis("Poll late", "ms", 0, None),
        ("subflow", "goodput_bit_per_s"): Axis("Goodput", "bps", 0, None),
        ("subflow", "rtt_min_ms"): Axis("RTT min", "ms", 0, None),
        ("subflow", "bytes_acked"): Axis("Bytes acknowledged", "decbytes", 0, None),
        ("connection", "subflows"): Axis("Subflows", "none", 0, 64),
        ("run", "duration_s"): Axis("Duration", "s", 0, None),
        ("health", "cpu_seconds"): Axis("CPU seconds", "s", 0, None),
    }
    assert {key: axis(*key) for key in expected} == expected


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
