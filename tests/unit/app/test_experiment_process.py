"""How a run's process is ended and what is said of it."""

import sys
import threading
from pathlib import Path

import pytest
from doubles import until

from tandem.app.experiment_process import ExperimentProcess


@pytest.fixture(autouse=True)
def _time_to_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tandem.app.experiment_process.STOP_S", 60.0)


OWN = """
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


def own(folder: Path, body: str) -> tuple[ExperimentProcess, threading.Event, list[str]]:
    """A person's own experiment, on the package's frame."""
    (folder / "__main__.py").write_text(OWN.format(body=body))
    kinds: list[str] = []
    return (
        ExperimentProcess([sys.executable, str(folder)], {}, lambda said: kinds.append(said["type"]), "x"),
        threading.Event(),
        kinds,
    )


@pytest.mark.parametrize("body", [STOPS_ITSELF, HOLDS_THE_INTERPRETER])
def test_a_process_that_hangs_as_a_whole_is_noticed_and_what_it_measured_kept(tmp_path: Path, body: str) -> None:
    go = tmp_path / "go"
    process, stop, kinds = own(tmp_path, f"while not os.path.exists({str(go)!r}): stop.wait(0.01)\n        {body}")
    until(lambda: process._beats)
    go.touch()
    ending = process.wait(300.0, stop, silent_s=0.5)
    assert ending.failure == {"reason": "silent for 0.5 s", "retry": True}
    assert (ending.said["how_far"], kinds) == (7, ["started", "sample"])


def test_a_main_thread_that_waits_for_ever_beats_and_is_the_deadlines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tandem.app.experiment_process.STOP_S", 0.1)
    process, stop, kinds = own(tmp_path, WAITS_FOR_EVER)
    until(lambda: "sample" in kinds)
    heard = process._heard
    until(lambda: process._heard > heard + 5)
    assert process.wait(0.2, stop).failure == {"reason": "not done after 0 s", "retry": True}


def test_a_process_that_never_beat_may_be_silent(tmp_path: Path) -> None:
    (tmp_path / "__main__.py").write_text(OWN.replace("0.05", "60").format(body="stop.wait(0.5)"))
    process = ExperimentProcess([sys.executable, str(tmp_path)], {}, lambda _said: None, "x")
    assert process.wait(60.0, threading.Event(), silent_s=0.05).failure is None
