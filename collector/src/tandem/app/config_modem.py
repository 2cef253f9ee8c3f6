"""The configuration of paths and their modems: where they are, their connection through ModemManager, and the recovery ladder."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tandem.app.config_checks import RECOVERY_STEPS
from tandem.app.config_plan import PlanConfig
from tandem.app.config_schema import MANAGED

SIM_SECRET = "sim.secret"  # noqa: S105 - a file's name, in the probe's folder
"""What the hashes of SIMs are made with; made when it is first needed."""

UNTOLD_PLAN_BYTES, LONGEST_MONTH = 10_000_000_000, 31


@dataclass(frozen=True, slots=True)
class ConnectionConfig:
    """See ``tandem.modem.mm_poller.ConnectionSettings``; files are absolute, ``tried`` is in the probe's folder."""

    apn: str
    tried: Path
    pin_file: Path | None
    roaming: bool
    user: str | None
    password_file: Path | None
    ip_type: str


@dataclass(frozen=True, slots=True)
class ModemConfig:
    """Exactly one of ``port`` (device, link to one, a stick's ``http://ADDRESS``, or ``modemmanager:`` and a USB or sysfs path) and
    ``usb`` (its place) is set; ``driver``: a family's name or ``auto``; ``sim``: the hash of the SIM that must be in it, made with
    the secret in ``sim_secret``; ``connection``: kept up through ModemManager, None when that is somebody else's business."""

    port: str | None
    driver: str
    usb: str | None
    sim: str | None
    sim_secret: Path
    connection: ConnectionConfig | None = None


def day_share(plan_bytes: int) -> int:
    """What a SIM may carry a day, where only its plan is known."""
    return plan_bytes // LONGEST_MONTH


@dataclass(frozen=True, slots=True)
class PathConfig:
    """A path; either ``interface`` or ``usb``, the place of its modem, is set; ``modem`` None for Wi-Fi and Ethernet; ``gateway`` None
    on point-to-point interfaces, or to take the interface's own; ``gnss``: its modem's GNSS is the position's source;
    ``plan``: of its SIM, None when nobody told it; ``metered``: whether its bytes cost, None: where there is a modem or a plan;
    ``day_bytes``: what its SIM may carry a day, None when nobody told it."""

    name: str
    operator: str | None
    interface: str | None
    usb: str | None
    gateway: str | None
    address: str | None
    modem: ModemConfig | None
    gnss: bool = False
    plan: PlanConfig | None = None
    metered: bool | None = None
    day_bytes: int | None = None

    @property
    def is_metered(self) -> bool:
        """Whether what it carries is paid for."""
        return self.metered if self.metered is not None else self.modem is not None or self.plan is not None

    @property
    def day_limit_bytes(self) -> int | None:
        """What it may carry a day (UTC), both ways; what nobody told is a day's part of the plan, or of one of 10 GB. None: no limit."""
        if self.day_bytes is not None or not self.is_metered:
            return self.day_bytes
        return day_share(UNTOLD_PLAN_BYTES if self.plan is None else self.plan.bytes)


@dataclass(frozen=True, slots=True)
class RecoveryConfig:
    """See ``tandem.modem.recovery.RecoverySettings``."""

    enabled: bool
    after_s: float
    steps: tuple[str, ...]
    longest_back_off_s: float


def connection_of(values: Mapping[str, Any], here: Path, folder: Path) -> ConnectionConfig:
    """From checked values; files are relative to ``here``."""
    files = {name: None if values[name] is None else here / values[name] for name in ("pin_file", "password_file")}
    return ConnectionConfig(**{**values, **files, "tried": folder / "sim"})


def recovery_of(values: Mapping[str, Any]) -> RecoveryConfig:
    """From checked values; the ladder's order is its own, not the file's."""
    given = [step.strip() for step in values["steps"].split(",")]
    steps = tuple(step for step in RECOVERY_STEPS if step in given)
    return RecoveryConfig(values["enabled"], float(values["after_s"]), steps, float(values["longest_back_off_s"]))


def misfit(port: str, driver: str, connected: bool) -> tuple[str, str, str] | None:
    """What in a modem's table does not go together: the key, what is wrong, the mend. ``port``: empty where a place is told."""
    if not port.startswith(MANAGED):
        if not connected or not port:
            return None
        what = "path.modem.connection is for modems that ModemManager has, which knows them by their place"
        return "connection", what, 'write usb = "USB-PATH" or port = "modemmanager:USB-PATH", or leave the table out'
    if not port.removeprefix(MANAGED):
        return "port", f"path.modem.port: {port!r} names no modem", "as in modemmanager:1-1.2"
    if driver != "auto":
        return "driver", "path.modem.driver: a modem of ModemManager has no driver of ours", "leave it out"
    return None


def drivers() -> list[str]:
    """The modem families: the modules of ``tandem.modem.families``, not imported."""
    return sorted(m.name for m in pkgutil.iter_modules([str(Path(__file__).parents[1] / "modem" / "families")]))
