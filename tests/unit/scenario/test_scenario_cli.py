"""``tandem-bench scenario``."""

import json
import sys

from tandem_bench.cli.main import main
from tandem_bench.scenario import load


def test_list(capsys):
    assert main(["scenario", "list"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in ("commute", "still", "walk", "drive"))
    assert main(["scenario", "list", "--json"]) == 0
    assert [x["name"] for x in json.loads(capsys.readouterr().out)] == ["commute", "drive", "still", "walk"]


def test_show_is_a_table_of_phases_and_handovers(capsys):
    assert main(["scenario", "show", "commute", "--duration", "60", "--seed", "2"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("commute: 60 s, seed 2, ")
    assert all(phase in shown for phase in ("home", "walk", "tram", "ring road", "arrived", "whole"))
    assert "handovers: " in shown


def test_show_json_and_out(capsys, tmp_path):
    assert main(["scenario", "show", "still", "--duration", "10", "--json", "--out", str(tmp_path / "o")]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["summary"]["scenario"] == "still"
    assert shown["events"][0]["type"] == "phase"
    assert (tmp_path / "o" / "timeline-B.jsonl").exists()


def test_file_is_printed_to_begin_with(capsys, tmp_path):
    assert main(["scenario", "show", "commute", "--file"]) == 0
    path = tmp_path / "mine.toml"
    path.write_text(capsys.readouterr().out)
    assert load(path).phases == load("commute").phases


def test_mistakes_are_one_line_and_exit_2(capsys, tmp_path):
    bad = tmp_path / "bad.toml"
    bad.write_text("format = 1\n")
    for arguments in (["nonesuch"], [str(bad)], [], ["commute", "--duration", "3"], ["--replay", str(bad), str(bad)]):
        assert main(["scenario", "show", *arguments]) == 2
        out, err = capsys.readouterr()
        assert not out
        assert err.count("\n") == 1
        assert err.startswith("tandem-bench: ")


def test_a_picture_or_what_is_missing(capsys, tmp_path, monkeypatch):
    path = tmp_path / "p.svg"
    if main(["scenario", "show", "still", "--duration", "10", "--plot", str(path)]) == 0:
        first = path.read_bytes()
        assert first.startswith(b"<?xml")
        assert main(["scenario", "show", "still", "--duration", "10", "--plot", str(path)]) == 0
        assert path.read_bytes() == first, "the same twice"
    assert main(["scenario", "show", "still", "--duration", "10", "--plot", str(tmp_path / "p.gif")]) == 3
    capsys.readouterr()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["scenario", "show", "still", "--duration", "10", "--plot", str(path)]) == 3
    assert "hint: pip install -r requirements/notebook.txt" in capsys.readouterr().err
