"""An endpoint for tests of the player: control as ``scripted_endpoint``'s, and on the measurement port whatever a script answers, over
connections that are kept."""

from __future__ import annotations

import contextlib
import io
import json
import re
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.experiment_process import Run, parameters, server_of
from support.scripted_endpoint import Behaviour, Endpoint
from tandem.experiment.base import Output, Stop
from tandem.experiment.dash import EXPERIMENT
from tandem.experiment.parameters import check
from tandem.experiment.results import faults
from tandem.mptcp.paths import Path as ProbePath
from tandem.schema.record import Record


@dataclass
class Answer:
    """One answer. ``after_s``: the body's second half comes so late. ``length``: what Content-Length says. ``cut``: only so many bytes of
    the body are sent, then ``then``: "close", "reset" or "stall" ("" goes on). ``raw``: sent as it is instead."""

    body: bytes = b""
    status: int = 200
    after_s: float = 0.0
    length: int | None = None
    cut: int | None = None
    then: str = ""
    headers: tuple[str, ...] = ()
    raw: bytes = b""


Script = Callable[[str, str | None], Answer]


class DashEndpoint(Endpoint):
    """``script(target, range)`` answers each request of the measurement port. ``asked``: the targets; ``connections``: how many came."""

    def __init__(self, script: Script, protocol: int = 0, host: str = "127.0.0.1") -> None:
        self.script = script
        self.asked: list[str] = []
        self.connections = 0
        super().__init__(Behaviour(), protocol, host)

    def _answer(self, connection: socket.socket, peer: tuple[str, int]) -> None:
        if connection.getsockname()[1] == self.control_port:
            super()._answer(connection, peer)
            return
        first = True
        with connection.makefile("rb") as lines:
            while line := lines.readline():
                target = line.decode().split(" ")[1]
                headers = b""
                while (more := lines.readline()) not in (b"\r\n", b""):
                    headers += more
                if target == "/v1/whoami":
                    self._json(connection, 200, {"address": peer[0], "port": peer[1]})
                    return
                self.connections += first
                first = False
                self.asked.append(target)
                found = re.search(rb"(?i)range: bytes=(\S+)", headers)
                if not self._send(connection, self.script(target, found[1].decode() if found else None)):
                    return

    def _send(self, connection: socket.socket, answer: Answer) -> bool:
        """Whether the connection stays."""
        if answer.raw:
            connection.sendall(answer.raw)
            return self._end(connection, answer.then)
        length = len(answer.body) if answer.length is None else answer.length
        told = [f"HTTP/1.1 {answer.status} X", *([f"Content-Length: {length}"] if length >= 0 else []), *answer.headers]
        body = answer.body if answer.cut is None else answer.body[: answer.cut]
        half = len(body) // 2
        connection.sendall(("\r\n".join(told) + "\r\n\r\n").encode() + body[:half])
        if answer.after_s:
            self._closing.wait(answer.after_s)
        connection.sendall(body[half:])
        return self._end(connection, answer.then)

    def _end(self, connection: socket.socket, then: str) -> bool:
        if then == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        elif then == "stall":
            self._closing.wait(30)
        return then == ""


def manifest(bitrates: tuple[int, ...], segments: int, segment_s: float) -> bytes:
    """Numbered segments ``vN/M.m4s`` of random bytes."""
    template = f'<SegmentTemplate timescale="1000" duration="{round(segment_s * 1000)}" media="$RepresentationID$/$Number$.m4s"/>'
    inside = "".join(f'<Representation id="v{n}" bandwidth="{b}"/>' for n, b in enumerate(bitrates))
    return (
        f'<MPD mediaPresentationDuration="PT{segments * segment_s:g}S"><Period><AdaptationSet contentType="video">'
        f"{template}{inside}</AdaptationSet></Period></MPD>"
    ).encode()


LOOPBACK = (ProbePath("a", "lo"),)


def wanted(
    endpoint: DashEndpoint, folder: Path, host: str = "127.0.0.1", paths: Sequence[ProbePath] = LOOPBACK, **more: Any
) -> dict[str, Any]:
    """The parameters of a play against ``endpoint``."""
    play = {"kind": "tcp", "path": "a", "content": "film", "mpd": "film.mpd", **more}
    return parameters(server_of(folder, endpoint, host), paths, **play)


def play(
    endpoint: DashEndpoint, folder: Path, wait_s: float = 240, enter: Sequence[str] = (), **more: Any
) -> dict[str, Any]:
    """Run the experiment against ``endpoint``; its lines by type, the result line under ``result``.

    In this process, but for VLC and with ``enter``, a command in front of it, to run inside a namespace."""
    given = wanted(endpoint, folder, **more)
    if enter or more.get("player") == "vlc":
        lines = _by_a_process(given, enter, wait_s)
    else:
        stop, stream = Stop(), io.StringIO()
        output = Output(stream, stop)
        told = EXPERIMENT.run(check(EXPERIMENT.parameters, given), output, stop)
        assert faults(EXPERIMENT.results, told.result or {}) == []
        output.line("result", result=told.result, failure=told.failure, environment=told.environment, **told.further)
        lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    return {
        "environment": lines[-1]["environment"],
        "player": lines[-1]["player"],
        "segments": [line for line in lines if line["type"] == "segment"],
        "samples": [line for line in lines if line["type"] == "sample"],
        "phases": [line for line in lines if line["type"] == "phase"],
        "records": [
            Record.make(line["measurement"], line["tags"], line["fields"], line["monotonic_ns"])
            for line in lines
            if line["type"] == "record"
        ],
        "result": lines[-1]["result"],
        "failure": lines[-1]["failure"],
    }


def _by_a_process(given: dict[str, Any], enter: Sequence[str], wait_s: float) -> list[dict[str, Any]]:
    last = Run("dash", given, enter).end(wait_s)
    assert "result_faults" not in last, last["result_faults"]
    assert last["status"] == (0 if last["failure"] is None else 1), last["said"]
    return [*last["lines"], last]


@contextlib.contextmanager
def serving(script: Script):
    endpoint = DashEndpoint(script)
    try:
        yield endpoint
    finally:
        endpoint.close()
