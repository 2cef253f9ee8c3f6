"""``check`` runs every query of a board against a real InfluxDB."""

import json

import pytest

from tandem_dashboards import variables
from tandem_dashboards.board import Board, Row
from tandem_dashboards.cli import main
from tandem_dashboards.expressions import chosen, last, mean
from tandem_dashboards.grafana.macros import Range
from tandem_dashboards.influx import AwayError, Influx, InfluxError
from tandem_dashboards.influxql import INTERVAL, select
from tandem_dashboards.kinds import table, time_series
from tandem_dashboards.overrides import Override
from tandem_dashboards.panel import series
from tandem_dashboards.query_runner import run_board
from tandem_server.store import Influx as Writer
from tandem_server.store.private import account_password

NOW_MS = 1_800_000_000_000
SPAN = Range(NOW_MS - 600_000, NOW_MS)
PROBES = ("p1", "p2", 'p/3"', "p.4 (x|y)")


@pytest.fixture(scope="module")
def reader(private_influx):
    password = account_password(private_influx.folder)
    lines = []
    for probe in PROBES:
        tags = probe.replace(" ", r"\ ")
        for path in ("a", "b"):
            common = f"probe={tags},boot=b0,path={path},operator=O{path}"
            lines.append(f'modem_health,{common} state="usable" {(NOW_MS - 60_000) * 1_000_000}')
            for second in range(0, 600, 5):
                when = (NOW_MS - second * 1000) * 1_000_000
                lines.append(f'radio,{common},rat=lte rsrp_dbm={-90 - second / 100},state="idle" {when}')
        lines.append(f"expected,probe={tags} seen=1i {NOW_MS * 1_000_000}")
    for n in range(3):
        tags = f"probe=p1,boot=b0,run=r{n},kind=mptcp,path=a,campaign=c{n % 2}"
        lines.append(f"run_begun,{tags} number=1i {(NOW_MS - n * 60_000) * 1_000_000}")
    lines.append(f"run_begun,probe=p1,boot=b0,run=old,kind=tcp,path=a number=1i {(NOW_MS - 9_000_000) * 1_000_000}")
    lines.append(f'campaign,probe=p1,boot=b0,campaign=c0 state="running" {NOW_MS * 1_000_000}')
    with Writer(private_influx.url, private_influx.database, "tandem", password) as writer:
        assert writer.write(lines) == []
    with Influx(private_influx.url, private_influx.database, "tandem", password) as database:
        yield database


def board():
    where = [chosen("probe"), chosen("path")]
    over_time = select(mean("rsrp_dbm"), of="radio", where=where, by=["probe", "path"], every=INTERVAL)
    now = select(last("state"), of="modem_health", where=where, by=["probe"])
    panels = (
        time_series("RSRP", "What it shows.", series(over_time, "$tag_probe $tag_path"), cadence="5s"),
        table("Now", "What it shows.", now, show={"probe": Override(), "state": Override(cell="colour")}),
    )
    choices = (variables.probe(), variables.campaign(), variables.operator(), variables.modem(), variables.run())
    made = Board("tandem-x", "X", "x", choices, (Row("One", panels),))
    return json.loads(made.to_text())


def test_every_query_is_asked_and_the_runs_are_those_of_the_time_range_the_newest_first(reader):
    picked, answers = run_board(board(), reader, SPAN)
    assert [a.error for a in answers] == [None] * 7
    assert sorted(picked["probe"].values) == sorted(PROBES)
    assert picked["probe"].everything == ".*"
    assert picked["run"].values == ("r0",)
    by_name = {a.query.name: a for a in answers}
    assert by_name["RSRP"].rows == 8 * 120
    assert "time(5s)" in by_name["RSRP"].text
    assert by_name["Now"].rows == 4
    assert [row[1] for one in by_name["run"].series for row in one["values"]] == ["r0", "r1", "r2"]
    _, answers = run_board(board(), reader, SPAN, {"campaign": ["c1"]})
    runs = next(a for a in answers if a.query.name == "run")
    assert [row[1] for one in runs.series for row in one["values"]] == ["r1"]
    _, answers = run_board(board(), reader, SPAN, {"probe": list(PROBES[1:]), "path": ["a"]})
    rsrp = next(a for a in answers if a.query.name == "RSRP")
    assert [one["tags"]["probe"] for one in rsrp.series] == sorted(PROBES[1:])


def test_a_hostile_name_finds_its_own_points_only(reader):
    for probe in PROBES:
        picked, answers = run_board(board(), reader, SPAN, {"probe": [probe], "path": ["b"]})
        assert picked["operator"].values == ("Oa", "Ob")
        rsrp = next(a for a in answers if a.query.name == "RSRP")
        assert [one["tags"] for one in rsrp.series] == [{"probe": probe, "path": "b"}]


def test_a_query_that_the_database_refuses_is_an_error_with_its_words(reader):
    broken = board()
    broken["panels"][1]["targets"][0]["query"] = 'SELECT mean("rsrp_dbm" FROM "radio"'
    _, answers = run_board(broken, reader, SPAN)
    assert [a.query.name for a in answers if a.error] == ["RSRP"]
    with pytest.raises(InfluxError, match="error parsing query"):
        reader.query("SELECT")


@pytest.mark.usefixtures("reader")
def test_the_command_tells_rows_errors_and_time(private_influx, tmp_path, capsys):
    secret = tmp_path / "password"
    secret.write_text(account_password(private_influx.folder) + "\n")
    where = ["--url", private_influx.url, "--user", "tandem", "--password-file", str(secret), "--board", "radio"]
    when = ["--from", str(SPAN.from_ms), "--to", str(SPAN.to_ms)]
    assert main(["check", *where, *when, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["summary"]["errors"] == 0
    assert {q["name"] for q in said["queries"] if q["rows"]} >= {"probe", "operator", "path", "RSRP of each modem"}
    # Nobody handed over, so there are no marks: with --rows that is an error.
    assert main(["check", *where, *when, "--rows"]) == 1
    told = capsys.readouterr()
    assert "tandem-radio: annotation 'Handovers': no rows" in told.err
    assert "1 boards, 2 panels" in told.out


def test_a_wrong_account_or_address_is_one_line(private_influx, tmp_path, capsys):
    secret = tmp_path / "password"
    secret.write_text("wrong")
    assert main(["check", "--url", private_influx.url, "--password-file", str(secret)]) == 2
    assert "authorization failed" in capsys.readouterr().err
    with pytest.raises(AwayError, match="no address; hint"):
        Influx("ftp://x", "tandem", "", "")
    assert main(["check", "--url", private_influx.url, "--var", "probe"]) == 2
    assert "--var probe: not NAME=VALUE" in capsys.readouterr().err
