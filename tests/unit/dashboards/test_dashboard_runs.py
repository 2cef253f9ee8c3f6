"""The boards of one run and of plays: what they ask at 100 ms, and what they never ask over months."""

import json
import re

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder

from tandem.schema.metrics import MEASUREMENTS
from tandem_dashboards import boards
from tandem_dashboards.grafana.frames import TIME, Frame
from tandem_dashboards.grafana.macros import Range
from tandem_dashboards.panels import run
from tandem_dashboards.preview.charts import configured, time_series
from tandem_dashboards.preview.fields import PALETTE


def plain(panel):
    return json.loads(json.dumps(panel.to_sdk(1, 0, 0), cls=JSONEncoder))


@pytest.mark.parametrize("panel", [run.goodput(), run.shares(), run.rtt()], ids=["goodput", "shares", "rtt"])
def test_readings_of_a_run_are_drawn_as_they_came_and_silence_is_a_gap(panel):
    (query,) = panel.queries
    assert "GROUP BY time" not in query.select.text
    assert query.select.every is None
    assert '"run" =~ /^${run:regex}$/' in query.select.text
    custom = plain(panel)["fieldConfig"]["defaults"]["custom"]
    assert (custom["spanNulls"], custom["insertNulls"]) == (False, 1000)


def test_queries_are_held_to_a_run_or_a_while_and_links_lead_to_the_run_that_was_clicked():
    for panel in boards.load("run").panels():
        for query in panel.queries:
            assert re.search(r"\$\{(run|pair|probe):regex\}", query.select.text), panel.title
    (row,) = (row for row in BOARD.rows if row.title == "Now")
    for panel in row.panels:
        for query in panel.queries:
            assert re.search(r"time >= now\(\) - \d+[sm]\b", query.select.text)
    text = BOARD.to_text()
    urls = {u for u in re.findall(r'"url": "([^"]+)"', text) if "/d/tandem-run" in u}
    assert urls
    assert all("var-run=${__data.fields.run:percentencode}" in url for url in urls)
    assert json.loads(text)["refresh"] == "5s"


@pytest.mark.parametrize(("apart_ms", "strokes"), [(1000, 1), (1001, 4)])
def test_the_preview_joins_readings_no_farther_apart_than_the_panel_says(apart_ms, strokes):
    """Four groups of five readings."""
    begin = 1_800_000_000_000
    when = [begin + group * (400 + apart_ms) + n * 100 for group in range(4) for n in range(5)]
    frame = Frame("a", {TIME: list(when), "goodput_bit_per_s": [1e6] * 20}, "A")
    drawn = time_series(configured(plain(run.goodput()), [frame]), Range(begin, begin + 10_000), (800, 300), ())
    path = re.findall(rf'<path d="([^"]*)"[^>]*stroke: {PALETTE[0].lower()}', drawn)
    assert [one.count("M") for one in path] == [strokes]


BOARD = boards.load("probe")
BY_RUN = {name for name, of in MEASUREMENTS.items() if "run" in of.tags}
PANELS = {f"{n} {panel.title}": panel for n, panel in enumerate(BOARD.panels())}


@pytest.mark.parametrize("title", PANELS)
def test_what_is_many_is_asked_for_one_run_or_one_day_only(title):
    panel = PANELS[title]
    for query in panel.queries:
        if query.select.measurement in BY_RUN:
            assert '"run" =~ /^${run:regex}$/' in query.select.text or panel.time_from == "24h"
        elif "now()" not in query.select.text:
            assert "${resolution:raw}" in query.select.text
