"""Start an experiment in the lab's probe namespace as the collector does, and read its last line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from two_paths import REPOSITORY, Lab


def start(made: Lab, name: str, parameters: dict[str, Any]) -> subprocess.Popen[str]:
    """The experiment's process, its parameters given."""
    process = subprocess.Popen(
        [*made.probe.enter, sys.executable, "-m", f"tandem.experiment.{name}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "collector/src")},
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(parameters))
    process.stdin.close()
    process.stdin = None  # communicate() must not flush it again
    return process


def run(made: Lab, name: str, parameters: dict[str, Any], seconds: float = 90) -> dict[str, Any]:
    """The result line, with the exit status as ``status`` and the lines before it as ``lines``."""
    process = start(made, name, parameters)
    try:
        out, err = process.communicate(timeout=seconds)
    finally:
        process.kill()
    lines = [json.loads(line) for line in out.splitlines()]
    assert lines, err
    assert lines[-1]["type"] == "result", err
    return {**lines[-1], "status": process.returncode, "lines": lines[:-1]}
