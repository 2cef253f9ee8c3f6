"""The server's own endpoint, in this process, its control channel without TLS: inside a lab's namespace."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn

from support.experiment_process import Serving, parameters, run, server_of
from support.two_paths import PATHS, SERVER, Lab
from tandem.mptcp.paths import Path as ProbePath
from tandem_server.cli.configuration import Bounds
from tandem_server.cli.listeners import measurement_bounds
from tandem_server.endpoint.control import Results, control_app
from tandem_server.endpoint.listener import Acceptor, listen
from tandem_server.endpoint.measurement import Measurement
from tandem_server.endpoint.recorder import Recorder
from tandem_server.endpoint.reflector import Reflector, reflector_socket
from tandem_server.endpoint.sessions import Limits, SessionTable
from tandem_server.http.connections import ConnectionLimiter
from tandem_server.http.rates import DiskShare, Reserve
from tandem_server.registry import Registry


class _NoStore:
    """Where series would go."""

    def write(self, lines: list[str]) -> list[object]:
        del lines
        return []


class RealEndpoint:
    """Listens at once on free ports of the namespace that it is made in, on all addresses of IPv4, or of both families (``::``).
    ``token``: of its one probe."""

    def __init__(self, folder: Path, host: str = "0.0.0.0") -> None:  # noqa: S104  (inside a namespace)
        limits = Limits()
        self.registry = Registry(folder / "registry.sqlite")
        self.token = self.registry.probes.add("probe-1")
        self.sessions = SessionTable(self.registry, limits)
        self.recorder = Recorder(lambda: _NoStore())  # type: ignore[arg-type,return-value]  # it takes lines and refuses none
        self.listener = listen(host, 0)
        self.measurement_port = self.listener.getsockname()[1]
        measurement = Measurement(self.sessions, limits, self.recorder, "boot-1")
        self.acceptor = Acceptor(
            self.listener, lambda *them: measurement.serve(*them[:4]), ConnectionLimiter(measurement_bounds(Bounds()))
        )
        self.control = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
        self.control.bind((host, 0))
        self.control_port = self.control.getsockname()[1]
        self.reflector = Reflector(reflector_socket(host, self.measurement_port), self.sessions)
        results = Results(folder / "results", DiskShare(Reserve([folder], 0), 10**9))
        app = control_app(self.registry, self.sessions, self.measurement_port, results, reflector=self.reflector)
        self.server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [self.control]})
        self.thread.start()

    def close(self) -> None:
        self.server.should_exit = True
        self.thread.join(10)
        self.sessions.end_all()
        self.acceptor.stop()
        self.reflector.stop()
        self.recorder.close()
        self.registry.close()


@dataclass(frozen=True)
class Measured:
    """A lab with the endpoint. ``own``: what each experiment is asked for that says nothing else."""

    lab: Lab
    folder: Path
    endpoint: RealEndpoint
    host: str
    paths: Sequence[ProbePath]
    own: dict[str, Any]

    def parameters(self, endpoint: Serving | None = None, **more: Any) -> dict[str, Any]:
        """Of a run, from this ``endpoint`` where it is not the lab's."""
        server = server_of(self.folder, endpoint or self.endpoint, self.host)
        return parameters(server, self.paths, **{**self.own, **more})

    def run(self, name: str, status: int = 0, **more: Any) -> dict[str, Any]:
        """The experiment from beginning to end, which comes to this ``status``; its last line."""
        found = run(self.lab, name, self.parameters(**more))
        assert found["status"] == status, found["failure"]
        assert "result_faults" not in found
        return found


@contextmanager
def measured(
    made: Lab, folder: Path, host: str = SERVER, paths: Sequence[ProbePath] = PATHS, **own: Any
) -> Iterator[Measured]:
    """With the endpoint in the server's namespace, at ``host``."""
    everywhere = "::" if ":" in host else "0.0.0.0"  # noqa: S104  (inside a namespace)
    endpoint = made.server.inside(lambda: RealEndpoint(folder, host=everywhere))
    try:
        yield Measured(made, folder, endpoint, host, paths, own)
    finally:
        endpoint.close()
