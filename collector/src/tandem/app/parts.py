"""What the collector is wired from, behind one small seam each: the real parts, or doubles in tests."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from tandem.app.config import CaptureConfig, Config, PathConfig
from tandem.app.health.machine import Roots
from tandem.app.runs.captures import Captures
from tandem.app.runs.conditions import Conditions, ConditionsMade, missing_requirement, undo_earlier
from tandem.modem.sim import Card
from tandem.position.reports import Report
from tandem.schema.manifest import SubflowLoss
from tandem.schema.record import Record


class EnvironmentLackError(RuntimeError):
    """This machine lacks something (rights, Multipath TCP, a program, disk); one line with the mend. Exit status 3."""


UtcOf = Callable[[int], int | None]
"""UTC in ns of CLOCK_MONOTONIC ns of this boot, None while the clock is not set."""


@dataclass(frozen=True, slots=True)
class Speed:
    """The speed of a fix, for the detectors alone: ``record`` is never kept nor sent."""

    record: Record


PositionState = dict[str, Any]
"""See ``tandem.position.observer.State``: never where, only whether."""


HeardReport = Callable[[Report, int], None]
"""A report of gpsd's and the CLOCK_MONOTONIC ns of its arrival."""


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
    @property
    def stale(self) -> bool: ...

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


@runtime_checkable
class TellsCard(Protocol):
    """A poller that can look at its modem's SIM."""

    def card(self, timeout: float) -> Card | None:
        """See ``tandem.modem.poller.PollThread``."""
        ...


class ModemActionsLike(Protocol):
    """What can be done to one modem that does not answer. Called by one thread."""

    def seen(self) -> None:
        """It answers: now is the time to note where it is plugged in."""
        ...

    def do(self, step: str) -> str:
        """Do a step of ``tandem.modem.reset.STEPS``; one line of what was done. Raises what is named there, or TimeoutError."""
        ...


class DetectorsLike(Protocol):
    """Events from radio records. Fed by one thread."""

    @property
    def mobile(self) -> bool: ...
    @property
    def mobile_since_ns(self) -> int | None: ...
    @property
    def speed_class(self) -> str | None:
        """``low`` or ``high`` of the movement that goes on; None when still, or too early to tell."""
        ...

    def feed(self, record: Record) -> list[Record]:
        """Events that the record shows."""
        ...

    def tick(self, monotonic_ns: int) -> list[Record]:
        """Events that time brings."""
        ...


@dataclass(frozen=True, slots=True)
class PathChange:
    """``kind``: path_state, path_up, path_down, endpoint_restored, subflow_restored or sim_mismatch; ``state`` with the first,
    ``took_ms`` with subflow_restored."""

    kind: str
    path: str
    detail: str
    state: str | None = None
    took_ms: float | None = None


class PathsLike(Protocol):
    """Routes, rules and endpoints of all paths."""

    @property
    def addresses(self) -> dict[str, str]: ...
    @property
    def interfaces(self) -> Mapping[str, str | None]:
        """Where each path leaves now, None while that is not known; the same mapping all along."""
        ...

    @property
    def states(self) -> dict[str, dict[str, str | None]]:
        """By path: ``state``, ``interface``, ``address``, ``gateway``, ``detail``."""
        ...

    def apply(self) -> list[PathChange]:
        """Configure; EnvironmentLackError when the kernel refuses."""
        ...

    def watch(self) -> list[PathChange]:
        """Wait until something changes or ``wake`` is called, and mend; as ``apply``. After ``apply``, by one thread."""
        ...

    def wake(self) -> None:
        """End the ``watch`` that waits, from any thread."""
        ...

    def rest(self, names: Collection[str], timeout_s: float) -> bool:
        """Let these paths carry no further subflows, and all others again; whether that was done in time. From any thread."""
        ...

    def set_backup(self, name: str, backup: bool, *, again: bool = False) -> None:
        """Have running connections use this path only when no other works, or as the others again; ``again``: the order was lost.
        EnvironmentLackError when the kernel refuses. From any one thread."""
        ...

    def leave(self, token: int) -> None:
        """The connection's subflows are its experiment's to order. From any thread."""
        ...

    def losses(self, token: int) -> list[SubflowLoss] | None:
        """Subflows that an MPTCP connection lost, by the kernel's token; None when that was not watched."""
        ...

    def remove(self) -> None:
        """Undo. No ``watch`` may wait."""
        ...


@dataclass(frozen=True)
class Parts:
    """Factories of everything that touches hardware, the kernel or other programs."""

    poller: Callable[[PathConfig, float, Callable[[PollLike | PathChange | list[Record]], None]], PollerLike]
    """``path_state`` changes, and ``registration`` records of what the modem says unasked, come by the same way as polls."""
    detectors: Callable[[Config], DetectorsLike]
    paths: Callable[[Config], PathsLike]
    captures: Callable[[CaptureConfig, int], Captures]
    """The table ``[capture]``, and the bytes that captures take already."""
    set_sysctls: Callable[[Mapping[str, str | int]], dict[str, dict[str, Any]]]
    environment: Callable[[], dict[str, Any]]
    """What shapes every measurement: sysctls, for the manifest."""
    experiment: Callable[[str], Sequence[str]]
    """The command line of an experiment's process."""
    actions: Callable[[PathConfig, PollerLike], ModemActionsLike] | None = None
    """For the recovery ladder; None: modems are left as they are."""
    position: (
        Callable[
            [Config, UtcOf, Callable[[list[Record] | Speed], None], Callable[[PositionState], None], HeardReport],
            PollerLike,
        ]
        | None
    ) = None
    """The receiver of position: UTC of an instant, where records and speeds go, where its state and each report for the clock go. Asked
    when position is on; when it is off and the clock is gpsd's, for the clock alone."""

    conditions: Callable[[Conditions, Mapping[str, str | None], Path, str], ConditionsMade] = ConditionsMade
    """Makes conditions on these interfaces by path; the spool's folder and the boot's id. ConditionsError when it cannot."""
    missing_requirement: Callable[[Conditions], str | None] = missing_requirement
    """What conditions require and the machine has not; None when nothing."""
    undo_earlier: Callable[[Path, str], list[str]] = undo_earlier
    """Undoes what an earlier life left of them; the same folder and id."""
    roots: Roots = field(default_factory=Roots)
    """Where the kernel tells of the machine's health."""


def experiment_command(name: str) -> list[str]:
    """Start ``tandem.experiment.NAME`` with this very interpreter."""
    return [sys.executable, "-m", f"tandem.experiment.{name}"]
