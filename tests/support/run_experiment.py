"""Start an experiment as the collector does, in a namespace or here, and read its lines."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from support.two_paths import PATHS, REPOSITORY, SERVER, Space
from tandem.mptcp.paths import Path as ProbePath


class Serving(Protocol):
    """An endpoint; its ``token``, where it has one, is its one probe's."""

    control_port: int
    measurement_port: int


def asked(
    folder: Path, endpoint: Serving, host: str = SERVER, paths: Sequence[ProbePath] = PATHS, /, **more: Any
) -> dict[str, Any]:
    """The parameters of a run over ``paths`` from ``endpoint`` at ``host``; ``folder`` takes the token's file."""
    token = folder / "token"
    token.write_text(getattr(endpoint, "token", "secret"))
    return {
        "run": "run-1",
        "paths": [{"name": p.name, "interface": p.interface, "operator": p.name.upper()} for p in paths],
        "server": {
            "control": f"http://{host}:{endpoint.control_port}",
            "measurement": f"http://{host}:{endpoint.measurement_port}",
            "token_file": str(token),
        },
        **more,
    }


class Probed(Protocol):
    """A lab, a pair of links."""

    probe: Space


def started(enter: Sequence[str], name: str, parameters: dict[str, Any], **more: str) -> subprocess.Popen[str]:
    """The experiment's process, its parameters given. ``name``: of the package's, or the folder of one's own; ``enter``: a command in
    front of it; ``more``: of its environment."""
    process = subprocess.Popen(
        [*enter, sys.executable, *([name] if "/" in name else ["-m", "tandem.experiment", name])],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "collector/src"), **more},
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(parameters))
    process.stdin.close()
    process.stdin = None  # communicate() must not flush it again
    return process


def start(made: Probed, name: str, parameters: dict[str, Any]) -> subprocess.Popen[str]:
    """In the probe's namespace."""
    return started(made.probe.enter, name, parameters)


def ended(process: subprocess.Popen[str], seconds: float = 240) -> dict[str, Any]:
    """The result line, with the exit status as ``status``, what was said on stderr as ``said``, and the lines before it as ``lines``."""
    try:
        out, err = process.communicate(timeout=seconds)
    finally:
        process.kill()
    lines = [json.loads(line) for line in out.splitlines()]
    assert lines, err
    assert lines[-1]["type"] == "result", err
    return {**lines[-1], "status": process.returncode, "said": err, "lines": lines[:-1]}


def run(made: Probed, name: str, parameters: dict[str, Any], seconds: float = 240) -> dict[str, Any]:
    """From beginning to end, in the probe's namespace."""
    return ended(start(made, name, parameters), seconds)
