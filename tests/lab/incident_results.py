"""What the incident run leaves: its folder, when what was wrong, and which runs were what."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from support.running_kit import PROBE


@dataclass
class Span:
    """UTC ns; while something was so."""

    begin_utc_ns: int
    end_utc_ns: int = 0


@dataclass
class IncidentRun:
    """What the run left. ``spans``: when what was wrong (``undervoltage``, ``modem_hangs``, ``service_lost``, ``gateway_cut``,
    ``disk_full``, ``clock_unset``, ``second_online``, ``second_silent``, ``refused``), and ``all``. ``runs``: ids by what they were."""

    folder: Path
    spans: dict[str, Span] = field(default_factory=dict)
    runs: dict[str, list[str]] = field(default_factory=dict)

    @property
    def influx(self) -> Path:
        """The data folder of the private database, not running."""
        return self.folder / "server" / "influxdb"

    def manifest(self, run: str) -> dict[str, Any]:
        """Of a run of the first probe."""
        told: dict[str, Any] = json.loads((self.folder / "probe" / PROBE / "runs" / f"{run}.json").read_text())
        return told

    @contextmanager
    def span(self, name: str) -> Iterator[None]:
        """While this is open, it is so."""
        self.spans[name] = Span(time.time_ns())
        yield
        self.spans[name].end_utc_ns = time.time_ns()

    def write(self) -> None:
        """So that it can be read again."""
        told = {"spans": {name: asdict(span) for name, span in self.spans.items()}, "runs": self.runs}
        (self.folder / "incidents.json").write_text(json.dumps(told, indent=1))

    @classmethod
    def read(cls, folder: Path) -> IncidentRun:
        told = json.loads((folder / "incidents.json").read_text())
        return cls(folder, {name: Span(**span) for name, span in told["spans"].items()}, told["runs"])
