"""The boards of one run and of plays: what they ask at 100 ms, and what they never ask over months."""

import json
import re

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder

from tandem_dashboards import registry
from tandem_dashboards.conditions import chosen
from tandem_dashboards.grafana.frames import TIME, Frame
from tandem_dashboards.grafana.times import Range
from tandem_dashboards.influxql import select
from tandem_dashboards.kinds import time_series
from tandem_dashboards.look import Look
from tandem_dashboards.panels import run
from tandem_dashboards.preview.draw.chart import draw
from tandem_dashboards.target import series


def plain(panel):
    return json.loads(json.dumps(panel.to_sdk(1, 0, 0), cls=JSONEncoder))


@pytest.mark.parametrize("panel", [run.goodput(), run.shares(), run.rtt()], ids=["goodput", "shares", "rtt"])
def test_readings_of_a_run_are_drawn_as_they_came_and_silence_is_a_gap(panel):
    (asked,) = panel.queries
    assert "GROUP BY time" not in asked.select.text
    assert asked.select.every is None
    assert '"run" =~ /^${run:regex}$/' in asked.select.text
    custom = plain(panel)["fieldConfig"]["defaults"]["custom"]
    assert (custom["spanNulls"], custom["insertNulls"]) == (False, 1000)


def test_shares_are_parts_of_all_at_the_instant():
    custom = plain(run.shares())["fieldConfig"]["defaults"]["custom"]
    assert custom["stacking"]["mode"] == "percent"


def test_without_gaps_or_stacking_a_chart_says_neither():
    asked = select("goodput_bit_per_s", of="run", where=[chosen("probe")], by=["kind"])
    custom = plain(time_series("t", "d", series(asked), looks={"a": Look(as_points=True)}))["fieldConfig"]
    assert "insertNulls" not in custom["defaults"]["custom"]
    assert custom["defaults"]["custom"]["stacking"]["mode"] == "none"
    assert {"id": "custom.drawStyle", "value": "points"} in custom["overrides"][0]["properties"]


def test_every_query_of_the_run_board_is_held_to_the_run_its_pair_or_its_probe():
    for panel in registry.load("run").panels():
        for query in panel.queries:
            assert re.search(r"\$\{(run|pair|probe):regex\}", query.select.text), panel.title


@pytest.mark.parametrize(("apart_ms", "strokes"), [(1000, 1), (1001, 4)])
def test_the_preview_joins_readings_no_farther_apart_than_the_panel_says(apart_ms, strokes):
    """Four groups of five readings."""
    begin = 1_800_000_000_000
    when = [begin + group * (400 + apart_ms) + n * 100 for group in range(4) for n in range(5)]
    frame = Frame("a", {TIME: list(when), "goodput_bit_per_s": [1e6] * 20}, "A")
    panel = plain(run.goodput())
    path = re.findall(r' d="([^"]*)"', draw(panel, [frame], Range(begin, begin + 10_000), 800, 300, ()))
    assert [one.count("M") for one in path] == [strokes]
