"""Which experiments there are, and what they say of themselves."""

import contextlib
import errno
import json
import os
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tandem.experiment
from support.waiting import until
from tandem.app.runs import registry
from tandem.app.runs.process import ExperimentProcess
from tandem.app.runs.registry import Registry, RegistryError, parse

OWN = Path(__file__).parent / "own_experiments"


def own(folder: Path, name: str, code: str) -> Registry:
    (folder / name).mkdir()
    (folder / name / "__main__.py").write_text(code)
    return Registry(folder)


def test_those_of_the_package_and_a_persons_own_are_found_by_folder(tmp_path):
    (tmp_path / "notes").mkdir()  # no program
    assert Registry(None).names() == tandem.experiment.names()
    assert Registry(tmp_path).names() == tandem.experiment.names()
    assert "steps" in Registry(OWN).names()
    assert Registry(OWN).command("steps") == [sys.executable, str(OWN / "steps")]
    assert Registry(OWN).command("download") == [sys.executable, "-m", "tandem.experiment", "download"]


def test_one_that_cannot_say_what_it_is_is_named(tmp_path, monkeypatch):
    for name, code, what in (
        ("sad", "import sys; print('no', file=sys.stderr); sys.exit(3)", "ended with status 3: no"),
        ("mute", "", "says no description"),
        ("other", 'print(\'{"name": "x", "version": 1, "parameters": []}\')', "calls itself 'x'"),
        ("raw", "import os; os.write(1, b'\\xff')", "--describe"),
    ):
        with pytest.raises(RegistryError, match=what):
            own(tmp_path, name, code).describe(name)
    monkeypatch.setattr(registry, "DESCRIBE_S", 0.5)
    with pytest.raises(RegistryError, match="timed out"):
        own(tmp_path, "slow", "import time; time.sleep(60)").describe("slow")


SAYS = """
import json, pathlib, time
here = pathlib.Path(__file__).parent
with (here / "asked").open("a") as asked: asked.write(".")
while (here / "wait").exists(): time.sleep(0.01)
print(json.dumps({"name": "mine", "version": VERSION, "parameters": []}))
"""


def test_a_persons_own_is_asked_once_and_again_when_it_changed_and_meanwhile_nobody_waits(tmp_path):
    mine = tmp_path / "mine"
    registry = own(tmp_path, "mine", SAYS.replace("VERSION", "1"))
    (mine / "wait").touch()
    assert not registry.ready("mine")
    assert not registry.ready("mine")
    (mine / "wait").unlink()
    until(lambda: registry.ready("mine"))
    assert [registry.describe("mine").version for _ in range(3)] == [1, 1, 1]
    assert (mine / "asked").read_text() == "."
    (mine / "__main__.py").write_text(SAYS.replace("VERSION", "2222"))
    assert registry.describe("mine").version == 2222
    (mine / "__main__.py").write_text("raise SystemExit('no')")
    until(lambda: registry.ready("mine"))
    with pytest.raises(RegistryError, match="ended with status 1: no"):
        registry.describe("mine")


def test_names_and_folders_that_cannot_be_are_refused(tmp_path):
    with pytest.raises(RegistryError, match=r"nowhere: No such file.*hint: \[experiments\] folder"):
        Registry(tmp_path / "nowhere").names()
    with pytest.raises(RegistryError, match=r"unknown experiment 'nix'; known: .*download"):
        Registry(None).command("nix")
    for name, what in (("download", "has this name"), ("My-Own", "is no name")):
        (tmp_path / what).mkdir()
        with pytest.raises(RegistryError, match=what):
            own(tmp_path / what, name, "").names()


TOLD = {"name": "x", "version": 1, "parameters": [{"name": "p", "kind": "int", "purpose": "of it"}]}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["name", "kind", "p"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from([*TOLD, "results", "phases"]), JSON, max_size=4), st.text(max_size=10))
def test_any_answer_is_a_description_or_refused(change, text):
    for candidate in (json.dumps({**TOLD, **change}), text, "[" * 100_000):
        with contextlib.suppress(RegistryError):
            assert parse("x", candidate).name == "x"


# --- how a run's process is ended and what is said of it


@pytest.fixture(autouse=True)
def _time_to_answer(monkeypatch):
    monkeypatch.setattr("tandem.app.runs.process.STOP_S", 60.0)


HANGING = """
import os, signal, sys, threading
from tandem.experiment import base

base.ALIVE_S = 0.05

class Own:
    name, version, parameters, results = "own", 1, (), ()

    def run(self, parameters, output, stop):
        output.line("sample", monotonic_ns=1)
        {body}
        return base.Outcome({{}}, base.STOPPED if stop.requested else None, {{}}, {{"how_far": 7}})

sys.exit(base.main(Own()))
"""
STOPS_ITSELF = "os.kill(os.getpid(), signal.SIGSTOP)"
WAITS_FOR_EVER = "threading.Lock().acquire() and threading.Event().wait()"
HOLDS_THE_INTERPRETER = "import ctypes; ctypes.PyDLL(None).pause()"  # C code that keeps the lock, until a signal comes


def hanging(folder: Path, body: str) -> tuple[ExperimentProcess, threading.Event, list[str]]:
    """A person's own experiment, on the package's frame."""
    (folder / "__main__.py").write_text(HANGING.format(body=body))
    kinds: list[str] = []
    return (
        ExperimentProcess([sys.executable, str(folder)], {}, lambda said: kinds.append(said["type"]), "x"),
        threading.Event(),
        kinds,
    )


@pytest.mark.parametrize("body", [STOPS_ITSELF, HOLDS_THE_INTERPRETER])
def test_a_process_that_hangs_as_a_whole_is_noticed_and_what_it_measured_kept(tmp_path, body):
    go = tmp_path / "go"
    process, stop, kinds = hanging(tmp_path, f"while not os.path.exists({str(go)!r}): stop.wait(0.01)\n        {body}")
    until(lambda: process._beats)
    go.touch()
    ending = process.wait(300.0, stop, silent_s=0.5)
    assert ending.failure == {"reason": "silent for 0.5 s", "retry": True}
    assert (ending.said["how_far"], kinds) == (7, ["started", "sample"])


def test_a_main_thread_that_waits_for_ever_beats_and_is_the_deadlines(tmp_path, monkeypatch):
    monkeypatch.setattr("tandem.app.runs.process.STOP_S", 0.1)
    process, stop, kinds = hanging(tmp_path, WAITS_FOR_EVER)
    until(lambda: "sample" in kinds)
    heard = process._heard
    until(lambda: process._heard > heard + 5)
    assert process.wait(0.2, stop).failure == {"reason": "not done after 0 s", "retry": True}


def test_a_process_that_never_beat_may_be_silent(tmp_path):
    (tmp_path / "__main__.py").write_text(HANGING.replace("0.05", "60").format(body="stop.wait(0.5)"))
    process = ExperimentProcess([sys.executable, str(tmp_path)], {}, lambda _said: None, "x")
    assert process.wait(60.0, threading.Event(), silent_s=0.05).failure is None


def test_where_the_kernel_has_no_pidfd_a_run_ends_as_ever(tmp_path, monkeypatch):
    def absent(*_: object) -> int:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))  # before Linux 5.3

    monkeypatch.setattr(os, "pidfd_open", absent)
    process, stop, _ = hanging(tmp_path, "stop.wait(0.2)")
    ending = process.wait(300.0, stop)
    assert (ending.failure, ending.said["how_far"]) == (None, 7)
