"""An experiment's process, started as the collector does, in a namespace or here; and the parameters that every one has."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from support.two_paths import PATHS, REPOSITORY, SERVER, Space
from tandem.mptcp.paths import Path as ProbePath


class Serving(Protocol):
    """An endpoint; its ``token``, where it has one, is its one probe's."""

    control_port: int
    measurement_port: int


def server_of(folder: Path, endpoint: Serving, host: str = SERVER) -> dict[str, str]:
    """The parameter ``server`` for ``endpoint`` at ``host``; ``folder`` takes the token's file."""
    token = folder / "token"
    token.write_text(getattr(endpoint, "token", "secret"))
    return {
        "control": f"http://{host}:{endpoint.control_port}",
        "measurement": f"http://{host}:{endpoint.measurement_port}",
        "token_file": str(token),
    }


def parameters(server: Mapping[str, Any], paths: Sequence[ProbePath] = PATHS, /, **more: Any) -> dict[str, Any]:
    """Of a run over ``paths``."""
    told = [{"name": p.name, "interface": p.interface, "operator": p.name.upper()} for p in paths]
    return {"run": "run-1", "paths": told, "server": dict(server), **more}


class Run:
    """``name``: of the package's, or the folder of one's own; ``enter``: a command in front of it; ``more``: of its environment."""

    def __init__(self, name: str, parameters: Mapping[str, Any], enter: Sequence[str] = (), **more: str) -> None:
        self.process = subprocess.Popen(
            [*enter, sys.executable, *([name] if "/" in name else ["-m", "tandem.experiment", name])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY / "collector/src"), **more},
        )
        self.lines: list[dict[str, Any]] = []
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(parameters))
        self.process.stdin.close()
        self.process.stdin = None  # communicate() must not flush it again

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The lines of this type so far."""
        return [line for line in self.lines if line["type"] == kind]

    @property
    def samples(self) -> list[dict[str, Any]]:
        return self.of("sample")

    def until(self, seen: Callable[[dict[str, Any]], object] = lambda _: True, kind: str = "sample") -> dict[str, Any]:
        """Read lines until the last one of type ``kind`` is as wanted."""
        assert self.process.stdout is not None
        while not ((found := self.of(kind)) and seen(found[-1])):
            text = self.process.stdout.readline()
            assert text, f"ended after {self.lines}: {self.process.stderr and self.process.stderr.read()}"
            self.lines.append(json.loads(text))
        return found[-1]

    def end(self, seconds: float = 240) -> dict[str, Any]:
        """Wait for the end; the result line, with the exit status as ``status``, what was said on stderr as ``said``, and the lines before
        it as ``lines``."""
        assert self.process.stdout is not None
        late = threading.Timer(seconds, self.process.kill)
        late.start()
        try:
            # Not by communicate() alone: it passes by what readline() took in beyond its line.
            self.lines += [json.loads(line) for line in self.process.stdout]
            _, said = self.process.communicate()
        finally:
            late.cancel()
        assert self.lines, said
        assert self.lines[-1]["type"] == "result", said
        return {**self.lines[-1], "status": self.process.returncode, "said": said, "lines": self.lines[:-1]}


class Probed(Protocol):
    """A lab, a pair of links."""

    probe: Space


def run(made: Probed, name: str, parameters: Mapping[str, Any], seconds: float = 240) -> dict[str, Any]:
    """From beginning to end, in the probe's namespace."""
    return Run(name, parameters, made.probe.enter).end(seconds)
