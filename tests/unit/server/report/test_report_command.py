"""``tandem-server report`` as a person starts it, over a real InfluxDB that holds a made-up campaign."""

import json
from pathlib import Path

import pytest

from support.synthetic_campaign import Synthetic
from support.synthetic_folder import campaign, with_database, write
from tandem_server.analysis.evaluate import evaluate
from tandem_server.analysis.folder import load
from tandem_server.analysis.summary import summary
from tandem_server.cli.main import main
from tandem_server.store import PrivateInflux

pytestmark = pytest.mark.usefixtures("no_pictures")
MADE = Synthetic(seconds=110.0)


@pytest.fixture(scope="module")
def folder(influx_binary, tmp_path_factory) -> Path:
    return with_database(MADE, tmp_path_factory.mktemp("command") / "campaign", influx_binary)


def test_starts_the_folders_own_database_and_writes_both_files(folder, capsys):
    assert main(["report", str(folder)]) == 0
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


def test_asks_the_database_that_answers_and_starts_no_second_one_on_files_in_use(folder, influx_binary, capsys):
    def at(url):
        there = {**campaign(MADE), "store": {"url": url, "database": "tandem"}}
        (folder / "campaign.json").write_text(json.dumps(there))
        return main(["report", str(folder), "--json"]), capsys.readouterr()

    with PrivateInflux(influx_binary, folder / "server" / "influxdb", 0) as private:
        status, told = at(private.url)
        assert (status, json.loads(told.out)["records"]["lost"]) == (0, 0)
        status, told = at("http://127.0.0.1:9")
        assert (status, f"held by process {private.pid}" in told.err) == (1, True)


def test_missing_records_end_in_1_and_are_counted(influx_binary, tmp_path, capsys):
    numbered = [i for i, (_, seq, _) in enumerate(MADE.source.points) if seq is not None]
    folder = with_database(MADE, tmp_path / "campaign", influx_binary, skipped=numbered[10:13])
    assert main(["report", str(folder)]) == 1
    assert f"missing: 3 of {MADE.seq} records are not in the database" in capsys.readouterr().err
    assert json.loads((folder / "summary.json").read_text())["records"]["lost"] == 3


def test_without_database_and_ledger_the_rest_is_reported(tmp_path, capsys):
    folder = write(MADE, tmp_path / "campaign")
    assert main(["report", str(folder)]) == 1
    err = capsys.readouterr().err
    assert ["holds no database" in err, "registry.sqlite is not there" in err, "Traceback" in err] == [
        True,
        True,
        False,
    ]
    assert len(json.loads((folder / "summary.json").read_text())["runs"]) == len(MADE.manifests)
    assert not (folder / "server").exists()


def test_bad_folder_is_one_line_and_2_and_one_that_cannot_be_written_3(tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    folder = write(MADE, tmp_path / "campaign")
    (folder / "summary.json.tmp").mkdir()  # root may write anywhere: a folder in the draft's place stops it
    for place, status, words in (
        (tmp_path / "absent", 2, "absent"),
        (tmp_path / "empty", 2, "empty"),
        (folder, 3, "summary.json"),
    ):
        assert main(["report", str(place)]) == status
        err = capsys.readouterr().err
        assert (err.count("\n"), words in err) == (1, True), err
