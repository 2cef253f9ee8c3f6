"""``tandem experiment``: what is asked on the command line, and what is said before anything is measured."""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from tandem.cli.experiment import _announced, parameters_of, result_lines
from tandem.cli.main import main, parser
from tandem.cli.view.screen import lines_of_run, run_panel
from tandem.cli.view.text import finished_line, state_line

APP = Path(__file__).parents[2] / "app"
CONFIG = f'[experiments]\nfolder = "{APP / "own_experiments"}"\n'


pytestmark = pytest.mark.usefixtures("described_once")


@pytest.fixture
def config(tmp_path):
    file = tmp_path / "config.toml"
    file.write_text((APP / "good.toml").read_text() + CONFIG)
    return str(file)


def test_list_and_describe(config, capsys, monkeypatch):
    monkeypatch.setattr("tandem.experiment.names", lambda: ["download"])  # of the package, one is enough
    assert main(["experiment", "list", "--config", config]) == 0
    assert {"download", "steps"} <= set(capsys.readouterr().out.split())
    assert main(["experiment", "list", "--json", "--config", config]) == 0
    told = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert told["download"]["folder"] is None
    assert told["steps"]["folder"].endswith("steps")
    assert main(["experiment", "describe", "steps", "--config", config]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("steps, version 3\n")
    assert "default well, well or fail or hang" in shown
    assert main(["experiment", "describe", "steps", "--json", "--config", config]) == 0
    assert json.loads(capsys.readouterr().out)["phases"] == [{"name": "step", "purpose": "one size"}]


REFUSED = [
    (["nix"], "unknown experiment 'nix'"),
    (["steps", "--kind", "tcp"], "--kind belongs to download"),
    (["steps", "--set", "how"], "--set 'how' is not of the form KEY=VALUE"),
    (["steps", "--set", "how=badly"], "'badly' is not one of"),
    (["steps", "--shape", "a"], "is not of the form PATH:KEY=VALUE"),
    (["steps", "--shape", "a:up_bit_per_s=fast"], "'fast' is no number"),
    (["steps", "--parameters", "/nonexistent.json"], "/nonexistent.json: No such file"),
    (["download", "--set", "bytes=5"], "'bytes' is the collector's to give"),
]


def test_wrong_usage_is_one_line_and_status_2(config, capsys):
    wrong = []
    for words, what in REFUSED:
        status, told = main(["experiment", "run", *words, "--config", config]), capsys.readouterr().err
        if status != 2 or what not in told or told.count("\n") != 1:
            wrong.append((words, status, told))
    assert wrong == []


def test_what_is_asked(tmp_path):
    from tandem.experiment.parameters import Parameter

    file = tmp_path / "p.json"
    file.write_text('{"sizes": [1, 2], "label": "x"}')
    words = ["--set", "label=7", "--set", "times=7", "--set", "deep={\"a\": [1]}", "--parameters", str(file), "--seed", "3",
             "--paths", "a, b", "--sysctl", "net.ipv4.tcp_rmem=1 2 3", "--shape", "a:down_bit_per_s=1e6,up_delay_ms=20"]  # fmt: skip
    args = parser().parse_args(["experiment", "run", "steps", *words])
    assert parameters_of(args, [Parameter("label", "str", "a text")]) == {
        "paths": ["a", "b"],
        "parameters": {"sizes": [1, 2], "label": "7", "times": 7, "deep": {"a": [1]}},
        "sysctl": {"net.ipv4.tcp_rmem": "1 2 3"},
        "shape": {"a": {"down_bit_per_s": 1e6, "up_delay_ms": 20.0}},
        "seed": 3,
    }


def test_phases_are_told_while_it_runs():
    phase = {"name": "mptcp 1000 B", "number": 3, "of": 12}
    one = {"id": "r", "kind": "any", "experiment": "delay", "path": "a", "phase": phase, "goodput_bit_per_s": None}
    run = {"number": 1, "of": 1, "experiment": "delay", "runs": [one]}
    assert _announced(run) == ["1/1: delay over a …", "phase 3 of 12: mptcp 1000 B"]
    assert "delay a – | phase 3 of 12: mptcp 1000 B" in state_line({"run": run})
    ended = {"kind": "any", "experiment": "delay", "path": "a", "pairing": "single", "ok": True}
    assert finished_line(ended).startswith("delay over a (single): ")


def test_the_live_view_shows_the_experiment_and_its_phase():
    phase = {"name": "round", "number": 2, "of": 3}
    one = {"id": "r", "kind": "any", "experiment": "handshake", "path": "a", "phase": phase, "goodput_bit_per_s": None,
           "elapsed_s": 3.0, "bytes": 0, "subflows": []}  # fmt: skip
    run = {"pairing": "single", "experiment": "handshake", "number": 1, "of": 1, "runs": [one]}
    run |= {"seconds": None, "bytes": None}
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(run_panel({"run": run}, {"a": "red"}, 100))
    shown = console.export_text()
    assert "handshake" in shown
    assert "phase 2 of 3: round" in shown
    assert "connecting" not in shown
    assert lines_of_run({"run": run}) == 2


def test_a_result_in_lines():
    lines = result_lines({"order": ["a", "b"], "median_ms": {"a": 1.23456789, "b": None}, "ok": True})
    assert lines == ["  order      2 entries", "  median_ms  a 1.23457, b –", "  ok         True"]
    assert result_lines(None) == []
