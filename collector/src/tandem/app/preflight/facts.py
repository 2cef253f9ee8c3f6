"""What the check found out, before anything is judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tandem.app.health.storage import Room


@dataclass(frozen=True, slots=True)
class Disk:
    """The probe's folder. ``trouble``: why it cannot be used, None when it can; ``room`` None when that cannot be asked."""

    room: Room | None
    trouble: str | None = None


@dataclass(frozen=True, slots=True)
class Server:
    """What the gateway and the endpoint answered. ``gateway``, ``control``: None when all is well, else why not. ``untimely``: a
    certificate that does not hold at the time that this clock shows. ``token``: None: not asked; ``good``, or why it is not.
    ``probe``: whose the token is; ``expected``: the collector's version that the server expects; None: it does not say.
    ``budget``: None when a session was opened, else why the endpoint grants none. ``clock_off_s``: this clock less the gateway's.
    ``no_metrics_save``: its kernel's sysctl, None when it did not tell."""

    gateway: str | None
    control: str | None = None
    untimely: bool = False
    version: str | None = None
    token: str | None = None
    probe: str | None = None
    expected: str | None = None
    budget: str | None = None
    clock_off_s: float | None = None
    no_metrics_save: str | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured over the paths. ``held``: why nothing could be, None when it could. ``unanswered``: no collector answers, ours
    included. ``downloads``: by path the row of the status's ``finished``; ``verdicts``: by path ``primary`` and ``join`` of the
    verdict's result; ``verdict_failure``: why there are none."""

    held: str | None = None
    downloads: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    verdicts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    verdict_failure: str | None = None
    unanswered: bool = False


@dataclass(frozen=True, slots=True)
class Vlc:
    """The VLC that is installed. ``trouble``: why it does not start, None when it does."""

    trouble: str | None


@dataclass(frozen=True, slots=True)
class Tunnel:
    """The way by which people reach the kit. ``answered``: whether the hub did."""

    answered: bool
    detail: str
