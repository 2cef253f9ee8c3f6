"""The check as a whole: ask the collector (or be one), the server, measure, judge."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import tandem
from tandem.app.clock.clock import boot_id
from tandem.app.config import Config
from tandem.app.daemon.accounts import Account
from tandem.app.daemon.status_socket import NAME, NoCollectorError, ask
from tandem.app.errors import MissingRequirementError
from tandem.app.health.machine import room_of
from tandem.app.health.sims import sims
from tandem.app.preflight.facts import Disk, Measured, Vlc
from tandem.app.preflight.lines import Line, ready, settled
from tandem.app.preflight.machine import collector_line, machine_lines, player_line
from tandem.app.preflight.measuring import Measuring
from tandem.app.preflight.modems import Status, modem_lines
from tandem.app.preflight.network import (
    measured_lines,
    metrics_line,
    path_lines,
    plan_lines,
    server_lines,
    tunnel_lines,
)
from tandem.app.preflight.own_collector import OwnCollector, token_file
from tandem.app.preflight.server import ask_server
from tandem.app.preflight.tunnel import tunnel
from tandem.experiment.base import EnvironmentLackError as NoVlcError
from tandem.experiment.dash import vlc
from tandem.modem.usb import network_interface
from tandem.mptcp import sysctls

FORMAT = "tandem-preflight/1"
METRICS = "net.ipv4.tcp_no_metrics_save"
_ANSWER_S, _LOOK_S, _SIMS_S = 5.0, 1.0, 5.0


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """``wait_s``: for what takes its time (registration, a fix, the clock, another run); ``accepted``: labels of lines that may fail."""

    wait_s: float
    accepted: Collection[str]
    tell: Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Report:
    """``software``: what runs here, by part."""

    probe: str
    at: datetime
    lines: tuple[Line, ...]
    software: Mapping[str, Any]
    operators: Mapping[str, str | None]
    took_s: float

    @property
    def ok(self) -> bool:
        """Ready to be handed out."""
        return ready(self.lines)

    def as_json(self) -> dict[str, Any]:
        """See docs/contributing/collector.md."""
        return {
            "format": FORMAT,
            "probe": self.probe,
            "at": self.at.isoformat(timespec="seconds"),
            "ok": self.ok,
            "took_s": round(self.took_s, 1),
            "software": dict(self.software),
            "paths": dict(self.operators),
            "lines": [line.as_json() for line in self.lines],
        }


def check(config: Config, options: CheckOptions) -> Report:
    """All of it. MissingRequirementError when this machine has not what it requires."""
    began_s = time.monotonic()
    config = replace(config, server=replace(config.server, token_file=token_file(config)))
    with _source(config, options) as (folder, trouble):
        lines, software = _looked(config, options, folder, trouble)
    operators = {path.name: path.operator for path in config.paths}
    found = tuple(settled(lines, options.accepted))
    return Report(config.probe, datetime.now(UTC), found, software, operators, time.monotonic() - began_s)


@contextmanager
def _source(config: Config, options: CheckOptions) -> Iterator[tuple[Path | None, str | None]]:
    """The folder of a collector that answers, None when it hangs; and what is wrong with the probe's own."""
    try:
        if _status(config.folder) is not None:
            yield config.folder, None
            return
        trouble = "it ended while it was asked"
    except TimeoutError:
        yield None, f"it hangs: it was asked and said nothing for {_ANSWER_S:g} s"
        return
    except NoCollectorError as error:
        if not isinstance(error.__cause__, ConnectionRefusedError | FileNotFoundError):
            raise MissingRequirementError(
                f"the collector cannot be asked: {error}; hint: as root, or as user tandem"
            ) from error
        trouble = "none runs; what follows was looked at without it"
    options.tell("no collector runs: one of our own for the check …")
    with OwnCollector(config) as folder:
        yield folder, trouble


def _status(folder: Path) -> dict[str, Any] | None:
    return next(iter(ask(folder / NAME, {"op": "status"}, _ANSWER_S)), None)


def _looked(
    config: Config, options: CheckOptions, folder: Path | None, trouble: str | None
) -> tuple[list[Line], Mapping[str, Any]]:
    disk = _disk(config.folder)
    options.tell("modems, paths, clock and position …")
    status = {} if folder is None else _settling(config, options, folder, disk)
    up = _interfaces(config, status)
    options.tell("the server …")
    server = ask_server(config, up)
    measured = Measured(held="the collector does not answer", unanswered=True)
    if folder is not None:
        measured = Measuring(folder, options.wait_s, options.tell).over(list(up))
    with contextlib.suppress(NoCollectorError, TimeoutError):  # what it said before still holds
        last = None if folder is None else _status(folder)
        status = status if last is None else {**status, "spool": last.get("spool"), "trouble": last.get("trouble")}
    return [
        collector_line(trouble, status),
        *modem_lines(config, status),
        *path_lines(config, status),
        *measured_lines(config, measured, server),
        *machine_lines(config, status, disk, server.clock_off_s),
        player_line(_vlc()),
        *server_lines(config, server, _running(status, trouble)),
        metrics_line(sysctls.read([METRICS])[METRICS], server),
        *plan_lines(config, _plans(config, status, folder)),
        *tunnel_lines(tunnel()),
    ], {**(status.get("software") or {}), "server": server.version}


def _settling(config: Config, options: CheckOptions, folder: Path, disk: Disk) -> Status:
    """The status once all that it tells is well, or as it is when the time is over."""
    began_s = time.monotonic()
    looked_s = 0.0
    while True:
        if time.monotonic() - looked_s > _SIMS_S:
            looked_s = time.monotonic()
            list(ask(folder / NAME, {"op": "sims"}, _ANSWER_S))
        try:
            status = _fresh(_status(folder) or {}, time.monotonic() - began_s)
        except (NoCollectorError, TimeoutError):
            return {}  # it ended, or began to hang
        told = [*modem_lines(config, status), *path_lines(config, status), *machine_lines(config, status, disk, None)]
        if status.get("health") is not None and not any(line.state == "fail" for line in told):
            return status
        if time.monotonic() - began_s > options.wait_s:
            return status
        time.sleep(_LOOK_S)


def _fresh(status: Status, since_s: float) -> Status:
    """Without what was found in SIMs before this check began."""
    modems = {
        path: {**told, "sim": None} if ((told.get("sim") or {}).get("age_s") or 0) > since_s else told
        for path, told in (status.get("modems") or {}).items()
    }
    return {**status, "modems": modems}


def _interfaces(config: Config, status: Status) -> dict[str, str]:
    """Of the paths that are up; where no collector says which are, of those that are there."""
    found: dict[str, str] = {}
    for path in config.paths:
        told = (status.get("paths") or {}).get(path.name)
        interface = told.get("interface") if told else path.interface or network_interface(path.usb or "")
        if interface and (told is None or told.get("state") == "up"):
            found[path.name] = interface
    return found


def _disk(folder: Path) -> Disk:
    try:
        return Disk(room_of(folder))
    except OSError as error:
        return Disk(None, error.strerror or str(error))


def _vlc() -> Vlc | None:
    try:
        return Vlc(vlc.trouble())
    except NoVlcError:
        return None


def _running(status: Status, trouble: str | None) -> str | None:
    """The version of the collector that runs; where none does, of this one."""
    told = (status.get("software") or {}).get("tandem")
    return tandem.__version__ if trouble is not None and told is None else told


def _plans(config: Config, status: Status, folder: Path | None) -> Mapping[str, Any]:
    """Of the SIMs' plans, by the probe's own account."""
    if folder is None or folder == config.folder:
        return dict(status.get("sims") or {})
    if not (status.get("clock") or {}).get("vouched"):
        return {}
    account = Account(config.folder, {}, boot_id(), time.time_ns)
    return {sim.path.name: sim.status() for sim in sims(config.paths, account, time.time_ns())}
