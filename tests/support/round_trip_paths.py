"""Round trips over a lab's two paths to a real endpoint, as the collector runs them."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from support.real_endpoint import RealEndpoint
from support.two_paths import PATHS, SERVER, Lab, up
from tandem.app.config import Config, parse
from tandem.app.round_trips import RoundTrips
from tandem.mptcp.paths import Paths
from tandem.schema.record import Record

PATIENCE_S = 60.0
CONFIG = """
[probe]
name = "probe-1"
[server]
gateway = "https://server.tandem.test"
control = "https://server.tandem.test"
measurement = "http://server.tandem.test"
token_file = "token"
[round_trip]
enabled = true
period_s = {period_s}
"""


class AskedPaths:
    """``records`` as they are made."""

    def __init__(self, lab: Lab, paths: Paths, folder: Path, period_s: float) -> None:
        self.lab, self.paths, self._folder = lab, paths, folder
        self.records: queue.Queue[Record] = queue.Queue()
        self.endpoint = lab.server.inside(lambda: RealEndpoint(folder))
        (folder / "token").write_text(self.endpoint.token)
        account: Any = SimpleNamespace(left_today=lambda _path: None)
        self.round_trips = RoundTrips(self._config(period_s), self, account, self._take)  # type: ignore[arg-type]  # what it asks of paths

    def _config(self, period_s: float) -> Config:
        paths = "".join(
            f'[[path]]\nname = "{p.name}"\noperator = "{p.name.upper()}"\ninterface = "{p.interface}"\n' for p in PATHS
        )
        config = parse(CONFIG.format(period_s=period_s) + paths, self._folder / "config.toml")
        control = f"http://{SERVER}:{self.endpoint.control_port}"
        measurement = f"http://{SERVER}:{self.endpoint.measurement_port}"
        return replace(config, server=replace(config.server, control=control, measurement=measurement))

    def _take(self, records: list[Record]) -> None:
        for record in records:
            self.records.put(record)

    @property
    def interfaces(self) -> Mapping[str, str | None]:
        return self.paths.interfaces

    @property
    def states(self) -> dict[str, dict[str, str | None]]:
        return {name: asdict(status) for name, status in self.paths.statuses.items()}

    def until(self, path: str, wanted: Callable[[Record], object]) -> Record:
        """The next record of ``path`` that is as wanted; ``queue.Empty`` after a minute without any record."""
        while True:
            record = self.records.get(timeout=PATIENCE_S)
            if record.tags["path"] == path and wanted(record):
                return record

    def outcome(self, path: str, outcome: str) -> Record:
        """The next record of ``path`` with this outcome."""
        return self.until(path, lambda record: record.fields["outcome"] == outcome)


@contextmanager
def asked_paths(lab: Lab, folder: Path, period_s: float = 0.2) -> Iterator[AskedPaths]:
    """Both paths up, an endpoint, and the round trips begun."""
    made = AskedPaths(lab, up(lab), folder, period_s)
    try:
        lab.probe.inside(made.round_trips.start)
        try:
            yield made
        finally:
            made.round_trips.stop(PATIENCE_S)
    finally:
        made.endpoint.close()
        lab.probe.inside(made.paths.remove)
