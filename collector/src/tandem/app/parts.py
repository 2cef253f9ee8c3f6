"""What the collector is wired from, behind one small seam each: the real parts, or doubles in tests."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tandem.app.config import Config, PathConfig
from tandem.schema.record import Record


class EnvironmentLackError(RuntimeError):
    """This machine lacks something (rights, Multipath TCP, a program, disk); one line with the mend. Exit status 3."""


UtcOf = Callable[[int], int | None]
"""UTC in ns of CLOCK_MONOTONIC ns of this boot, None while the clock is not set."""

PositionState = dict[str, Any]
"""See ``tandem.position.observer.State``: never where, only whether."""


class PollLike(Protocol):
    """One poll of a modem. Times are CLOCK_MONOTONIC ns."""

    @property
    def path(self) -> str: ...
    @property
    def driver(self) -> str | None: ...
    @property
    def model(self) -> str | None: ...
    @property
    def failure(self) -> str | None: ...
    @property
    def due_monotonic_ns(self) -> int: ...
    @property
    def began_monotonic_ns(self) -> int: ...
    @property
    def skipped(self) -> int: ...

    def record(self) -> Record:
        """The radio record."""
        ...


class PollerLike(Protocol):
    """Polls one modem on a thread of its own."""

    def start(self) -> None:
        """Begin."""
        ...

    def stop(self, timeout: float = 5.0) -> None:
        """End; TimeoutError when it has not ended in ``timeout`` seconds."""
        ...


class DetectorsLike(Protocol):
    """Events from radio records. Fed by one thread."""

    @property
    def mobile(self) -> bool: ...
    @property
    def mobile_since_ns(self) -> int | None: ...

    def feed(self, record: Record) -> list[Record]:
        """Events that the record shows."""
        ...

    def tick(self, monotonic_ns: int) -> list[Record]:
        """Events that time brings."""
        ...


@dataclass(frozen=True, slots=True)
class PathChange:
    """``kind``: path_up, path_down or endpoint_restored."""

    kind: str
    path: str
    detail: str


class PathsLike(Protocol):
    """Routes, rules and endpoints of all paths."""

    @property
    def addresses(self) -> dict[str, str]: ...

    def apply(self) -> list[PathChange]:
        """Configure; EnvironmentLackError when the kernel refuses."""
        ...

    def check(self) -> list[PathChange]:
        """Compare and mend; as ``apply``."""
        ...

    def remove(self) -> None:
        """Undo."""
        ...


@dataclass(frozen=True, slots=True)
class CaptureEnd:
    """A finished capture; ``reason``: why it was cut, None when it was not."""

    file: Path
    bytes: int
    packets: int
    cut: bool
    sha256: str
    reason: str | None
    dropped_packets: int | None


class CaptureLike(Protocol):
    """Captures one interface into one file."""

    def start(self) -> None:
        """Begin; EnvironmentLackError when it cannot."""
        ...

    def stop(self) -> CaptureEnd:
        """End."""
        ...


class CapturesLike(Protocol):
    """Makes captures that share one disk budget."""

    @property
    def used_bytes(self) -> int: ...

    def of(self, interface: str, file: Path) -> CaptureLike:
        """A capture, not started."""
        ...


@dataclass(frozen=True)
class Parts:
    """Factories of everything that touches hardware, the kernel or other programs."""

    poller: Callable[[PathConfig, float, Callable[[PollLike], None]], PollerLike]
    detectors: Callable[[Config], DetectorsLike]
    paths: Callable[[Config], PathsLike]
    captures: Callable[[Config, int], CapturesLike]
    """The configuration, and the bytes that captures take already."""
    set_sysctls: Callable[[Mapping[str, str | int]], dict[str, dict[str, Any]]]
    environment: Callable[[], dict[str, Any]]
    """What shapes every measurement: sysctls, for the manifest."""
    experiment: Callable[[str], Sequence[str]]
    """The command line of an experiment's process."""
    position: (
        Callable[[Config, UtcOf, Callable[[list[Record]], None], Callable[[PositionState], None]], PollerLike] | None
    ) = None
    """The receiver of position: UTC of an instant, where records go, where its state goes. Asked only when position is on."""


def experiment_command(name: str) -> list[str]:
    """Start ``tandem.experiment.NAME`` with this very interpreter."""
    return [sys.executable, "-m", f"tandem.experiment.{name}"]
