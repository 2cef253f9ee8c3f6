"""A query is checked against the schema when it is made."""

import re
from collections import Counter
from itertools import pairwise

import pytest

from support.hostile_json import said
from tandem.schema.metrics import COMMON_FIELDS, MEASUREMENTS, Field
from tandem_dashboards import expressions as x
from tandem_dashboards.expressions import chosen, compare, equal, greatest, last, mean, total
from tandem_dashboards.field_config import GRAFANA_UNITS, UnknownUnitError, field_config, unit
from tandem_dashboards.grafana.macros import Range, interval_ms
from tandem_dashboards.influxql import INTERVAL, RESOLUTION, ROLLED, QueryError, UnknownNameError, select, tag_values
from tandem_dashboards.panel import ROLLED_POINTS
from tandem_server.schema.grades import title_of
from tandem_server.schema.rollups import RESOLUTIONS


def test_a_query_is_written_as_influxql_has_it():
    query = select(
        x.mean("rsrp_dbm"),
        of="radio",
        where=[chosen("probe"), equal("operator", "it's \\ one")],
        by=["path", "operator"],
        every=INTERVAL,
    )
    assert query.text == (
        'SELECT mean("rsrp_dbm") AS "rsrp_dbm" FROM "radio" WHERE $timeFilter AND "probe" =~ /^${probe:regex}$/ '
        'AND "operator" = \'it\\\'s \\\\ one\' GROUP BY time($__interval), "path", "operator" fill(null)'
    )
    assert [o.name for o in query.outputs] == ["rsrp_dbm"]
    assert field_config(query.output("rsrp_dbm")).unit == "dBm"


def test_a_query_of_a_query_keeps_the_units_and_has_no_time_filter_of_its_own():
    inner = select(x.last("received_bytes"), of="usage", by=["probe", "path"], every="1m", fill="none")
    outer = select(x.total("received_bytes"), of=inner, by=["probe"])
    begin, end = 'SELECT sum("received_bytes") AS "received_bytes" FROM (', ') GROUP BY "probe"'
    assert outer.text == begin + inner.text + end
    assert field_config(outer.output("received_bytes")).unit == "decbytes"
    with pytest.raises(UnknownNameError, match="the inner query has no tag 'operator'; it has probe, path"):
        select(x.total("received_bytes"), of=inner, by=["operator"])


def test_a_name_that_the_schema_has_not_and_a_query_that_makes_no_sense_are_refused():
    rows = [
        (lambda: select(x.mean("rsrp"), of="radio"), "radio has no field 'rsrp'; did you mean 'rsrp_"),
        (lambda: select(x.mean("rsrp_dbm"), of="radios"), "no measurement 'radios'; did you mean 'radio'"),
        (lambda: select(x.mean("rsrp_dbm"), of="radio", by=["modem"]), "radio has no tag 'modem'; it has probe"),
        (lambda: select(x.mean("rsrp_dbm"), of="radio", where=[chosen("pat")]), "radio has no tag 'pat'"),
        (lambda: select(x.last("state"), of="radio", where=[equal("rat2", "4g")]), "radio has no field 'rat2'"),
        (lambda: select("seq", of="probe_state"), "probe_state has no field 'seq'"),
        (lambda: tag_values("pth", "radio"), "radio has no tag 'pth'"),
    ]
    assert [(make, message) for make, message in rows if not re.search(message, said(UnknownNameError, make))] == []
    rows = [
        (lambda: select(x.mean("state"), of="radio"), r"radio.state is no number \(str\): mean"),
        (lambda: select(x.mean("stale"), of="radio"), r"radio.stale is no number \(bool\)"),
        (lambda: select(x.value("state") * 2, of="radio"), "is no number"),
        (lambda: select(x.mean("path"), of="radio"), "radio.path is a tag, no number"),
        (lambda: select(x.mean("rsrp_dbm"), x.least("rsrp_dbm"), of="radio"), "two columns are called 'rsrp_dbm'"),
        (lambda: select(x.mean("rsrp_dbm"), of="radio", fill="0"), "without time windows"),
        (lambda: select(x.mean("rsrp_dbm"), of="radio", where=[compare("path", ">", 3)]), "is a tag and is compared"),
        (lambda: select(of="radio"), "needs a column"),
        (lambda: select("rsrp_dbm", of=select("rsrp_dbm", of="radio"), policy="hour"), "belongs to the inner query"),
    ]
    assert [(make, message) for make, message in rows if not re.search(message, said(QueryError, make))] == []


FIELDS = [(m.name, f) for m in MEASUREMENTS.values() for f in (*COMMON_FIELDS, *m.fields)]
# Grafana's valueFormats/categories.ts, the ids that these boards may use
GRAFANA_IDS = {
    "none", "string", "bool", "dBm", "dB", "ns", "ms", "s", "bps", "decbytes", "suffix:MHz", "degree", "lengthm", "velocityms",
    "ppm",
    "celsius", "percent",
}  # fmt: skip


def test_every_field_of_the_schema_has_a_title_and_a_unit_as_people_expect_it():
    def fits(title, unit):
        return title and title == title.strip() and "_" not in title and unit in GRAFANA_IDS

    shown = {(m, f.name): (title_of(f), unit(f)) for m, f in FIELDS}
    assert {key: one for key, one in shown.items() if not fits(*one)} == {}
    named = Counter((m, *one) for (m, _), one in shown.items())
    assert [name for name, times in named.items() if times > 1] == []
    expected = {
        ("radio", "rsrp_dbm"): ("RSRP", "dBm"),
        ("radio", "enb_id"): ("eNodeB identity", "none"),
        ("radio", "stale"): ("Stale", "bool"),
        ("subflow", "rtt_min_ms"): ("RTT min", "ms"),
        ("subflow", "bytes_acked"): ("Bytes acknowledged", "decbytes"),
        ("health", "cpu_seconds"): ("CPU seconds", "s"),
    }
    assert {key: shown[key] for key in expected} == expected
    assert set(GRAFANA_UNITS) == {f.unit for _, f in FIELDS if f.unit}
    with pytest.raises(
        UnknownUnitError, match=r"'speed_furlong_per_fortnight' has the unit 'furlong/fortnight'.*GRAFANA_UNITS"
    ):
        unit(Field("speed_furlong_per_fortnight", "float", "furlong/fortnight", "made up"))


def test_what_raw_records_and_rollups_share_or_only_rollups_have_is_asked():
    query = select(mean("rsrp_dbm"), of="radio", by=["probe"], policy=RESOLUTION)
    assert 'FROM "${resolution:raw}"."radio"' in query.text
    with pytest.raises(UnknownNameError, match=r"radio \(raw and rolled up\) has no field 'rsrp_dbm_min'"):
        select(mean("rsrp_dbm_min"), of="radio", policy=RESOLUTION)
    with pytest.raises(UnknownNameError, match=r"has no tag 'boot'; it has probe, path, operator, rat"):
        select(mean("rsrp_dbm"), of="radio", by=["boot"], policy=RESOLUTION)
    query = select(greatest("rsrp_dbm_max"), total("records"), of="radio", policy=ROLLED)
    as_shown = field_config(query.output("rsrp_dbm_max"))
    assert (as_shown.unit, len(as_shown.steps)) == ("dBm", 3)
    assert field_config(query.output("records")).unit == "none"
    with pytest.raises(UnknownNameError, match=r"radio \(rolled up\) has no field 'rsrp_code'"):
        select(last("rsrp_code"), of="radio", policy="hour")
    with pytest.raises(UnknownNameError, match=r"position is not rolled up \(coverage has it"):
        select(last("latitude_deg"), of="position", policy=RESOLUTION)


@pytest.mark.parametrize(("finer", "coarser"), list(pairwise(RESOLUTIONS)))
def test_no_window_is_narrower_than_the_rollup_that_serves_the_range(finer, coarser):
    shortest = Range(0, finer.below_s * 1000)
    assert interval_ms(shortest, ROLLED_POINTS) >= coarser.step_s * 1000
