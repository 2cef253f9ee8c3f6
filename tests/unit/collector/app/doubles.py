"""Doubles of everything that touches hardware, kernel or other programs, and a collector made of them."""

import hashlib
import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from support.https_gateway import Gateway
from support.waiting import until
from tandem.app.config import Config, parse
from tandem.app.config_schema import PathConfig
from tandem.app.daemon.hardware import Hardware
from tandem.app.daemon.supervisor import Supervisor
from tandem.capture import CaptureError, CaptureResult
from tandem.experiment.base import MissingRequirementError
from tandem.modem.base import Reading
from tandem.modem.poll import Poll
from tandem.modem.reset import CannotStepError
from tandem.mptcp.paths import PathEvent
from tandem.schema.line_protocol import Point
from tandem.schema.line_protocol import parse as parse_line
from tandem.schema.manifest import Manifest, SubflowLoss
from tandem.schema.record import Record

FAKE = Path(__file__).parent / "fake_experiment.py"


class FakePoller:
    def __init__(self, path: PathConfig, _period_s: float, on_poll: Callable[[Poll], None]) -> None:
        self.path, self.on_poll = path.name, on_poll
        self.stopped = False

    def start(self) -> None:
        pass

    def stop(self, timeout: float = 5.0) -> None:  # noqa: ARG002 the part's signature
        self.stopped = True

    def card(self, timeout: float) -> None:
        """It tells nothing of its SIM."""

    def poll(self, rsrp_dbm: float | None, failure: str | None = None, late_ns: int = 0) -> None:
        began_ns = time.monotonic_ns()
        reading = None if rsrp_dbm is None else Reading("idle", rat="LTE", rsrp_dbm=rsrp_dbm)
        times = (began_ns - late_ns, began_ns, began_ns)
        self.on_poll(Poll(self.path, self.path.upper(), "quectel", "EC25", *times, reading, failure))


class FakeDetectors:
    """Moving from the first poll above -80 dBm until one below."""

    def __init__(self) -> None:
        self.mobile_since_ns: int | None = None

    @property
    def mobile(self) -> bool:
        return self.mobile_since_ns is not None

    speed_class: str | None = None

    def feed(self, record: Record) -> list[Record]:
        level = record.fields.get("rsrp_dbm")
        moving = isinstance(level, float) and level > -80
        if level is None or moving == self.mobile:
            return []
        self.mobile_since_ns = record.monotonic_ns if moving else None
        kind = "mobility_start" if moving else "mobility_stop"
        tags = {"kind": kind, "path": record.tags["path"]}
        return [Record.make("event", tags, {"change_db": 7.0, "quantity": "rsrp_dbm"}, record.monotonic_ns)]

    def tick(self, monotonic_ns: int) -> list[Record]:  # noqa: ARG002 the part's signature
        return []


class FakePaths:
    def __init__(self) -> None:
        self.addresses = {"a": "10.64.0.2", "b": "10.65.0.2"}
        self.interfaces: dict[str, str | None] = {"a": "lo", "b": "wwan1"}
        self.states = {
            n: {"state": "up", "interface": i, "address": None, "gateway": None, "detail": ""}
            for n, i in self.interfaces.items()
        }
        self.woken = threading.Event()
        self.changes: list[PathEvent] = []
        self.removed = False
        self.suspended: list[frozenset[str]] = []
        self.rests = True
        self.refusal: str | None = None
        self.orders: list[tuple[str, bool, bool]] = []

    def apply(self) -> list[PathEvent]:
        if self.refusal:
            raise MissingRequirementError(self.refusal)
        return [PathEvent("path_up", "a", "wwan0 has 10.64.0.2"), PathEvent("path_down", "b", "wwan1 has no address")]

    def watch(self) -> list[PathEvent]:
        self.woken.wait()
        return [self.changes.pop(0)] if self.changes else []

    def wake(self) -> None:
        self.woken.set()

    def suspend(self, names: Collection[str], timeout_s: float) -> bool:
        assert timeout_s >= 0
        self.suspended.append(frozenset(names))
        return self.rests

    def set_backup(self, name: str, backup: bool, *, again: bool = False) -> None:
        self.orders.append((name, backup, again))

    def leave(self, token: int) -> None:
        pass

    def losses(self, token: int) -> list[SubflowLoss] | None:  # noqa: ARG002 the part's signature
        return None

    def remove(self) -> None:
        self.removed = True


class FakeCapture:
    def __init__(self, made: Any, interface: str, file: Path) -> None:
        self._made, self._interface, self._file = made, interface, file

    def start(self) -> None:
        if self._interface in self._made.broken:
            raise CaptureError("tcpdump: no such device")
        self._made.running.append(self._file.name)

    def stop(self) -> CaptureResult:
        self._made.running.remove(self._file.name)
        content = self._file.name.encode()
        self._file.write_bytes(content)
        reason = "capture budget of 5 bytes used up" if self._made.full else None
        return CaptureResult(
            self._file, len(content), 3, reason is not None, hashlib.sha256(content).hexdigest(), reason, 0
        )


class FakeCaptures:
    def __init__(self) -> None:
        self.running: list[str] = []
        self.broken: set[str] = set()
        self.full = False
        self.used_bytes, self.limit_bytes = 0, 10**9

    def give_back(self, count: int) -> None:
        self.used_bytes -= count

    def of(self, interface: str, file: Path) -> FakeCapture:
        return FakeCapture(self, interface, file)


class FakeActions:
    """Nothing can be done."""

    def seen(self) -> None:
        pass

    def do(self, step: str) -> str:
        raise CannotStepError(f"{step}: a double")


class FakeHardware(Hardware):
    """No modem, no radio, no kernel. ``how``: see ``fake_experiment.py``."""

    def __init__(self, paths: Any, captures: Any, detectors: Any, how: str = "quick") -> None:
        super().__init__()
        self.pollers: dict[str, FakePoller] = {}
        self.paths = lambda _config: paths
        self.captures = lambda _config, _used: captures
        self.detectors = lambda _config: detectors
        self.experiment = lambda _name: [sys.executable, str(FAKE), how]
        self.actions = lambda _path, _poller: FakeActions()
        self.missing_requirement = lambda _wanted: None
        self.undo_earlier = lambda _spool, _boot: []

    def poller(self, path: PathConfig, period_s: float, put: Callable[[Any], None]) -> Any:
        self.pollers[path.name] = FakePoller(path, period_s, put)
        return self.pollers[path.name]

    def set_sysctls(self, wanted: Mapping[str, str | int]) -> dict[str, dict[str, Any]]:
        return {name: {"now": str(value), "error": None} for name, value in wanted.items()}

    def environment(self) -> dict[str, Any]:
        return {"sysctls": {"net.mptcp.enabled": "1"}}


class Rehearsal:
    """A collector of doubles with a real spool, a real status socket and a real HTTPS gateway. Its main loop runs in a thread."""

    def __init__(
        self,
        folder: Path,
        gateway: Gateway,
        how: str = "quick",
        *,
        own: Path | None = None,
        hardware: Mapping[str, Any] | None = None,
        **runs: Any,
    ) -> None:
        """``own``: a folder of experiments; ``hardware``: by name, instead of the doubles."""
        self.how, self.gateway, self.folder = how, gateway, folder
        self.paths, self.captures, self.detectors = FakePaths(), FakeCaptures(), FakeDetectors()
        self.hardware = FakeHardware(self.paths, self.captures, self.detectors, how)
        self.pollers = self.hardware.pollers
        self.rewired(replace(self._config(runs), experiments=own), **(hardware or {}))

    def rewired(self, config: Config, **hardware: Any) -> Self:
        """By this configuration, with this hardware instead of the doubles. Before the start."""
        self.config = config
        for name, one in hardware.items():
            assert hasattr(self.hardware, name)
            setattr(self.hardware, name, one)
        self.supervisor = Supervisor(config, self.hardware)
        self._thread = threading.Thread(target=self.supervisor.run)
        return self

    def _config(self, runs: dict[str, Any]) -> Config:
        text = (
            (Path(__file__).parent / "good.toml")
            .read_text()
            .replace("https://server.tandem.test:8443", self.gateway.url)
        )
        config = parse(text, self.folder / "config.toml")
        server = replace(config.server, ca_file=self.gateway.ca, token_file=self.gateway.token_file)
        # The doubles' records go over whatever route there is: there are no such interfaces here.
        paths = tuple(replace(p, interface="lo", day_bytes=10**12) if p.name == "a" else p for p in config.paths)
        settings = {"seconds": 1.0, "pause_s": 0.05, "minimum_gap_s": 3600.0, **runs}
        return replace(config, server=server, paths=paths, runs=replace(config.runs, **settings), drain_s=60.0)

    def start(self) -> Self:
        self.supervisor.start()
        self._thread.start()
        return self

    def until(self, what: Callable[[], object]) -> None:
        until(what, self.supervisor.model.status)

    def until_sampled(self) -> None:
        """All that ``fake_experiment.py`` says before its end was heard: the last sample alone names a subflow 3."""
        runs = lambda: (self.supervisor.service.status()["run"] or {}).get("runs", [])  # noqa: E731
        self.until(lambda: any(len(run["subflows"]) == 3 for run in runs()))

    def stop(self) -> bool:
        self.supervisor.stop()
        self._thread.join(60)
        assert not self._thread.is_alive()
        return self.supervisor.close()


def points(gateway: Gateway) -> list[Point]:
    return [parse_line(gateway.lines[seq]) for seq in sorted(gateway.lines)]


def kinds(gateway: Gateway) -> Counter[str]:
    return Counter(p.tags["kind"] for p in points(gateway) if p.measurement == "event")


def account(folder: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((folder / "collector.json").read_text())
    return loaded


def manifests(folder: Path) -> list[Manifest]:
    return [json.loads(f.read_text()) for f in sorted((folder / "runs").glob("*.json"))]
