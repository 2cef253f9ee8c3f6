"""Boards fit together, what is committed is what they make, and those of one run and one probe never ask for too much."""

import json
import re

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder

from tandem.schema.metrics import MEASUREMENTS
from tandem_dashboards import boards, generate, variables
from tandem_dashboards.board import Annotation, Board, BoardError, Row, events
from tandem_dashboards.cli import main
from tandem_dashboards.expressions import chosen, mean
from tandem_dashboards.grafana.frames import TIME, Frame
from tandem_dashboards.grafana.macros import Range
from tandem_dashboards.influxql import QueryError, UnknownNameError, select
from tandem_dashboards.kinds import table, time_series
from tandem_dashboards.overrides import Override
from tandem_dashboards.panel import PanelError, series
from tandem_dashboards.panels import run
from tandem_dashboards.preview.charts import configured
from tandem_dashboards.preview.charts import time_series as chart
from tandem_dashboards.preview.fields import PALETTE

BOARDS = list(boards.BOARDS)


def plain(value):
    return json.loads(json.dumps(value, cls=JSONEncoder))


def test_what_is_committed_is_what_the_boards_make_and_another_file_is_drift(tmp_path, capsys):
    assert generate.boards.drift() == [], "run: python -m tandem_dashboards generate"
    generate.boards.write(tmp_path)
    name = f"{BOARDS[0]}.json"
    assert generate.boards.drift(tmp_path) == []
    (tmp_path / name).write_text((tmp_path / name).read_text().replace("Tandem", "Random"))
    (tmp_path / "gone.json").write_text("{}")
    assert generate.boards.drift(tmp_path) == sorted([name, "gone.json"])
    assert main(["generate", "--check", "--out", str(tmp_path)]) == 1
    assert "gone.json: not what the boards make; run python -m tandem_dashboards generate" in capsys.readouterr().err
    assert main(["generate", "--out", str(tmp_path)]) == 0
    assert main(["generate", "--check", "--out", str(tmp_path)]) == 0


def test_panels_say_what_they_show_neither_overlap_nor_leave_the_grid_and_have_numbers_of_their_own():
    for name in BOARDS:
        taken, numbers = set(), []
        for panel in _panels(plain(boards.load(name).to_sdk())):
            where = name, panel["title"]
            assert panel["type"] in ("row", "text") or len(panel["description"]) > 40, where
            numbers.append(panel["id"])
            place = panel["gridPos"]
            assert place["x"] + place["w"] <= 24, where
            cells = {(place["x"] + i, place["y"] + k) for i in range(place["w"]) for k in range(place["h"])}
            assert not cells & taken, where
            taken |= cells
        assert len(set(numbers)) == len(numbers), name


def _panels(board):
    for panel in board["panels"]:
        yield panel
        yield from panel.get("panels", [])


def _chart(*where):
    return time_series("Chart", "What it shows.", select(mean("rsrp_dbm"), of="radio", where=where))


def test_variables_and_boards_that_there_are_not_are_named():
    with pytest.raises(BoardError, match=r"panel 'Chart' uses \$probe, which is no variable before it; there are none"):
        Board("tandem-x", "X", "x", (), (Row("One", (_chart(chosen("probe")),)),))
    with pytest.raises(BoardError, match=r"variable 'operator' uses \$probe"):
        Board("tandem-x", "X", "x", (variables.operator(), variables.probe()), ())
    with pytest.raises(BoardError, match="there is no board 'nothing'; there are"):
        boards.load("nothing")
    with pytest.raises(QueryError, match="at most once"):
        variables.Variable("x", "X", "SELECT a FROM b WHERE $timeFilter AND $timeFilter", "runs")
    query = select(mean("rsrp_dbm"), of="radio", by=["path"])
    assert series(query, "$tag_path ($col)").alias == "$tag_path ($col)"
    with pytest.raises(QueryError, match="is not grouped by 'path-rsrp'; it is by path"):
        series(query, "$tag_path-rsrp")


def test_a_table_names_columns_that_its_queries_have():
    query = select(mean("rsrp_dbm"), of="radio", by=["probe"])
    with pytest.raises(PanelError, match="no query has the column 'rsrq_db'; they have Time, probe, rsrp_dbm"):
        table("T", "What it shows.", query, show={"rsrq_db": Override()})
    with pytest.raises(PanelError, match="several queries need joined_by"):
        table("T", "What it shows.", query, query, show={"probe": Override()})
    with pytest.raises(PanelError, match="a join renames the times"):
        table("T", "What it shows.", query, query, show={"Time": Override()}, joined_by="probe")
    with pytest.raises(PanelError, match="two queries have a column 'rsrp_dbm'"):
        table("T", "What it shows.", query, query, show={"probe": Override()}, joined_by="probe")


def test_an_annotation_that_grafana_would_misread_is_refused():
    query = select("number", "run", "kind", of="run_begun")
    assert Annotation("Runs", query, "run", "kind").select.text.startswith('SELECT "number"')
    with pytest.raises(QueryError, match="would take the column 'number' for its tag"):
        Annotation("Runs", query, "kind", "number", tags=("run",))
    with pytest.raises(QueryError, match="neither group nor have windows"):
        Annotation("Runs", select("number", "kind", of="run_begun", by=["run"]), "kind", "number")
    with pytest.raises(UnknownNameError, match="no event kind 'handovers'"):
        events("Handovers", ["handovers"])


# --- the boards of one run and of one probe


def panel_json(panel):
    return plain(panel.to_sdk(1, 0, 0))


def test_readings_of_a_run_are_drawn_as_they_came_and_silence_is_a_gap():
    for panel in (run.goodput(), run.shares(), run.rtt()):
        (query,) = panel.queries
        assert "GROUP BY time" not in query.select.text
        custom = panel_json(panel)["fieldConfig"]["defaults"]["custom"]
        assert (custom["spanNulls"], custom["insertNulls"]) == (False, 1000)


@pytest.mark.parametrize(("apart_ms", "strokes"), [(1000, 1), (1001, 4)])
def test_the_preview_joins_readings_no_farther_apart_than_the_panel_says(apart_ms, strokes):
    """Four groups of five readings."""
    begin = 1_800_000_000_000
    when = [begin + group * (400 + apart_ms) + n * 100 for group in range(4) for n in range(5)]
    frame = Frame("a", {TIME: list(when), "goodput_bit_per_s": [1e6] * 20}, "A")
    drawn = chart(configured(panel_json(run.goodput()), [frame]), Range(begin, begin + 10_000), (800, 300), ())
    path = re.findall(rf'<path d="([^"]*)"[^>]*stroke: {PALETTE[0].lower()}', drawn)
    assert [one.count("M") for one in path] == [strokes]


def test_what_is_many_is_asked_for_one_run_one_day_or_the_last_minutes_only():
    for panel in boards.load("run").panels():
        for query in panel.queries:
            assert re.search(r"\$\{(run|pair|probe):regex\}", query.select.text), panel.title
    probe = boards.load("probe")
    (now,) = (row for row in probe.rows if row.title == "Now")
    for panel in now.panels:
        for query in panel.queries:
            assert re.search(r"time >= now\(\) - \d+[sm]\b", query.select.text), panel.title
    by_run = {name for name, of in MEASUREMENTS.items() if "run" in of.tags}
    for panel in probe.panels():
        for query in panel.queries:
            if query.select.measurement in by_run:
                assert '"run" =~ /^${run:regex}$/' in query.select.text or panel.time_from == "24h", panel.title
            elif "now()" not in query.select.text:
                assert "${resolution:raw}" in query.select.text, panel.title


def test_links_lead_to_the_run_that_was_clicked_and_the_board_is_asked_anew_every_five_seconds():
    text = boards.load("probe").to_text()
    assert json.loads(text)["refresh"] == "5s"
    urls = {url for url in re.findall(r'"url": "([^"]+)"', text) if "/d/tandem-run" in url}
    assert urls
    assert all("var-run=${__data.fields.run:percentencode}" in url for url in urls)
