"""The check as a whole: ask the collector (or be one), the server, measure, judge."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
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
from tandem.app.daemon.sim_plan import sims
from tandem.app.daemon.status_socket import NAME, NoCollectorError, ask
from tandem.app.errors import MissingRequirementError
from tandem.app.health.machine import Room, room_of
from tandem.app.preflight.checks import Facts, Measured, Status, lines, settling_lines
from tandem.app.preflight.lines import Line, ready, settled
from tandem.app.preflight.measuring import Measuring
from tandem.app.preflight.own_collector import OwnCollector, token_file
from tandem.app.preflight.server import ask_server
from tandem.experiment.base import MissingRequirementError as NoVlcError
from tandem.experiment.dash import vlc
from tandem.modem.usb import network_interface
from tandem.mptcp import sysctls

FORMAT = "tandem-preflight/1"
METRICS = "net.ipv4.tcp_no_metrics_save"
_ANSWER_S, _LOOK_S, _SIMS_S = 5.0, 1.0, 5.0
INTERFACE = "wg-tandem"
FRESH_S = 180.0
"""With a keepalive the ends shake hands every two minutes; after three a session is dead (WireGuard's REJECT_AFTER_TIME)."""
_SHOWN = re.compile(r"[A-Za-z0-9+/]{43}=\t([0-9]{1,12})")


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
        facts = _facts(config, options, folder, trouble)
    found = tuple(settled(lines(facts), options.accepted))
    software = {**(facts.status.get("software") or {}), "server": facts.server.version}
    return Report(config.probe, datetime.now(UTC), found, software, config.operators, time.monotonic() - began_s)


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


def _facts(config: Config, options: CheckOptions, folder: Path | None, trouble: str | None) -> Facts:
    options.tell("modems, paths, clock and position …")
    facts = Facts(config, {}, _disk(config.folder), trouble)
    if folder is not None:
        _settle(facts, options, folder)
    up = _interfaces(config, facts.status)
    options.tell("the server …")
    facts.server = ask_server(config, up)
    facts.measured = Measured(held="the collector does not answer", unanswered=True)
    if folder is not None:
        facts.measured = Measuring(folder, options.wait_s, options.tell).over(list(up))
    with contextlib.suppress(NoCollectorError, TimeoutError):  # what it said before still holds
        last = None if folder is None else _status(folder)
        if last is not None:
            facts.status = {**facts.status, "spool": last.get("spool"), "trouble": last.get("trouble")}
    facts.vlc = _vlc()
    facts.no_metrics_save = sysctls.read([METRICS])[METRICS]
    facts.sims = _plans(config, facts.status, folder)
    facts.tunnel = _tunnel()
    facts.running = (facts.status.get("software") or {}).get("tandem")
    if trouble is not None and facts.running is None:
        facts.running = tandem.__version__  # where none runs, that of this one
    return facts


def _settle(facts: Facts, options: CheckOptions, folder: Path) -> None:
    """Until all that the status tells is well, or the time is over."""
    began_s = time.monotonic()
    looked_s = 0.0
    while True:
        if time.monotonic() - looked_s > _SIMS_S:
            looked_s = time.monotonic()
            list(ask(folder / NAME, {"op": "sims"}, _ANSWER_S))
        try:
            facts.status = _fresh(_status(folder) or {}, time.monotonic() - began_s)
        except (NoCollectorError, TimeoutError):
            facts.status = {}  # it ended, or began to hang
            return
        well = not any(line.state == "fail" for line in settling_lines(facts))
        if (well and facts.status.get("health") is not None) or time.monotonic() - began_s > options.wait_s:
            return
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


def _disk(folder: Path) -> Room | str:
    try:
        return room_of(folder)
    except OSError as error:
        return error.strerror or str(error)


def _vlc() -> str | None:
    try:
        return vlc.trouble() or ""
    except NoVlcError:
        return None


def _plans(config: Config, status: Status, folder: Path | None) -> Mapping[str, Any]:
    """Of the SIMs' plans, by the probe's own account."""
    if folder is None or folder == config.folder:
        return dict(status.get("sims") or {})
    if not (status.get("clock") or {}).get("vouched"):
        return {}
    account = Account(config.folder, {}, boot_id(), time.time_ns)
    return {sim.path.name: sim.status() for sim in sims(config.paths, account, time.time_ns())}


def _tunnel() -> tuple[bool, str] | None:
    """Whether the ends of the WireGuard tunnel by which people reach the kit shook hands lately, and in words. None where there is none, or
    nobody may ask: ``wg show`` takes the capability NET_ADMIN."""
    program = shutil.which("wg")
    if not (Path("/sys/class/net") / INTERFACE).exists() or program is None:
        return None
    argv = [program, "show", INTERFACE, "latest-handshakes"]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if done.returncode != 0 else handshakes(done.stdout, time.time())


def handshakes(shown: str, now_s: float) -> tuple[bool, str]:
    """From what ``wg show INTERFACE latest-handshakes`` prints: a peer a line, its key and seconds since 1970, 0 for never."""
    last_s = max((int(match[1]) for line in shown.splitlines() if (match := _SHOWN.fullmatch(line))), default=0)
    if last_s == 0:
        return False, "its ends never shook hands since it is up"
    age_s = now_s - last_s
    if age_s > FRESH_S:
        return False, f"its ends last shook hands {age_s / 60:.0f} min ago"
    return True, "its ends shook hands within the last minutes"
