"""Start an experiment in the lab's probe namespace as the collector does, and read its last line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from two_paths import REPOSITORY, Lab


def run(
    made: Lab, name: str, parameters: dict[str, Any], seconds: float = 90, user: int | None = None
) -> dict[str, Any]:
    """The result line, with the exit status as ``status`` and the lines before it as ``lines``."""
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "collector/src")}
    drop = (
        [] if user is None else ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--inh-caps=-all"]
    )
    done = subprocess.run(
        [*made.probe.enter, *drop, sys.executable, "-m", f"tandem.experiment.{name}"],
        input=json.dumps(parameters),
        capture_output=True,
        text=True,
        env=environment,
        timeout=seconds,
        check=False,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines, done.stderr
    assert lines[-1]["type"] == "result", done.stderr
    return {**lines[-1], "status": done.returncode, "lines": lines[:-1]}
