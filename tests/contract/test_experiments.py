"""Every experiment folder keeps the contract of ``tandem.experiment.base``, whatever it measures."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tandem.experiment
from tandem.experiment.parameters import Parameter

REPOSITORY = Path(__file__).resolve().parents[2]
NAMES = tandem.experiment.names()


def survey(folder: Path) -> dict[str, object]:
    """Nobody resolves on the discard port of loopback either."""
    (folder / "names").write_text("1,example.org\n")
    return {
        "names": str(folder / "names"),
        "folder": str(folder / "run"),
        "resolvers": {"a": ["127.0.0.1"]},
        "dns_port": 9,
        "dns_timeout_s": 0.1,
    }


WANTED = {"reachability": survey}
"""What an experiment needs beside the common parameters for its network to refuse."""


def process(name: str, given: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "collector/src")}
    command = [sys.executable, "-m", f"tandem.experiment.{name}", *arguments]
    return subprocess.run(
        command, input=given, capture_output=True, text=True, env=environment, timeout=60, check=False
    )


def test_there_are_experiments():
    assert "download" in NAMES


@pytest.mark.parametrize("name", NAMES)
def test_the_folder_holds_what_an_experiment_needs(name):
    folder = Path(importlib.import_module(f"tandem.experiment.{name}").__path__[0])
    assert (folder / "__main__.py").is_file()
    assert (folder / "README.md").is_file()
    found = importlib.import_module(f"tandem.experiment.{name}.experiment").EXPERIMENT
    assert found.name == name
    assert found.version >= 1
    assert all(isinstance(p, Parameter) for p in found.parameters)


@pytest.mark.parametrize("name", NAMES)
def test_parameters_name_their_units_and_purpose(name):
    found = importlib.import_module(f"tandem.experiment.{name}.experiment").EXPERIMENT
    names = [p.name for p in found.parameters]
    assert len(set(names)) == len(names)
    for parameter in found.parameters:
        assert parameter.purpose
        if parameter.kind in ("int", "float"):
            assert parameter.unit
            assert parameter.minimum is not None
            assert parameter.maximum is not None
        if parameter.name.endswith("_s"):
            assert parameter.unit == "s"


@pytest.mark.parametrize("name", NAMES)
def test_the_readme_tells_every_parameter(name):
    found = importlib.import_module(f"tandem.experiment.{name}.experiment").EXPERIMENT
    folder = Path(importlib.import_module(f"tandem.experiment.{name}").__path__[0])
    text = (folder / "README.md").read_text()
    assert [p.name for p in found.parameters if f"`{p.name}`" not in text] == []


@pytest.mark.parametrize("name", NAMES)
def test_it_describes_itself(name):
    done = process(name, "", "--describe")
    assert done.returncode == 0
    told = json.loads(done.stdout)
    assert told["name"] == name
    assert {p["name"] for p in told["parameters"]} >= {"run", "paths", "server"}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("given", ["", "[]", "nonsense", '{"colour": 1}', '{"run": 1}', "{}"])
def test_bad_parameters_are_one_line_and_status_2(name, given):
    done = process(name, given)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith(f"{name}: ")
    assert done.stdout == ""


@pytest.mark.parametrize("name", NAMES)
def test_a_network_that_refuses_is_a_result_and_status_1(name, tmp_path):
    """Nobody listens on the discard port of loopback."""
    token = tmp_path / "token"
    token.write_text("secret")
    known = {p.name for p in importlib.import_module(f"tandem.experiment.{name}.experiment").EXPERIMENT.parameters}
    offered = {
        **WANTED.get(name, lambda _: {})(tmp_path),
        "run": "run-1",
        "kind": "tcp",
        "path": "a",
        "paths": [{"name": "a", "interface": "lo", "operator": "A"}],
        "seconds": 1,
        "server": {"control": "http://127.0.0.1:9", "measurement": "http://127.0.0.1:9", "token_file": str(token)},
    }
    done = process(name, json.dumps({key: value for key, value in offered.items() if key in known}))
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 1, done.stderr
    assert lines[0]["type"] == "started"
    assert (lines[0]["experiment"], lines[0]["version"] >= 1) == (name, True)
    assert lines[-1]["type"] == "result"
    assert [line["type"] for line in lines].count("result") == 1
    assert lines[-1]["failure"]["reason"]
    assert lines[-1]["failure"]["retry"] is True
    assert lines[-1]["environment"]["kernel"] == os.uname().release
    assert "secret" not in done.stdout + done.stderr
