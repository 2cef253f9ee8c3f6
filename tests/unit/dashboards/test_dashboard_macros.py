"""Variables, macros, intervals and answers, as Grafana's source has them."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.hostile_json import any_answer
from tandem_dashboards.grafana.frames import as_series, as_table, listed, rows_of
from tandem_dashboards.grafana.macros import (
    Chosen,
    FormatError,
    Range,
    TimeError,
    duration_ms,
    expanded,
    interval_ms,
    interval_text,
    range_of,
    replaced,
)
from tandem_dashboards.influx import AwayError, InfluxError, series_of

SPAN = Range(1_000_000, 4_600_000)
PLAIN = {
    "probe": Chosen(("p1",)), "path": Chosen(("a", "b/c")), "every": Chosen(("a", "b"), ".*"), "one": Chosen(("a.b",)),
}  # fmt: skip


def test_a_query_is_expanded():
    rows = [
        ("x =~ /^${probe:regex}$/", "x =~ /^p1$/"),
        ("x =~ /^${path:regex}$/", r"x =~ /^(a|b\/c)$/"),
        ("/^${every:regex}$/ '${every:raw}'", "/^.*$/ '.*'"),  # all is its own text, whatever the format
        ("=~ /^${one:regex}$/", r"=~ /^a\.b$/"),
        ("$probe ${probe} ${probe:raw} ${path:raw}", "p1 p1 p1 a,b/c"),
        ("of $path", "of a + b/c"),
        ("$unknown ${unknown:regex}", "$unknown ${unknown:regex}"),
        ("$__to - $__from", "4600000 - 1000000"),
        ("time($__interval) $__interval_ms", "time(10s) 10000"),
        ("WHERE $timeFilter", "WHERE time >= 1000000ms and time <= 4600000ms"),
    ]
    assert [(text, expected) for text, expected in rows if expanded(text, PLAIN, SPAN, 10_000) != expected] == []


@given(st.lists(st.text(min_size=1), min_size=1, max_size=4))
def test_a_hostile_value_stays_a_value(values):
    query = replaced('"probe" =~ /^${probe:regex}$/', {"probe": Chosen(tuple(values))})
    literal = query.removeprefix('"probe" =~ /').removesuffix("/")
    assert not re.search(r"(?<!\\)(?:\\\\)*/", literal), "a slash would end the regular expression"
    pattern = re.compile(literal.replace(r"\/", "/"), re.DOTALL)
    for value in values:
        assert pattern.fullmatch(value)
    assert not pattern.fullmatch("".join(values) + "x")


def test_windows_are_as_wide_as_grafana_makes_them_and_a_width_is_one_unit():
    asked = {(1, 800, None): 5000, (1, 800, "10s"): 10_000, (24 * 180, 1600, None): 10_800_000, (6, 1600, "2s"): 15_000}
    for (hours, points, least), expected in asked.items():
        assert interval_ms(Range(0, hours * 3_600_000), points, least) == expected
    written = {1: "1ms", 500: "500ms", 10_000: "10s", 604_800_000: "7d", 7_200_000: "2h", 90_000: "1m"}
    assert {ms: interval_text(ms) for ms in written} == written


def test_times_and_a_format_that_is_not_known():
    assert range_of("now-6h", "now", 100_000_000) == Range(78_400_000, 100_000_000)
    assert range_of("1000", "1970-01-01T00:00:02+00:00", 0) == Range(1000, 2000)
    assert duration_ms("1.5m") == 90_000
    for since, until, message in (
        ("yesterday", "now", "is no time; hint"),
        ("2026-01-01T00:00:00", "now", "with its zone"),
        ("now-5q", "now", "is no duration"),
        ("now", "now-1h", "is no time at all"),
    ):
        with pytest.raises(TimeError, match=message):
            range_of(since, until, 10**12)
    with pytest.raises(FormatError, match=r"\$\{probe:sqlstring\}: the format 'sqlstring' is not known"):
        replaced("${probe:sqlstring}", PLAIN)


TWO = [
    {"name": "radio", "tags": {"path": "a", "operator": ""}, "columns": ["time", "x"], "values": [[1, None], [2, 5]]},
    {"name": "radio", "tags": {"path": "b", "operator": "O"}, "columns": ["time", "x"], "values": [[1, 7.5]]},
]


def test_answers_become_series_with_names_or_one_table_or_a_list():
    frames = as_series(TWO, "$tag_path ($tag_operator) $col $m $tag_none", "A")
    assert [frame.name for frame in frames] == ["a () x radio $tag_none", "b (O) x radio $tag_none"]
    assert frames[0].columns == {"Time": [1, 2], "Value": [None, 5]}
    assert as_series(TWO)[1].name == "radio.x { path: b, operator: O }"
    assert rows_of(TWO) == 2
    (frame,) = as_table(TWO)
    assert frame.columns == {"Time": [1, 2, 1], "path": ["a", "a", "b"], "operator": ["", "", "O"], "x": [None, 5, 7.5]}
    assert as_table([]) == []
    shown = [{"name": "radio", "columns": ["key", "value"], "values": [["path", "b"], ["path", "a"]]}]
    assert listed(shown) == ["b", "a"]
    runs = [{"name": "run", "columns": ["time", "run"], "values": [[2, "r2"], [1, "r1"], [1, "r2"], [0, None]]}]
    assert listed(runs) == ["r2", "r1"]
    # Grafana lists every column: why a variable's query has one.
    assert listed([{"name": "run", "columns": ["time", "run", "n"], "values": [[2, "r2", 1.0]]}]) == ["r2", "1"]
    cut = {"results": [{"series": [{"name": "a", "columns": ["time"], "values": [[1]], "partial": True}]}]}
    with pytest.raises(InfluxError, match="cut the answer short"):
        series_of(200, json.dumps(cut).encode())


@given(
    st.sampled_from([200, 204, 400, 401, 500]),
    st.binary(max_size=40) | any_answer(),
)
def test_any_answer_is_read_or_refused(status, body):
    try:
        series = series_of(status, body)
    except InfluxError:
        return
    assert len(as_table(series)) <= 1
    assert len(as_series(series, "$tag_x")) <= sum(len(one["columns"]) or 1 for one in series)
    assert rows_of(series) <= sum(len(one.get("values", ())) for one in series)
    assert all(isinstance(text, str) for text in listed(series))


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "name": st.text(),
                "columns": st.lists(st.text(max_size=3), max_size=3),
                "values": st.lists(st.lists(st.none() | st.integers() | st.text(max_size=3), max_size=3), max_size=3),
            }
        ),
        max_size=3,
    )
)
def test_an_answer_whose_rows_do_not_fit_is_refused(series):
    body = json.dumps({"results": [{"series": series}]}).encode()
    fits = all(len(row) == len(one["columns"]) for one in series for row in one["values"])
    if fits:
        assert series_of(200, body) == series
    else:
        with pytest.raises(AwayError, match="no InfluxDB"):
            series_of(200, body)
