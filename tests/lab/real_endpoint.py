"""The server's own endpoint, in this process, its control channel without TLS: inside a lab's namespace."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import uvicorn

from tandem_server.cli.bounds import Bounds, measurement_bounds
from tandem_server.door import DiskShare, Door, Reserve
from tandem_server.endpoint.control import control_app
from tandem_server.endpoint.listener import Acceptor, listen
from tandem_server.endpoint.measurement import Measurement
from tandem_server.endpoint.recorder import Recorder
from tandem_server.endpoint.reflector import Reflector, reflector_socket
from tandem_server.endpoint.results import Results
from tandem_server.endpoint.sessions import Limits, SessionTable
from tandem_server.registry import Registry


class _NoStore:
    """Where series would go."""

    def write(self, lines: list[str]) -> list[object]:
        del lines
        return []


class RealEndpoint:
    """Listens at once on free ports of the namespace that it is made in, on all addresses of IPv4, or of both families (``::``).
    ``token``: of its one probe."""

    def __init__(self, folder: Path, limits: Limits | None = None, host: str = "0.0.0.0") -> None:  # noqa: S104  (inside a namespace)
        limits = limits or Limits()
        self.registry = Registry(folder / "registry.sqlite")
        self.token = self.registry.probes.add("probe-1")
        self.sessions = SessionTable(self.registry, limits)
        self.recorder = Recorder(lambda: _NoStore())  # type: ignore[arg-type,return-value]  # it takes lines and refuses none
        self.listener = listen(host, 0)
        self.measurement_port = self.listener.getsockname()[1]
        measurement = Measurement(self.sessions, limits, self.recorder, "boot-1")
        self.acceptor = Acceptor(
            self.listener, lambda *them: measurement.serve(*them[:4]), Door(measurement_bounds(Bounds()))
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
        """End both listeners and all sessions."""
        self.server.should_exit = True
        self.thread.join(10)
        self.sessions.end_all()
        self.acceptor.stop()
        self.reflector.stop()
        self.recorder.close()
        self.registry.close()
