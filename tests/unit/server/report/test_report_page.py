"""The report's page and ``tandem-server report`` as a person starts it, over a real InfluxDB that holds a made-up campaign: what it says,
that it stands alone, and that nothing from outside becomes markup."""

import json
import os
from pathlib import Path

import pictures
import pytest

from support.html_page import Page
from support.synthetic_campaign import Synthetic
from support.synthetic_folder import campaign, page_of, with_database, write
from tandem_server.analysis.evaluate import Evaluation, evaluate
from tandem_server.analysis.folder import load
from tandem_server.analysis.summary import summary
from tandem_server.cli.main import main
from tandem_server.store import PrivateInflux


def evaluated(made: Synthetic, folder: Path) -> Evaluation:
    return evaluate(load(write(made, folder / "campaign")), made.source, made.ledger())


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> str:
    return page_of(evaluated(Synthetic(), tmp_path_factory.mktemp("whole")))


def test_whole_campaign_says_that_everything_arrived_then_the_commute_the_runs_and_what_is_lacking(whole):
    page = Page(whole)
    assert "Everything arrived." in page.text
    assert "Not everything is here" not in page.text
    told = ("Handovers detected 8 of 8", "Inputs of the bench", "Outcomes:", "capacity offered")
    assert [words for words in told if words not in page.text] == []
    ids = [a["id"] for tag, a in page.tags if tag == "section" and "id" in a]
    assert ids[:2] == ["commute", "runs"]
    assert ids[-1] == "lacking"
    assert whole.index("Everything arrived.") < whole.index('id="commute"')
    named = [a for tag, a in page.tags if "data-lacking" in a]
    assert f"{len(named)} figures that this campaign lacks" in page.text


def test_the_commute_is_one_picture_of_radio_events_capacity_and_goodput(whole):
    commute = Page(whole[whole.index('<section id="commute">') : whole.index('<section id="runs">')])
    assert sum(tag == "svg" and a["class"] == "paper live" for tag, a in commute.tags) == 1
    marks = {(a["data-mark"], a["data-series"]) for _, a in commute.tags if "data-mark" in a}
    of_each = (("trace", "operator"), ("moments", "handover"), ("dots", "signal drop"), ("area", "MPTCP on"))
    assert {(mark, f"{name} {o}") for mark, name in of_each for o in "AB"} <= marks
    assert {("area", "capacity offered"), ("bands", "")} <= marks
    everywhere = {(a["data-mark"], a["data-series"]) for _, a in Page(whole).tags if "data-mark" in a}
    assert {("trace", "TCP on A"), ("area", "TCP on A"), ("trace", "median"), ("stacks", "")} <= everywhere
    assert "nan" not in "".join(a.get("d") or "" for _, a in Page(whole).tags)


def test_names_and_reasons_from_outside_are_escaped(tmp_path):
    evil = "<script>alert(1)</script>"
    made = Synthetic(seconds=60.0, paths={"a": evil, "b": '"><img src=x onerror=alert(2)>'})
    made.manifests[0]["failure"] = {"reason": "<b onmouseover=alert(3)>reset</b>", "retry": True}
    html = page_of(evaluated(made, tmp_path))
    page = Page(html)
    assert not any(tag == "img" for tag, _ in page.tags)
    assert sum(tag == "script" for tag, _ in page.tags) == 1
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)
    assert "failed: <b onmouseover=alert(3)>reset</b>" in page.text


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (lambda: Synthetic(seconds=60.0, runs=False), "No run was made."),
        (lambda: Synthetic(seconds=60.0, paths={"a": "A"}), "Goodput on A"),
        (lambda: Synthetic(seconds=60.0, events=False), "No event happened during a run."),
        (lambda: Synthetic(seconds=5.0), "no MPTCP run had the links for itself while still"),
    ],
    ids=["no runs", "one operator", "no events", "five seconds"],
)
def test_small_campaigns_give_a_page_that_says_what_there_is_not(made, says, tmp_path):
    assert says in Page(page_of(evaluated(made(), tmp_path))).text


@pytest.mark.usefixtures("no_pictures")
def test_field_campaign_has_no_scores_and_says_so(tmp_path):
    made = Synthetic()
    write(made, tmp_path / "campaign")
    (tmp_path / "campaign" / "truth.jsonl").unlink()
    e = evaluate(load(tmp_path / "campaign"), made.source, made.ledger())
    text = Page(page_of(e)).text
    assert "A field campaign has no truth" in text
    assert not [words for words in ("Inputs of the bench", "capacity offered") if words in text]
    assert {r.activity for r in e.runs} <= {"still", "moving"}
    assert e.missing == []


def test_long_campaigns_give_a_page_that_stays_small(tmp_path):
    assert len(page_of(evaluated(Synthetic(seconds=1500.0), tmp_path)).encode()) < 1_500_000


MADE = Synthetic(seconds=110.0)


def reported(*words: str) -> int:
    with pictures.none():
        return main(["report", *words])


@pytest.fixture(scope="module")
def folder(influx_binary, tmp_path_factory) -> Path:
    return with_database(MADE, tmp_path_factory.mktemp("command") / "campaign", influx_binary)


def test_starts_the_folders_own_database_and_writes_both_files(folder, capsys):
    assert reported(str(folder)) == 0
    out, err = capsys.readouterr()
    assert out.strip() == str(folder / "report.html")
    assert err == ""
    figures = json.loads((folder / "summary.json").read_text())
    assert figures["records"] == {"made": MADE.seq, "sent": MADE.seq, "in_database": MADE.seq, "lost": 0}
    assert figures["radio_records"] == 220
    assert "Everything arrived." in (folder / "report.html").read_text()
    assert not list(folder.glob("*.tmp"))
    from_memory = json.loads(json.dumps(summary(evaluate(load(folder), MADE.source, MADE.ledger()))))
    assert figures == from_memory, "the database says the same as the list in memory"


def test_asks_the_database_that_answers(folder, influx_binary, capsys):
    with PrivateInflux(influx_binary, folder / "server" / "influxdb", 0) as private:
        there = {**campaign(MADE), "store": {"url": private.url, "database": "tandem"}}
        (folder / "campaign.json").write_text(json.dumps(there))
        assert reported(str(folder), "--json") == 0
        assert json.loads(capsys.readouterr().out)["records"]["lost"] == 0


def test_does_not_start_a_second_database_on_files_in_use(folder, influx_binary, capsys):
    with PrivateInflux(influx_binary, folder / "server" / "influxdb", 0) as private:
        there = {**campaign(MADE), "store": {"url": "http://127.0.0.1:9", "database": "tandem"}}
        (folder / "campaign.json").write_text(json.dumps(there))
        assert reported(str(folder)) == 1
        assert f"held by process {private.pid}" in capsys.readouterr().err


def test_lost_records_are_the_headline_and_end_in_1_and_why_it_was_interrupted_is_told(influx_binary, tmp_path, capsys):
    skipped = [n for n, (_, seq, _) in enumerate(MADE.source.points) if seq in (7, 8, 9, 40)]
    folder = with_database(MADE, tmp_path / "campaign", influx_binary, skipped)
    there = json.loads((folder / "campaign.json").read_text())
    (folder / "campaign.json").write_text(json.dumps({**there, "stopped": "Ctrl-C after 20 s"}))
    assert reported(str(folder)) == 1
    lost = f"4 of {MADE.seq} records are not in the database"
    assert f"missing: {lost}" in capsys.readouterr().err
    assert json.loads((folder / "summary.json").read_text())["records"]["lost"] == 4
    text = Page((folder / "report.html").read_text()).text
    said = ("Not everything is here.", lost, "Missing numbers: 7–9, 40", "Ctrl-C after 20 s")
    assert [words for words in said if words not in text] == []


def test_without_database_and_ledger_the_rest_is_reported(tmp_path, capsys):
    folder = write(MADE, tmp_path / "campaign")
    assert reported(str(folder)) == 1
    err = capsys.readouterr().err
    assert "holds no database" in err
    assert "registry.sqlite is not there" in err
    assert "Traceback" not in err
    assert len(json.loads((folder / "summary.json").read_text())["runs"]) == len(MADE.manifests)
    assert not (folder / "server").exists()


def test_what_is_no_folder_is_one_line_and_2_and_one_that_cannot_be_written_3(tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    folder = write(MADE, tmp_path / "campaign")
    os.mkdir(folder / "summary.json.part")  # noqa: PTH102  (root may write anywhere: a folder in the draft's place stops it)
    for place, status, named in (
        (tmp_path / "absent", 2, "absent"),
        (tmp_path / "empty", 2, "empty"),
        (folder, 3, "summary.json"),
    ):
        assert reported(str(place)) == status
        (line,) = capsys.readouterr().err.splitlines()
        assert named in line
