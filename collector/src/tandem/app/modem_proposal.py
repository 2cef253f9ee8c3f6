"""``tandem modem list --inventory``: what is plugged in → lines of ``tandem_paths``, and what stands in the way of each."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from tandem.app.config import Config
from tandem.app.modem_list import Listed, ask_web
from tandem.at.dialogue import NoAnswer, PortLost
from tandem.modem.families import AUTO
from tandem.modem.mm_modem import ManagedSim
from tandem.modem.sim import READY, UNTOLD, WANTS_PIN, HomeNetwork
from tandem.modem.usb import FoundModem
from tandem.modem.web import WebChannel

FORMAT = "tandem-paths/1"
ROUTES = Path("/proc/net/route")
FILE = Path("/usr/share/mobile-broadband-provider-info/serviceproviders.xml")
"""Access points as Debian's mobile-broadband-provider-info publishes them: MCC and MNC → the one APN for the internet, where it is one."""
_SECRETS = ("pin", "password")


class ProvidersError(OSError):
    """The list cannot be read: one line with its hint."""


@dataclass(frozen=True, slots=True)
class AccessPoint:
    """``user`` and ``password``: as published; None where there is none, or more than one."""

    apn: str
    user: str | None = None
    password: str | None = None


@dataclass(frozen=True, slots=True)
class Published:
    """Of one network: who sells it, and all that its SIMs may connect to the internet with."""

    names: tuple[str, ...] = ()
    access_points: tuple[AccessPoint, ...] = ()

    @property
    def name(self) -> str | None:
        return self.names[0] if len(self.names) == 1 else None

    @property
    def apns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(one.apn for one in self.access_points))

    @property
    def access_point(self) -> AccessPoint | None:
        if len(self.apns) != 1:
            return None
        keys = set(self.access_points)
        return keys.pop() if len(keys) == 1 else AccessPoint(self.apns[0])


class Providers:
    """The list, read once."""

    def __init__(self, file: Path = FILE) -> None:
        try:
            self._root = ElementTree.parse(file).getroot()  # noqa: S314 - a file of the distribution
        except FileNotFoundError:
            raise ProvidersError(f"{file}: not there; hint: apt install mobile-broadband-provider-info") from None
        except (OSError, ElementTree.ParseError) as error:
            raise ProvidersError(
                f"{file}: {error}; hint: apt install --reinstall mobile-broadband-provider-info"
            ) from error

    def of(self, plmn: str) -> Published:
        """Of a home network, as ``24405``."""
        names: list[str] = []
        points: list[AccessPoint] = []
        for provider in self._root.iter("provider"):
            gsm = provider.find("gsm")
            if gsm is None or plmn not in (f"{n.get('mcc')}{n.get('mnc')}" for n in gsm.findall("network-id")):
                continue
            names.append((provider.findtext("name") or "").strip())
            points.extend(
                AccessPoint(apn.get("value", ""), apn.findtext("username") or None, apn.findtext("password") or None)
                for apn in gsm.findall("apn")
                if any(usage.get("type") == "internet" for usage in apn.findall("usage"))
            )
        return Published(tuple(dict.fromkeys(name for name in names if name)), tuple(p for p in points if p.apn))


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a path cannot be used as it is. ``kind``: ``pin``, ``apn``, ``sim``, ``modem``; ``passing``: time may mend it."""

    usb: str
    path: str | None
    kind: str
    message: str
    hint: str
    passing: bool = False

    def line(self) -> str:
        return f"{self.message}; hint: {self.hint}"


@dataclass(frozen=True, slots=True)
class Proposal:
    """``paths``: in the words of ``tandem_paths``, by their place on USB; ``same_network``: the paths whose modems give
    the same addresses."""

    paths: tuple[Mapping[str, Any], ...]
    problems: tuple[Problem, ...]
    same_network: tuple[str, ...]

    @property
    def settled(self) -> bool:
        """There is a modem, and nothing that time may mend."""
        return bool(self.paths) and not any(problem.passing for problem in self.problems)

    def as_json(self) -> dict[str, Any]:
        problems = [
            {"usb": one.usb, "path": one.path, "kind": one.kind, "message": one.message, "hint": one.hint}
            for one in self.problems
        ]
        separation = "namespaces" if self.same_network else "routes"
        return {"format": FORMAT, "paths": list(self.paths), "separation": separation, "problems": problems}

    def as_yaml(self) -> str:
        """To be pasted into an inventory. Secrets are named there, not written."""
        lines = ["tandem_paths:" if self.paths else "tandem_paths: []"]
        for path in self.paths:
            connection = {
                key: f"{{{{ secret_{key}_{path['name']} }}}}" if key in _SECRETS else value
                for key, value in path.items()
            }
            if any(problem.kind == "pin" and problem.path == path["name"] for problem in self.problems):
                connection["pin"] = f"{{{{ secret_pin_{path['name']} }}}}"
            lines.append(
                "  - {"
                + ", ".join(f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in connection.items())
                + "}"
            )
            if "password" in path:
                lines.append(
                    f"# {path['name']}: the published password is {path['password']}; "
                    f"hint: ./kit fleet secret KIT secret_password_{path['name']} -i DIR"
                )
        if self.same_network:
            lines.append(
                f"# {' and '.join(self.same_network)} give the same addresses; modems_separation: auto keeps them apart"
            )
        return "\n".join([*lines, *(f"# {problem.line()}" for problem in self.problems)])


def gateways(file: Path | None = None) -> dict[str, str]:
    """By network interface its next hop, else the first address of its network: the main routing table as /proc/net/route has it."""
    hops: dict[str, str] = {}
    firsts: dict[str, str] = {}
    for line in (file or ROUTES).read_text(encoding="ascii").splitlines()[1:]:
        name, destination, gateway, _flags, _refs, _uses, _metric, mask, *_ = line.split()
        if int(gateway, 16):
            hops.setdefault(name, _address(int.from_bytes(bytes.fromhex(gateway), "little")))
        elif int(mask, 16):
            firsts.setdefault(name, _address(int.from_bytes(bytes.fromhex(destination), "little") + 1))
    return firsts | hops


def _address(number: int) -> str:
    return ".".join(str(byte) for byte in number.to_bytes(4, "big"))


def proposal(
    plugged: Sequence[tuple[FoundModem, Listed]],
    config: Config | None,
    sims: Mapping[str, ManagedSim],
    routes: Mapping[str, str],
    published: Callable[[str], Published],
    ask: bool = True,
) -> Proposal:
    """Pure but for asking the web servers of sticks. ``sims``: what ModemManager tells, by place; ``routes``: next hops by interface;
    ``published``: of a home network. A path of the configuration keeps its name, operator and access point."""
    taken = {path.name for path in config.paths} if config is not None else set()
    free = (letter for letter in "abcdefghijklmnopqrstuvwxyz" if letter not in taken)
    one = _One(sims, routes, published, ask)
    for found, listed in plugged:
        if not one.waits(found):
            one.add(found, listed, listed.slot.name if listed.slot is not None else next(free))
    paths_of = Counter(one.networks.values())
    shared = tuple(name for name, network in one.networks.items() if paths_of[network] > 1)
    return Proposal(tuple(one.paths), tuple(one.problems), shared)


class _One:
    """Collects the paths, one modem after the other."""

    def __init__(
        self,
        sims: Mapping[str, ManagedSim],
        routes: Mapping[str, str],
        published: Callable[[str], Published],
        ask: bool,
    ) -> None:
        self._sims, self._routes, self._published, self._ask = sims, routes, published, ask
        self.paths: list[dict[str, Any]] = []
        self.problems: list[Problem] = []
        self.networks: dict[str, str] = {}
        """By path: the next hop that its modem gives."""

    def waits(self, found: FoundModem) -> bool:
        if found.mode_switch is not None:
            message, hint = (
                f"USB {found.path}: {found.mode_switch.partition(':')[0]}",
                found.mode_switch.partition(": ")[2],
            )
            self.problems.append(Problem(found.path, None, "modem", message, hint or "plug it in again", True))
            return True
        control_only = bool(found.ports) and not any(port.name.startswith("/dev/tty") for port in found.ports)
        if found.collector_role == "at-second" and found.collector_port is None and not control_only:
            message = f"USB {found.path}: its ports are not all there"
            self.problems.append(Problem(found.path, None, "modem", message, "wait; or plug it in again", True))
            return True
        return False

    def add(self, found: FoundModem, listed: Listed, name: str) -> None:
        path: dict[str, Any] = {"name": name, "usb": found.path}
        hop = next((self._routes[network] for network in found.networks if network in self._routes), found.web_address)
        if hop is not None:
            self.networks[name] = hop
        if found.web_address is not None and not found.ports:
            home = self._web(found, listed, path, hop or found.web_address)
        else:
            home = self._connected(found, listed, path)
        slot = listed.slot
        of_network = self._published(home.plmn) if home.plmn else Published()
        operator = (slot.operator if slot is not None else None) or home.name or of_network.name or home.plmn
        if operator is not None:
            path["operator"] = operator
        self.paths.append(path)
        if not str(path.get("port", "")).startswith("http://"):
            self._access_point(listed, path, home, of_network)

    def _web(self, found: FoundModem, listed: Listed, path: dict[str, Any], hop: str) -> HomeNetwork:
        """A router by itself: its own settings connect it."""
        modem = listed.slot.modem if listed.slot is not None else None
        url = modem.port if modem is not None and modem.port is not None else f"http://{hop}"
        path |= {"port": url, "driver": found.drivers[0]}
        if not self._ask:
            return UNTOLD
        try:
            answer = listed.answer or ask_web(WebChannel(url, next(iter(found.networks), None)), AUTO)
        except (NoAnswer, PortLost) as error:
            message = f"path {path['name']} (USB {found.path}): no web server at {url}: {error}"
            hint = f"open {url} in a browser beside the stick; or plug it in again"
            self.problems.append(Problem(found.path, path["name"], "modem", message, hint, True))
            return UNTOLD
        path["driver"] = answer.driver
        if answer.state != READY:
            message = f"path {path['name']} (USB {found.path}): the stick {answer.state}"
            hint = f"see to its SIM at {url}"
            self.problems.append(Problem(found.path, path["name"], "sim", message, hint))
        return HomeNetwork(answer.reading.plmn, None)

    def _connected(self, found: FoundModem, listed: Listed, path: dict[str, Any]) -> HomeNetwork:
        """ModemManager connects it; with a second AT port the collector asks there, else it is ModemManager's altogether."""
        if found.collector_role != "at-second" or found.collector_port is None:
            path["port"] = f"modemmanager:{found.path}"
        managed = self._sims.get(found.path)
        if listed.answer is not None:
            state, home = listed.state, listed.answer.home
        elif managed is not None:
            state, home = managed.state, managed.home
        else:
            state, home = listed.state, UNTOLD
        # Held by a collector that runs with it: the configuration tells.
        mine = listed.slot is not None and listed.answer is None and managed is None
        if state == READY or mine or not self._ask:
            return home
        where = f"path {path['name']} (USB {found.path})"
        if state == WANTS_PIN:
            if listed.slot is None or listed.slot.modem is None or listed.slot.modem.connection is None:
                name = path["name"]
                hint = f"./kit fleet secret KIT secret_pin_{name} -i DIR, and apn and operator in tandem_path_settings: {{{name}: {{…}}}}"
                self.problems.append(Problem(found.path, name, "pin", f"{where}: {state}", hint))
            return home
        silent = listed.answer is None and managed is None
        hint = "wait, or plug it in again; mmcli -L" if silent else "put a working SIM in; tandem modem list"
        message = f"{where}: {state}"
        self.problems.append(Problem(found.path, path["name"], "modem" if silent else "sim", message, hint, silent))
        return home

    def _access_point(self, listed: Listed, path: dict[str, Any], home: HomeNetwork, published: Published) -> None:
        modem = listed.slot.modem if listed.slot is not None else None
        if modem is not None and modem.connection is not None:
            path["apn"] = modem.connection.apn
            return
        point = published.access_point
        if point is not None:
            path |= {
                key: value
                for key, value in (("apn", point.apn), ("user", point.user), ("password", point.password))
                if value
            }
            return
        name = path["name"]
        if not self._ask or any(problem.path == name for problem in self.problems):
            return
        which = (
            f"published for {home.plmn}: {', '.join(published.apns) or 'none'}"
            if home.plmn
            else "its SIM tells no network"
        )
        message = f"path {name} ({path.get('operator', 'operator not known')}, USB {path['usb']}): the APN is not known; {which}"
        hint = f"in host_vars, tandem_path_settings: {{{name}: {{apn: NAME}}}}; the operator says which"
        self.problems.append(Problem(path["usb"], name, "apn", message, hint))
