"""The network paths of a running collector: routes, rules and endpoints as the configuration has them, kept so by a thread of their own."""

from __future__ import annotations

import dataclasses
import logging
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from tandem.app.config import Config
from tandem.experiment.base import MissingRequirementError
from tandem.modem.usb import network_interface
from tandem.mptcp import paths as kernel_paths
from tandem.mptcp.backup import Backup
from tandem.mptcp.iproute import IpError
from tandem.mptcp.paths import PathEvent
from tandem.mptcp.watch import Watch
from tandem.schema.manifest import SubflowLoss

log = logging.getLogger(__name__)

_AGAIN_S = 1.0


class NetworkPaths:
    """Routes, rules and endpoints of all paths. Which network interface is at a path's ``usb`` place is looked up at every check."""

    def __init__(self, config: Config) -> None:
        self._paths = kernel_paths.Paths(
            [
                kernel_paths.Path(p.name, p.interface or partial(network_interface, p.usb or ""), p.gateway, p.address)
                for p in config.paths
            ]
        )
        self._watch: Watch | None = None
        self._backup = Backup(self._paths.manager)

    @property
    def addresses(self) -> dict[str, str]:
        return self._paths.addresses

    @property
    def interfaces(self) -> Mapping[str, str | None]:
        """Where each path leaves now, None while that is not known; the same mapping all along."""
        return self._paths.interfaces

    @property
    def states(self) -> dict[str, dict[str, str | None]]:
        """By path: ``state``, ``interface``, ``address``, ``gateway``, ``detail``."""
        return {name: dataclasses.asdict(status) for name, status in self._paths.statuses.items()}

    def reach(self, name: str) -> kernel_paths.Reach | None:
        """How to talk to the modem of a path; None while the path has no interface with an address."""
        return self._paths.reach(name)

    def apply(self) -> list[PathEvent]:
        """Configure; MissingRequirementError when the kernel refuses."""
        with _refused_as_missing():
            changes = self._paths.apply()
        self._watch = Watch(self._paths)
        if self._watch.restoring is not None:
            log.warning("lost subflows are not brought back: %s", self._watch.restoring)
        return changes

    def watch(self) -> list[PathEvent]:
        """Wait until something changes or ``wake`` is called, and mend; as ``apply``. After ``apply``, by one thread."""
        with _refused_as_missing():
            return [] if self._watch is None else self._watch.turn()

    def wake(self) -> None:
        """End the ``watch`` that waits, from any thread."""
        if self._watch is not None:
            self._watch.wake()

    def suspend(self, names: Collection[str], timeout_s: float) -> bool:
        """Let these paths carry no further subflows, and all others again; whether that was done in time. From any thread."""
        self._paths.suspended.request(names)
        self.wake()
        return self._paths.suspended.wait(timeout_s)

    def set_backup(self, name: str, backup: bool, *, again: bool = False) -> None:
        """Have running connections use this path only when no other works, or as the others again; ``again``: the order was lost.
        MissingRequirementError when the kernel refuses. From any one thread."""
        with _refused_as_missing():
            self._backup.order(self._paths.number(name), backup=backup, again=again)

    def leave(self, token: int) -> None:
        """The connection's subflows are its experiment's to order. From any thread."""
        if self._watch is not None:
            self._watch.leave(token)

    def losses(self, token: int) -> list[SubflowLoss] | None:
        """Subflows that an MPTCP connection lost, by the kernel's token; None when that was not watched."""
        return None if self._watch is None else self._watch.losses(token)

    def remove(self) -> None:
        """Undo. No ``watch`` may wait."""
        self._backup.close()
        if self._watch is not None:
            self._watch.close()
            self._watch = None
        with _refused_as_missing():
            self._paths.remove()


@contextmanager
def _refused_as_missing() -> Iterator[None]:
    """What the kernel refuses is a missing requirement, with its hint."""
    try:
        yield
    except IpError as error:
        text, hint = str(error), ""
        if "not permitted" in text:
            hint = "run as root, or with the capability NET_ADMIN"
        elif "mptcp" in text and any(word in text for word in ("not found", "No such", "Unknown", "not supported")):
            hint = "a kernel from 5.6 with Multipath TCP, and sysctl net.mptcp.enabled=1"
        raise MissingRequirementError(f"{text}; hint: {hint}" if hint and "; hint: " not in text else text) from error


class PathWatch:
    """A thread, since ``ip`` may take its time: sleeps until the kernel reports a change (no polling, no program started), has it repaired
    and calls ``changed`` with each."""

    def __init__(self, paths: NetworkPaths, changed: Callable[[PathEvent], None]) -> None:
        self._paths, self._changed = paths, changed
        self._stop = threading.Event()
        self._trouble: str | None = None
        self._thread = threading.Thread(target=self._run, name="paths", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.ident is not None:
            self._paths.wake()
            self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                changes = self._paths.watch()
                self._trouble = None
            except MissingRequirementError as error:
                if str(error) != self._trouble:
                    log.warning("paths: %s", error)
                self._trouble = str(error)
                self._stop.wait(_AGAIN_S)
                continue
            for change in changes:
                self._changed(change)
