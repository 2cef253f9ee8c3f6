"""The check as a whole: ask the collector (or be one), the server, measure, judge."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import tandem
from tandem.app.config import Config
from tandem.app.daemon.accounts import Account, sims
from tandem.app.daemon.status_socket import NAME, NoCollectorError, ask
from tandem.app.health.machine import Room, room_of
from tandem.app.preflight.checks import Facts, Measured, Server, Status, lines, settling_lines
from tandem.app.preflight.lines import Line, ready, settled
from tandem.app.preflight.own_collector import OwnCollector, token_file
from tandem.experiment.base import MissingRequirementError
from tandem.experiment.control import Control, ControlError
from tandem.experiment.dash import vlc
from tandem.experiment.parameters import ParameterError, read_common
from tandem.export import GatewayAddress, SetupError
from tandem.export.clock import boot_id
from tandem.export.gateway import Answer, CertificateTimeError, Link, LinkError
from tandem.modem.usb import network_interface
from tandem.mptcp import sysctls
from tandem.schema.manifest import CHECK_RUN

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
        return ready(self.lines)

    def as_json(self) -> dict[str, Any]:
        """As ``--json`` prints it (docs/contributing/collector.md)."""
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
        path: {**modem, "sim": None} if ((modem.get("sim") or {}).get("age_s") or 0) > since_s else modem
        for path, modem in (status.get("modems") or {}).items()
    }
    return {**status, "modems": modems}


def _interfaces(config: Config, status: Status) -> dict[str, str]:
    """Of the paths that are up; where no collector says which are, of those that are there."""
    found: dict[str, str] = {}
    for path in config.paths:
        path_status = (status.get("paths") or {}).get(path.name)
        interface = path_status.get("interface") if path_status else path.interface or network_interface(path.usb or "")
        if interface and (path_status is None or path_status.get("state") == "up"):
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
    except MissingRequirementError:
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


# ---------------------------------------------------------------------------------------------------------------------
# The server: does it answer, whose is the token, which version does it expect, does it grant sessions.


_CONNECT_S, _SERVER_S = 5.0, 10.0
_GOOD = "good"
_NO_TOKEN = "none"  # noqa: S105  sent where the file holds none, so that the server itself can be asked


def ask_server(config: Config, interfaces: Mapping[str, str]) -> Server:
    """``interfaces``: of the paths that are up. Over each in turn until one brings an answer."""
    try:
        address, wrong = _address(config)
    except SetupError as error:
        return Server(gateway=str(error).partition("; hint: ")[0])
    if not interfaces:
        return Server(gateway="no path is up", control="no path is up", token=wrong)
    server = _of_gateway(address, interfaces)
    if wrong is not None:
        return replace(server, token=wrong)
    return _of_endpoint(config, interfaces, server)


def _address(config: Config) -> tuple[GatewayAddress, str | None]:
    """Where the gateway is, and what is wrong with the token's file; SetupError for what else is wrong."""
    server = config.server
    where = server.gateway, server.ca_file, server.token_file
    try:
        return GatewayAddress.of(*where), None
    except SetupError as error:
        if not str(error).startswith("token_file"):
            raise
        return GatewayAddress.of(*where, _NO_TOKEN), str(error).partition("; hint: ")[0]


def _of_gateway(address: GatewayAddress, interfaces: Mapping[str, str]) -> Server:
    reasons = []
    for path in interfaces:
        link = Link(path, partial(interfaces.get, path), address, _CONNECT_S, _SERVER_S)
        try:
            return _server_at(link)
        except CertificateTimeError as error:
            return Server(gateway=str(error).partition("; hint: ")[0], untimely=True)
        except LinkError as error:
            reasons.append(f"over {path}: {error}")
        finally:
            link.close()
    return Server(gateway="; ".join(reasons))


def _server_at(link: Link) -> Server:
    health = link.ask("GET", "/v1/health", b"", {})
    if health.status != 200:
        return Server(gateway=health.error)
    content = health.content if isinstance(health.content, dict) else {}
    off_s = None if health.date_utc_s is None else round(time.time() - health.date_utc_s, 1)
    server = Server(gateway=None, version=_text(content.get("version")), clock_off_s=off_s)
    who = link.ask("GET", "/v1/probe", b"", {})
    content = who.content if isinstance(who.content, dict) else {}
    whose, expected = _text(content.get("probe")), _text(content.get("collector_version"))
    return replace(server, token=_judged(who), probe=whose, expected=expected)


def _judged(answer: Answer) -> str | None:
    if answer.status == 200:
        return _GOOD
    if answer.status in (401, 403):
        return "the server does not know it, or it was revoked"
    return None


def _text(value: object) -> str | None:
    return value[:100] if isinstance(value, str) else None


def _of_endpoint(config: Config, interfaces: Mapping[str, str], server: Server) -> Server:
    """A session of one byte is opened and closed."""
    paths = [{"name": name, "interface": interface} for name, interface in interfaces.items()]
    parameters = {"run": CHECK_RUN, "paths": paths, "server": config.server.parameter, "control_timeout_s": _SERVER_S}
    try:
        control = Control(read_common(parameters))
        session = control.open("tcp", {}, bytes=1, seconds=None)
        control.close(session, _CONNECT_S)
    except ParameterError as error:
        return replace(server, control=str(error))
    except ControlError as error:
        if error.status == 429:
            return replace(server, budget=str(error).removeprefix("control channel: "))
        if error.status == 401:  # the gateway says so too: the token's line
            return server
        return replace(server, control=str(error).removeprefix("control channel: "))
    settings = session.answer.get("environment")
    return replace(
        server, no_metrics_save=_text(settings.get("tcp_no_metrics_save")) if isinstance(settings, dict) else None
    )


# ---------------------------------------------------------------------------------------------------------------------
# A small download over each path, then a verdict on those that carried it, by the collector.


DOWNLOAD_BYTES, VERDICT_BYTES = 200_000, 100_000
_DOWNLOAD_S, _VERDICT_S, _JOIN_S = 45.0, 30.0, 3.0
_SILENT_S = 20.0
"""A collector that measures tells of it twice a second."""
_AGAIN_S = 1.0
_OWN_END_S = 20.0
"""A run of ours that is reported as done may still be closing its session over a path that brings nothing."""


class HeldError(Exception):
    """Something else is measured, or the collector does not do it."""


class Measuring:
    """``folder``: the collector's; ``wait_s``: for what else is being measured; ``tell``: what goes on, for people."""

    def __init__(self, folder: Path, wait_s: float, tell: Callable[[str], None]) -> None:
        self._folder, self._tell = folder, tell
        self._until_s = time.monotonic() + wait_s

    def over(self, paths: Sequence[str]) -> Measured:
        """``paths``: those that are up."""
        downloads: dict[str, dict[str, Any]] = {}
        try:
            if paths:
                self._idle()
            for path in paths:
                self._tell(f"a download over {path} …")
                parameters = {"kind": "tcp", "path": path, "bytes": DOWNLOAD_BYTES, "deadline_s": _DOWNLOAD_S}
                downloads[path] = self._run("download", parameters)
            good = [path for path in paths if downloads[path].get("ok")]
            if not good:
                return Measured(downloads=downloads)
            self._tell(f"the verdict on Multipath TCP over {', '.join(good)} …")
            own = {"bytes": VERDICT_BYTES, "join_wait_s": _JOIN_S}
            row = self._run("verdict", {"paths": good, "parameters": own, "deadline_s": _VERDICT_S * (1 + len(good))})
        except HeldError as error:
            return Measured(held=str(error), downloads=downloads)
        return self._verdict(row, downloads)

    def _verdict(self, row: dict[str, Any], downloads: dict[str, dict[str, Any]]) -> Measured:
        file = self._folder / "runs" / f"{row.get('id')}.json"
        try:
            result = json.loads(file.read_bytes())["result"]
            verdicts = dict((result or {}).get("paths") or {})
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            return Measured(downloads=downloads, verdict_failure=f"its result cannot be read: {error}")
        return Measured(downloads=downloads, verdicts=verdicts, verdict_failure=row.get("failure"))

    def _idle(self) -> None:
        """HeldError when a campaign or a run still holds when the time is over."""
        while True:
            answer = next(iter(self._ask({"op": "campaign", "action": "idle"})), {})
            held = answer.get("held") or (answer.get("reason") if answer.get("type") == "refused" else None)
            if not held:
                return
            self._wait(str(held))

    def _wait(self, why: str) -> None:
        if time.monotonic() > self._until_s:
            raise HeldError(why)
        time.sleep(_AGAIN_S)

    def _run(self, experiment: str, parameters: dict[str, Any]) -> dict[str, Any]:
        """The row of its one run; ``failure`` tells why there is none."""
        row = self._begun(experiment, parameters)
        self._until_s = max(self._until_s, time.monotonic() + _OWN_END_S)
        return row

    def _begun(self, experiment: str, parameters: dict[str, Any]) -> dict[str, Any]:
        while True:
            for answer in self._ask({"op": "start", "experiment": experiment, "parameters": parameters}):
                kind, reason = answer.get("type"), str(answer.get("reason"))
                if kind == "refused" and "try again when it has ended" in reason:
                    break
                if kind in ("refused", "error"):
                    raise HeldError(f"the collector refused: {reason}")
                if kind == "done":
                    rows = answer.get("results") or []
                    return dict(rows[-1]) if rows else {"ok": False, "failure": "the run did not come to an end"}
            else:
                raise HeldError("the collector ended meanwhile")
            self._wait("another run goes on")

    def _ask(self, request: dict[str, Any]) -> list[dict[str, Any]]:
        """All answers but progress."""
        try:
            return [a for a in ask(self._folder / NAME, request, _SILENT_S) if a.get("type") != "progress"]
        except NoCollectorError as error:
            raise HeldError(f"no collector answers: {error}") from error
        except TimeoutError as error:
            raise HeldError("the collector said nothing for 20 s") from error
