"""The preview draws every kind of panel, from answers of any shape, and lets nothing of them become markup."""

import json
import re
import xml.etree.ElementTree as Tree
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tandem_dashboards import expressions as x
from tandem_dashboards.board import Board, Row
from tandem_dashboards.grafana.frames import Frame, TransformError, transformed
from tandem_dashboards.grafana.macros import Range
from tandem_dashboards.influxql import INTERVAL, select
from tandem_dashboards.kinds import (
    bar_chart,
    bar_gauge,
    histogram,
    markers,
    stat,
    state_timeline,
    table,
    time_series,
    words,
    world,
)
from tandem_dashboards.overrides import Override, cell, to_board
from tandem_dashboards.panel import series
from tandem_dashboards.preview.charts import middle_of
from tandem_dashboards.preview.fields import written
from tandem_dashboards.preview.page import page
from tandem_dashboards.query_runner import Answer, queries_of, run_board

SPAN = Range(1_800_000_000_000, 1_800_000_600_000)
RSRP = select(x.mean("rsrp_dbm"), of="radio", by=["path"], every=INTERVAL)
STATE = select(x.last("state"), of="radio", by=["path"], every=INTERVAL)
POLLS = select(x.last("state"), x.total("polls_ok"), of="modem_health", by=["path"])
PLACES = select(x.last("latitude_deg"), x.last("longitude_deg"), of="position", by=["probe"])
GOODPUT = select(x.mean("goodput_bit_per_s"), of="run", by=["kind"])
TOLD = "What it shows, where from, what empty means."


def whole_board():
    live = Override(links=(to_board("tandem-probe", "Live", probe=cell("path")),))
    panels = (
        time_series("Lines", TOLD, series(RSRP, "$tag_path"), grades="areas", sums=("mean", "max")),
        time_series("Bars", TOLD, RSRP, GOODPUT, style="bars", stacked=True, fill=40),
        time_series("Steps", TOLD, RSRP, style="steps", grades="lines", logarithmic=True),
        time_series("Shares", TOLD, series(GOODPUT, "$tag_kind"), stacked="shares", fill=60, gap_ms=1000),
        time_series("Points", TOLD, RSRP, style="points"),
        state_timeline("States", TOLD, series(STATE, "$tag_path"), RSRP),
        stat("Figures", TOLD, RSRP, background=True),
        stat("Words", TOLD, STATE, texts=True),
        bar_gauge("Gauge", TOLD, RSRP, override=Override(low=-120, high=-60)),
        bar_chart("Chart", TOLD, POLLS, across="path"),
        bar_chart("Parts", TOLD, POLLS, across="path", shares=True),
        histogram("Histogram", TOLD, RSRP),
        table(
            "Table",
            TOLD,
            POLLS,
            show={"path": live, "state": Override(cell="colour"), "polls_ok": Override(cell="gauge")},
        ),
        world("Map", TOLD, PLACES, layers=(markers("Probes", latitude="latitude_deg", longitude="longitude_deg"),)),
        world("Areas", TOLD, POLLS, layers=(markers("Areas", geohash="path", colour_by="state", text="path"),)),
        words("Text", "A [link](https://example.org) and `code`.\n\n- one\n- two"),
    )
    made = Board("tandem-x", "X", "x", (), (Row("One", panels[:9]), Row("Two", panels[9:])))
    return json.loads(made.to_text())


def answer(query, values):
    """An answer in the query's own columns: two series of ``values`` (time, figure)."""
    columns = re.findall(r' AS "(\w+)"|SELECT "(\w+)"', query.text)
    names = ["time", *(a or b for a, b in columns)]
    grouped = re.findall(r'GROUP BY .*?"(\w+)"', query.text)
    made = [
        {
            "name": "radio",
            "tags": {grouped[0]: tag} if grouped else {},
            "columns": names,
            "values": [[when, *([value] * (len(names) - 1))] for when, value in values],
        }
        for tag in ("<b>a</b>", "b")
    ]
    return Answer(query, query.text, len(values), 0.0, None, made)


def drawn(values):
    board = whole_board()
    return page(board, SPAN, {}, [answer(query, values) for query in queries_of(board)])


class Checked(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags = []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))


def test_every_kind_of_panel_is_drawn_and_silence_said():
    html = drawn([(SPAN.from_ms + n * 10_000, 40.0 + n) for n in range(20)])
    body = html[html.index("<main") : html.index("</main>") + len("</main>")].replace("<br>", "<br/>")
    Tree.fromstring(body)  # noqa: S314 made here, of a page made here
    titles = re.findall(r"<h2[^>]*>(.*?)</h2>", html)
    assert len(titles) == 16 + 2
    assert "draws no" not in html
    assert html.count("No data") == 0
    assert "&lt;b&gt;a&lt;/b&gt;" in html
    assert "<b>a</b>" not in html
    assert "<ul><li>one</li><li>two</li></ul>" in html
    board = whole_board()
    html = page(board, SPAN, {}, [Answer(q, q.text, 0, 0.0, None, []) for q in queries_of(board)])
    assert html.count("No data") == 13
    html = page(board, SPAN, {}, [Answer(q, "SELECT <", 0, 0.0, "no < such", []) for q in queries_of(board)])
    assert html.count("no &lt; such") == 15


def test_nothing_is_fetched_or_run():
    parser = Checked()
    parser.feed(drawn([(SPAN.from_ms, 1.0)]))
    names = {tag for tag, _ in parser.tags}
    assert not names & {"script", "link", "img", "iframe", "object", "base"}
    assert not any(key.startswith("on") or key in ("src", "href") for _, attrs in parser.tags for key in attrs)
    assert all(value.startswith("#") for _, attrs in parser.tags for key, value in attrs.items() if key == "xlink:href")


VALUES = st.none() | st.floats(allow_nan=False, allow_infinity=False, width=32) | st.text(max_size=8) | st.booleans()


KNOWN = {
    "html", "head", "meta", "title", "style", "body", "header", "main", "section", "div", "h1", "h2", "p", "b", "a", "br", "code",
    "svg", "g", "text", "path", "defs", "use", "clippath", "rect", "span", "i", "u", "small", "table", "tr", "th", "td", "ul", "li",
}  # fmt: skip


@settings(max_examples=settings.default.max_examples // 5)  # each draws every kind of panel
@given(st.lists(st.tuples(st.integers(SPAN.from_ms - 1000, SPAN.to_ms + 1000), VALUES), max_size=6))
def test_any_answer_is_drawn(values):
    parser = Checked()
    parser.feed(drawn(values))
    names = {tag for tag, _ in parser.tags}
    assert names <= KNOWN


def test_what_is_shown_as_now_is_as_of_the_time_range_s_end():
    """Of data that ended long ago a live board's row Now would be empty else."""

    class Database:
        def __init__(self):
            self.queries = []

        def query(self, influxql):
            self.queries.append(influxql)
            return []

    now = select(x.last("state"), of="radio", by=["path"], recent="30s")
    board = json.loads(Board("tandem-x", "X", "x", (), (Row("Now", (stat("Now", TOLD, now),)),)).to_text())
    database = Database()
    run_board(board, database, SPAN, now_ms=SPAN.to_ms)
    run_board(board, database, SPAN)
    assert [f"time >= {SPAN.to_ms}ms - 30s" in query for query in database.queries] == [True, False]
    assert ["time >= now() - 30s" in query for query in database.queries] == [False, True]


def test_figures_are_written_with_their_units():
    rows = [
        (12_345_678, "bps", None, "12.3 Mb/s"),
        (999, "decbytes", None, "999 B"),
        (-97.25, "dBm", 1, "-97.2 dBm"),
        (0.004, "s", None, "4 ms"),
        (93_600, "s", None, "1.08 days"),
        (1500, "ms", None, "1.5 s"),
        (0.5, "percentunit", None, "50 %"),
        (1234.5, "lengthm", None, "1.23 km"),
        (3, "suffix:MHz", None, "3 MHz"),
        (26_300_000, "none", None, "26300000"),
        (0, "bps", None, "0 b/s"),
        (0.000012, "none", None, "0.000012"),
    ]
    assert [
        (value, unit, decimals, text) for value, unit, decimals, text in rows if written(value, unit, decimals) != text
    ] == []


def test_tables_are_joined_as_grafana_does():
    one = Frame("a", {"Time": [1, 2], "probe": ["p", "q"], "x": [1.0, 2.0]}, "A")
    two = Frame("b", {"Time": [3], "probe": ["q"], "y": [5.0]}, "B")
    (made,) = transformed([one, two], [{"id": "joinByField", "options": {"byField": "probe", "mode": "outer"}}])
    assert made.columns == {
        "probe": ["p", "q"],
        "Time 1": [1, 2],
        "x": [1.0, 2.0],
        "Time 2": [None, 3],
        "y": [None, 5.0],
    }
    (kept,) = transformed(
        [made],
        [
            {"id": "filterFieldsByName", "options": {"include": {"names": ["y", "probe"]}}},
            {"id": "organize", "options": {"indexByName": {"y": 0, "probe": 1}}},
        ],
    )
    assert list(kept.columns) == ["y", "probe"]
    (merged,) = transformed([one, two], [{"id": "merge", "options": {}}])
    assert merged.length == 3
    with pytest.raises(TransformError, match="'sortBy' is not known"):
        transformed([one], [{"id": "sortBy"}])


def test_the_middle_of_an_area():
    latitude, longitude = middle_of("u33dc1")
    assert (round(latitude, 2), round(longitude, 2)) == (52.52, 13.41)
    assert middle_of("") is None
    assert middle_of("u33da!") is None
