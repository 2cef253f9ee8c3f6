"""Scenario files and their command: whatever is wrong is one line with file, line and mend."""

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem_bench.cli.main import main
from tandem_bench.scenario import ScenarioError, load, names, play, source

MINIMAL = """\
format = "tandem-scenario/1"
name = "mine"
like = "commute"

[[phase]]
activity = "still"
share = 1

[[phase]]
activity = "walk"
share = 2
speed_m_s = 1.5
"""


def written(tmp_path, text):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return path


def refusal(path):
    try:
        load(path)
    except ScenarioError as error:
        return str(error)
    return None


def test_all_that_come_with_the_bench_load_with_their_duration_and_seed_or_those_given():
    assert names() == ["commute", "drive", "still", "walk"]
    for name in names():
        scenario = load(name)
        assert scenario.name == name
        assert (scenario.duration_s, scenario.seed) == (180.0, 1)
        assert [o.plmn for o in scenario.operators] == ["00101", "00102"]
        given_ = load(name, 60, 9)
        assert (given_.duration_s, given_.seed) == (60.0, 9)


def test_a_file_of_ones_own(tmp_path):
    scenario = load(written(tmp_path, MINIMAL), 20)
    assert scenario.radio == load("commute").radio
    assert [p.activity for p in scenario.phases] == ["still", "walk"]
    assert len(play(scenario).operators["B"]) == 200


STILL = '[[phase]]\nactivity = "still"\nshare = 1\n'


def test_a_mistake_is_one_line_with_its_place(tmp_path):
    for old, new, line, says in (
        ("share = 2", "share = -1", 11, "share: -1 is out of range; give a number from"),
        ("share = 2", 'share = "much"', 11, "'much' is not a number"),
        ("share = 2\n", "", 9, "share is missing; add share"),
        ("speed_m_s = 1.5", "speed_m_s = 1.5\nspeed = 2", 13, "phase.speed: unknown key; remove it, or use one of"),
        ('activity = "walk"', 'activity = "swim"', 10, "use one of: still, walk"),
        ("share = 1\n", "share = 1\nspeed_m_s = 3\n", 8, "a still phase that moves"),
        ('like = "commute"', 'like = "comute"', 3, "'comute' does not fit; use one of: commute"),
        ('like = "commute"', "", 1, "0 operators; write two tables"),
        ("tandem-scenario/1", "tandem-scenario/9", 1, 'write format = "tandem-scenario/1"'),
        ("share = 2", "share = = 2", 11, "not TOML"),
        ("share = 2", "share = " + "9" * 5000, 1, "write shorter numbers"),
        ('name = "mine"', 'name = "mine"\nduration_s = 5', 3, "duration_s: 5 is out of range"),
        ('name = "mine"', 'name = "mine"\nradio = 5', 3, "5 is not a table"),
        (STILL, "[phases]\n", 5, "unknown key"),
        ("speed_m_s = 1.5", "speed_m_s = 1.5\nradius_m = 2", 13, "a curve too tight"),
        ("speed_m_s = 1.5", "speed_m_s = 1.5\nstop_every_s = 9", 13, "more stopping than going"),
    ):
        assert old in MINIMAL
        path = written(tmp_path, MINIMAL.replace(old, new))
        text = refusal(path)
        assert text.startswith(f"{path}:{line}: "), text
        assert says in text
        assert ("\n" in text, len(text) < 400) == (False, True)


def test_mistakes_about_operators_name_their_line(tmp_path):
    text = source("commute")
    for old, new, says in (
        ("earfcn = 1850 ", "earfcn = 60000 ", "60000 is in no known band"),
        ("bandwidth_mhz = 15", "bandwidth_mhz = 12", "LTE has no 12 MHz; use one of: 1.4, 3, 5, 10, 15, 20"),
        ('plmn = "00102"', "plmn = 102", "five or six digits in quotes"),
        ('name = "B"', 'name = "A"', "give the operators different names"),
        ("start_down_mbit_s = [29, 41]", "start_down_mbit_s = [41, 29]", "the smaller first"),
    ):
        assert text.count(old) == 1
        path = written(tmp_path, text.replace(old, new))
        line = max(i for i, t in enumerate(path.read_text().splitlines(), 1) if new.strip() in t)
        assert refusal(path).startswith(f"{path}:{line}: ")
        assert says in refusal(path)


def test_unknown_names_unreadable_files_durations_and_seeds_out_of_range(tmp_path):
    (tmp_path / "b.toml").write_bytes(b"\xff\xfe\x00")
    for what, says in (
        (("comute",), "no such scenario; give a file, or one of: commute, drive"),
        ((tmp_path,), "cannot be read"),
        ((tmp_path / "b.toml",), "not UTF-8"),
        (("a\x00b",), "."),
        *((("commute", *wrong), "give") for wrong in ((9.9, 1), (float("nan"), 1), (1e9, 1), (60, -1))),
    ):
        with pytest.raises(ScenarioError, match=says):
            load(*what)


@given(
    junk=st.one_of(st.text(max_size=200), st.binary(max_size=200), st.tuples(st.integers(0, 160), st.text(max_size=12)))
)
def test_whatever_a_file_holds_it_loads_or_is_refused(tmp_path_factory, junk):
    path = tmp_path_factory.mktemp("junk") / "junk.toml"
    if isinstance(junk, tuple):
        at, text = junk
        path.write_bytes((MINIMAL[:at] + text + MINIMAL[at:]).encode("utf-8", "surrogatepass"))
    else:
        path.write_bytes(junk if isinstance(junk, bytes) else junk.encode("utf-8", "surrogatepass"))
    refused = refusal(path)
    assert refused is None or (refused.startswith(str(path)) and "\n" not in refused)


def test_a_network_that_cannot_be_built_says_so(tmp_path):
    near = ("spacing_m = 1200            # between sites\nclear_m = 360", "spacing_m = 480\nclear_m = 5000")
    for duration_s, change, says in (
        (600, near, "operator A: no site within"),
        (7200, ("spacing_m = 1200 ", "spacing_m = 100 "), "places for sites; raise spacing_m"),
    ):
        text = source("commute").replace(*change).replace("speed_m_s = 12.5", "speed_m_s = 90")
        path = written(tmp_path, text.replace("radius_m = 2500\n", ""))
        with pytest.raises(ScenarioError, match=f"commute: .*{says}"):
            play(load(path, duration_s))


def test_list_and_show(capsys, tmp_path):
    assert main(["scenario", "list"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in names())
    assert main(["scenario", "list", "--json"]) == 0
    assert [x["name"] for x in json.loads(capsys.readouterr().out)] == names()
    assert main(["scenario", "show", "commute", "--duration", "60", "--seed", "2"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("commute: 60 s, seed 2, ")
    assert all(word in shown for word in ("home", "walk", "tram", "main road", "arrived", "whole", "handovers: "))
    assert main(["scenario", "show", "still", "--duration", "10", "--json", "--out", str(tmp_path / "o")]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["summary"]["scenario"], shown["events"][0]["type"]) == ("still", "phase")
    assert (tmp_path / "o" / "timeline-B.jsonl").exists()


def test_file_is_printed_to_begin_with(capsys, tmp_path):
    assert main(["scenario", "show", "commute", "--file"]) == 0
    path = tmp_path / "mine.toml"
    path.write_text(capsys.readouterr().out)
    assert load(path).phases == load("commute").phases


def test_mistakes_are_one_line_and_exit_2(capsys, tmp_path):
    bad = tmp_path / "bad.toml"
    bad.write_text("format = 1\n")
    for arguments in ([str(bad)], [], ["commute", "--duration", "3"], ["--replay", str(bad), str(bad)]):
        assert main(["scenario", "show", *arguments]) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n"), err.partition(":")[0]) == ("", 1, "tandem-bench scenario")


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
    assert "hint: pip install -r requirements/lock.txt" in capsys.readouterr().err
