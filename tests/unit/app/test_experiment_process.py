"""How a run's process is ended and what is said of it."""

from __future__ import annotations

import sys
import threading

from tandem.app.experiment_process import ExperimentProcess

STUBBORN = """
import json, signal, sys
def stopped(*_):
    print(json.dumps({"type": "result", "result": {"bytes": 7}, "failure": {"reason": "stopped", "retry": False}}), flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, stopped)
print(json.dumps({"type": "started"}), flush=True)
signal.pause()
"""


def stubborn() -> tuple[ExperimentProcess, threading.Event]:
    started = threading.Event()
    process = ExperimentProcess([sys.executable, "-c", STUBBORN], {}, lambda _said: started.set(), "x")
    assert started.wait(60)
    return process, threading.Event()


def test_a_run_that_takes_too_long_is_ended_and_says_so_with_what_it_measured() -> None:
    process, stop = stubborn()
    ending = process.wait(0.2, stop)
    assert ending.result == {"bytes": 7}
    assert ending.failure == {"reason": "not done after 0 s", "retry": True}


def test_a_run_that_is_told_to_stop_says_that() -> None:
    process, stop = stubborn()
    stop.set()
    assert process.wait(60.0, stop).failure == {"reason": "stopped", "retry": False}
