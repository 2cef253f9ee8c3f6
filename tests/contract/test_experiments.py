"""Every experiment folder keeps the contract of ``tandem.experiment.base``, whatever it measures."""

import functools
import importlib
import importlib.util
import io
import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

import tandem.experiment
from tandem.experiment.base import Experiment, main
from tandem.experiment.parameters import Parameter

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGE = Path(tandem.experiment.__file__).parent
EXAMPLES = REPOSITORY / "collector/examples/experiments"
PAGE = REPOSITORY / "docs/campaigns/experiments.md"
"""What a person would have outside the package is held to the same."""
FOLDERS = {
    **{name: PACKAGE / name for name in tandem.experiment.names()},
    **{f.name: f for f in sorted(EXAMPLES.iterdir()) if (f / "__main__.py").is_file()},
}
NAMES = list(FOLDERS)
ENDINGS = (("_bit_per_s", "bit/s"), ("_ms", "ms"), ("_s", "s"))
"""Endings of names and the units that they promise, the longest first."""


@functools.cache
def loaded(name: str) -> Experiment:
    if FOLDERS[name].parent == PACKAGE:
        module = importlib.import_module(f"tandem.experiment.{name}")
    else:
        spec = importlib.util.spec_from_file_location(f"example_{name}", FOLDERS[name] / "experiment.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module  # dataclasses look their module up
        spec.loader.exec_module(module)
    found: Experiment = module.EXPERIMENT
    return found


def described(name: str) -> str:
    """What people read of it: the page's section of its name and the one of all experiments; of one outside the package its README."""
    if FOLDERS[name].parent != PACKAGE:
        return (FOLDERS[name] / "README.md").read_text()
    sections = dict(part.split("\n", 1) for part in PAGE.read_text().split("\n## ")[1:])
    return sections["Every experiment"] + sections[name]


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


def nowhere(_folder: Path) -> dict[str, object]:
    """To a traceroute a reset is the end of the way, not a refusal."""
    return {"paths": [{"name": "a", "interface": "tandem-none", "operator": "A"}]}


WANTED = {"reachability": survey, "traceroute": nowhere}
"""What an experiment needs beside or instead of the common parameters for its network to refuse."""


def process(name: str, given: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "collector/src")}
    inside = FOLDERS[name].parent == PACKAGE
    command = [sys.executable, *(["-m", "tandem.experiment", name] if inside else [str(FOLDERS[name])]), *arguments]
    return subprocess.run(
        command, input=given, capture_output=True, text=True, env=environment, timeout=240, check=False
    )


every_experiment = pytest.mark.parametrize("name", NAMES)


@every_experiment
def test_parameters_and_results_have_their_units_and_purpose_and_the_page_tells_them(name):
    found, text = loaded(name), described(name)
    assert "bytes_by_path" in {result.name for result in found.results}
    for told in (found.parameters, found.results):
        assert len({one.name for one in told}) == len(told)
        for one in told:
            assert isinstance(one, Parameter)
            assert one.purpose
            assert f"`{one.name}`" in text, one.name
            if one.kind in ("int", "float"):
                assert one.unit == next((u for ending, u in ENDINGS if one.name.endswith(ending)), one.unit), one.name
    for parameter in found.parameters:
        if parameter.kind in ("int", "float"):
            assert parameter.unit
            assert parameter.minimum is not None
            assert parameter.maximum is not None


@every_experiment
def test_its_folder_is_whole_and_it_describes_itself(name):
    assert {"download", "handshake"} <= set(NAMES), "found by folder"
    assert (FOLDERS[name] / ("__init__.py" if FOLDERS[name].parent == PACKAGE else "__main__.py")).is_file()
    assert (loaded(name).name, loaded(name).version >= 1) == (name, True)
    done = process(name, "", "--describe")
    assert done.returncode == 0
    told = json.loads(done.stdout)
    assert told["name"] == name
    assert {p["name"] for p in told["parameters"]} >= {"run", "paths", "server"}
    assert told["results"]
    assert all(phase["name"] and phase["purpose"] for phase in told["phases"])
    assert told["quiet"] is (name in ("delay", "latency"))


BAD = ("", "[]", "nonsense", '{"colour": 1}', '{"run": 1}', "{}")


@contextmanager
def signals_kept():
    """The process of an experiment takes them."""
    kept = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


@every_experiment
def test_bad_parameters_are_one_line_and_status_2(name, monkeypatch, capsys):
    """One of them as a process."""
    done = process(name, "nonsense")
    ended = {"as a process": (done.returncode, done.stdout, done.stderr)}
    for given in BAD:
        monkeypatch.setattr(sys, "stdin", io.StringIO(given))
        with signals_kept():
            status = main(loaded(name), [])
        ended[given] = (status, *capsys.readouterr())
    good = [
        given
        for given, (status, out, err) in ended.items()
        if (status, out) == (2, "") and len(err.splitlines()) == 1 and err.startswith(f"{name}: ")
    ]
    assert good == list(ended), ended


@every_experiment
def test_a_network_that_refuses_is_a_result_and_status_1(name, tmp_path):
    """Nobody listens on the discard port of loopback."""
    token = tmp_path / "token"
    token.write_text("secret")
    folder = FOLDERS[name]
    found = loaded(name)
    example = folder / "example.json"
    given = {
        "run": "run-1",
        "kind": "tcp",
        "path": "a",
        "paths": [{"name": n, "interface": "lo", "operator": n.upper()} for n in "ab"],
        "seconds": 1,
        "server": {"control": "http://127.0.0.1:9", "measurement": "http://127.0.0.1:9", "token_file": str(token)},
    }
    known = {p.name for p in found.parameters}
    given = {k: v for k, v in given.items() if k in known}
    if example.is_file():
        given = {**json.loads(example.read_text()), **given}
    given = {**given, **WANTED.get(name, lambda _: {})(tmp_path)}
    done = process(name, json.dumps(given))
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines, done.stderr
    assert lines[0]["type"] == "started"
    assert (lines[0]["experiment"], lines[0]["version"] >= 1) == (name, True)
    assert lines[-1]["type"] == "result"
    assert [line["type"] for line in lines].count("result") == 1
    assert done.returncode == 1, done.stderr
    assert lines[-1]["failure"]["reason"]
    assert lines[-1]["failure"]["retry"] is True
    assert "result_faults" not in lines[-1]
    assert lines[-1]["environment"]["kernel"] == os.uname().release
    assert "secret" not in done.stdout + done.stderr
