"""Boards fit together, and what is committed is what they make."""

import json

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder

from tandem_dashboards import boards, generate, variables
from tandem_dashboards.board import Annotation, Board, BoardError, Row, events
from tandem_dashboards.cli import main
from tandem_dashboards.expressions import chosen, mean
from tandem_dashboards.influxql import QueryError, UnknownNameError, select
from tandem_dashboards.kinds import table, time_series
from tandem_dashboards.overrides import Override
from tandem_dashboards.panel import PanelError, series

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


@pytest.mark.parametrize("name", BOARDS)
def test_panels_say_what_they_show_neither_overlap_nor_leave_the_grid_and_have_numbers_of_their_own(name):
    taken, numbers = set(), []
    for panel in _panels(plain(boards.load(name).to_sdk())):
        assert panel["type"] in ("row", "text") or len(panel["description"]) > 40, panel["title"]
        numbers.append(panel["id"])
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {(place["x"] + i, place["y"] + k) for i in range(place["w"]) for k in range(place["h"])}
        assert not cells & taken
        taken |= cells
    assert len(set(numbers)) == len(numbers)


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
