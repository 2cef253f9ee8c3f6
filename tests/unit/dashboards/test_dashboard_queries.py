"""A query is checked against the schema when it is made."""

from __future__ import annotations

import pytest

from tandem_dashboards import expressions as x
from tandem_dashboards.conditions import chosen, compare, either, equal, one_of
from tandem_dashboards.influxql import INTERVAL, QueryError, select, tag_values
from tandem_dashboards.shown import shown
from tandem_dashboards.vocabulary import UnknownNameError


def test_a_query_is_written_as_influxql_has_it():
    asked = select(
        x.mean("rsrp_dbm"),
        of="radio",
        where=[chosen("probe"), equal("operator", "it's \\ one")],
        by=["path", "operator"],
        every=INTERVAL,
    )
    assert asked.text == (
        'SELECT mean("rsrp_dbm") AS "rsrp_dbm" FROM "radio" WHERE $timeFilter AND "probe" =~ /^${probe:regex}$/ '
        'AND "operator" = \'it\\\'s \\\\ one\' GROUP BY time($__interval), "path", "operator" fill(null)'
    )
    assert [o.name for o in asked.outputs] == ["rsrp_dbm"]
    assert shown(asked.output("rsrp_dbm")).unit == "dBm"


def test_a_query_of_a_query_keeps_the_units_and_has_no_time_filter_of_its_own():
    inner = select(x.last("received_bytes"), of="usage", by=["probe", "path"], every="1m", fill="none")
    outer = select(x.total("received_bytes"), of=inner, by=["probe"])
    begin, end = 'SELECT sum("received_bytes") AS "received_bytes" FROM (', ') GROUP BY "probe"'
    assert outer.text == begin + inner.text + end
    assert shown(outer.output("received_bytes")).unit == "decbytes"
    with pytest.raises(UnknownNameError, match="the inner query has no tag 'operator'; it has probe, path"):
        select(x.total("received_bytes"), of=inner, by=["operator"])


def test_policy_recent_order_and_limits():
    asked = select(
        "state", of="probe_state", policy="${resolution}", recent="5m", newest_first=True, limit=3, series_limit=2
    )
    assert asked.text == (
        'SELECT "state" FROM "${resolution}"."probe_state" WHERE $timeFilter AND time >= now() - 5m '
        "ORDER BY time DESC LIMIT 3 SLIMIT 2"
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: select(x.mean("rsrp"), of="radio"), "radio has no field 'rsrp'; did you mean 'rsrp_"),
        (lambda: select(x.mean("rsrp_dbm"), of="radios"), "no measurement 'radios'; did you mean 'radio'"),
        (lambda: select(x.mean("rsrp_dbm"), of="radio", by=["modem"]), "radio has no tag 'modem'; it has probe"),
        (lambda: select(x.mean("rsrp_dbm"), of="radio", where=[chosen("pat")]), "radio has no tag 'pat'"),
        (lambda: select(x.last("state"), of="radio", where=[equal("rat2", "4g")]), "radio has no field 'rat2'"),
        (lambda: select("seq", of="probe_state"), "probe_state has no field 'seq'"),
        (lambda: tag_values("pth", "radio"), "radio has no tag 'pth'"),
    ],
)
def test_a_name_that_the_schema_has_not_is_refused_by_name(make, message):
    with pytest.raises(UnknownNameError, match=message):
        make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: select(x.mean("state"), of="radio"), r"radio.state is no number \(str\): mean"),
        (lambda: select(x.mean("stale"), of="radio"), r"radio.stale is no number \(bool\)"),
        (lambda: select(x.value("state") * 2, of="radio"), "is no number"),
        (lambda: select(x.mean("path"), of="radio"), "radio.path is a tag, no number"),
        (lambda: select(x.mean("rsrp_dbm"), x.least("rsrp_dbm"), of="radio"), "two columns are called 'rsrp_dbm'"),
        (lambda: select(x.mean("rsrp_dbm"), of="radio", fill="0"), "without time windows"),
        (lambda: select(x.mean("rsrp_dbm"), of="radio", where=[compare("path", ">", 3)]), "is a tag and is compared"),
        (lambda: select(of="radio"), "needs a column"),
        (
            lambda: select("rsrp_dbm", of=select("rsrp_dbm", of="radio"), policy="hour"),
            "belongs to the inner query",
        ),
    ],
)
def test_a_query_that_makes_no_sense_is_refused(make, message):
    with pytest.raises(QueryError, match=message):
        make()


@pytest.mark.parametrize(
    ("expression", "text", "unit", "name"),
    [
        (x.count("seq"), 'count("seq") AS "count"', "none", "count"),
        (
            x.rate(x.last("received_bytes"), times=8, unit="bit/s").named("downlink"),
            '(non_negative_derivative(last("received_bytes"), 1s) * 8) AS "downlink"',
            "bps",
            "downlink",
        ),
        (
            (x.total("upload_bytes") / x.total("sent_bytes")).in_unit("share").named("part"),
            '(1.0 * sum("upload_bytes") / sum("sent_bytes")) AS "part"',
            "percentunit",
            "part",
        ),
        (x.mean("sent_bytes") - 1, '(mean("sent_bytes") - 1) AS "sent_bytes"', "decbytes", "sent_bytes"),
        (
            x.percentile("sent_bytes", 95),
            'percentile("sent_bytes", 95) AS "sent_bytes_p95"',
            "decbytes",
            "sent_bytes_p95",
        ),
    ],
)
def test_expressions_keep_or_change_the_unit(expression, text, unit, name):
    asked = select(expression, of="usage")
    assert f"SELECT {text} FROM" in asked.text
    assert shown(asked.output(name)).unit == unit


def test_conditions_are_put_together():
    assert either(equal("a", 1), equal("b", True)).text == '("a" = 1 OR "b" = true)'
    assert one_of("kind", "a", "b").text == "(\"kind\" = 'a' OR \"kind\" = 'b')"
    assert one_of("kind", "a").text == "\"kind\" = 'a'"
