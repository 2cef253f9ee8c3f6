"""The bench in motion: topology, one link and one modem an operator, playing a scenario from one agreed instant (the epoch)."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Address
from pathlib import Path

from tandem_bench import link
from tandem_bench.run.programs import READY_S, Owner, Programs, Usage, confined, usage_so_far
from tandem_bench.scenario import Played, write_timelines
from tandem_bench.topology.spec import TopologySpec, commuting
from tandem_bench.topology.topology import Topology
from tandem_bench.truth import Event, write

LEAD_S = 4.0
"""From starting links and modems to the epoch: what rides along gets ready meanwhile, in the first instant's radio."""

FAMILIES = ("quectel", "huawei", "generic")
"""Which family's dialogue the first, second, third … operator's modem speaks."""

WIFI = link.Constant(30e6, 10e6, rtt_ms=24.0, buffer_down_bytes=300_000, buffer_up_bytes=100_000)
"""A home's Wi-Fi behind a DSL line, when asked for."""

SERVER_SYSCTLS = {
    # As the server's playbook sets them. The send buffer must hold what is under way on both paths, the queues in the operators' base
    # stations included: 40 Mbit/s at a second is 5 MB a path, and the kernel's default limit is 4 MB.
    "net.ipv4.tcp_wmem": "4096 262144 33554432",
    "net.ipv4.tcp_rmem": "4096 131072 33554432",
}


@dataclass(frozen=True)
class ProbePath:
    """One path as the probe finds it: a modem's bearer, or (without ``modem_port``) Wi-Fi."""

    name: str
    operator: str
    interface: str
    gateway: str | None
    modem_port: Path | None


class Rig:
    """``with Rig(…) as rig``: topology is up. ``start_radio`` begins the scenario. ``folder`` gets timelines, ports and logs.

    ``faults``: a file of modem faults by operator. ``server_addresses``: 1 or 2. ``sites``: as ``TopologySpec``. ``near``: by path the
    namespace of the probe that has it, where there are several (``Access.near``).
    """

    def __init__(
        self,
        played: Played,
        folder: Path,
        owner: Owner,
        *,
        families: Sequence[str] = FAMILIES,
        wifi: bool = False,
        server_addresses: int = 1,
        sites: Mapping[str, IPv4Address] | None = None,
        faults: dict[str, Path] | None = None,
        near: Mapping[str, str] | None = None,
    ) -> None:
        self.played = played
        self.folder = folder
        self.owner = owner
        self.families = families
        self.faults = faults or {}
        self.programs = Programs(folder)
        self.epoch_monotonic_ns = 0
        self.operators = {name.lower(): name for name in played.operators}
        """Operator by path."""
        timelines = {path: self._offer(operator) for path, operator in self.operators.items()}
        self.topology = Topology(
            TopologySpec(
                tuple(
                    replace(access, near=(near or {}).get(access.path, access.near))
                    for access in commuting(timelines, WIFI if wifi else None)
                ),
                servers=server_addresses,
                sites=sites or {},
                log_folder=folder,
                seed=played.seed,
                links_later=True,
                sysctls={"server": SERVER_SYSCTLS},
            )
        )
        self.later: list[Event] = []
        """What was done to the bench while it played, for the truth: lines with ``type`` and ``monotonic_ns`` or ``t_s``."""
        self._link_usage: list[Usage] = []

    @property
    def server_address(self) -> str:
        """The server's (first) address."""
        return str(self.topology.spec.server_addresses[0])

    def __enter__(self) -> Rig:
        self.topology.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.programs.__exit__()
        finally:
            self.topology.__exit__(None, None, None)

    def command(self, namespace: str, argv: Sequence[str]) -> list[str]:
        """``argv`` inside a namespace: probe, op-NAME, wifi, internet, server."""
        return self.topology.command(namespace, argv)

    def now_s(self) -> float:
        """Seconds since the scenario's start."""
        return (time.monotonic_ns() - self.epoch_monotonic_ns) / 1e9

    def probe_paths(self) -> list[ProbePath]:
        """The probe's paths, operators first: ``a``, ``b`` … and ``wifi``."""
        return [
            ProbePath(
                name=access.path,
                operator=self.operators.get(access.path, access.operator),
                interface=access.interface,
                gateway=str(access.gateway),
                modem_port=self.folder / f"modem-{access.path}" if access.path in self.operators else None,
            )
            for access in self.topology.spec.accesses
        ]

    def control_socket(self, path: str) -> Path:
        """Where a path's modem takes faults."""
        return self.folder / f"modem-{path}.sock"

    def start_radio(self) -> None:
        """Start links and modems; the scenario's first instant lies ``LEAD_S`` ahead.

        LinkError, MachineError or ProgramError when one does not start.
        """
        for timeline in write_timelines(self.played, self.folder).values():
            self.owner.give(timeline)
        self.epoch_monotonic_ns = time.monotonic_ns() + int(LEAD_S * 1e9)
        self.topology.start_links(self.epoch_monotonic_ns)
        for number, path in enumerate(self.operators):
            self._modem(path, self.families[number % len(self.families)])

    def _offer(self, operator: str) -> link.Played:
        traces = self.played.traces.get(operator, {})
        return link.Played(
            self._timeline(operator),
            down_trace=traces.get("down"),
            up_trace=traces.get("up"),
            down_light_trace=traces.get("down-light"),
            up_light_trace=traces.get("up-light"),
        )

    def _timeline(self, operator: str) -> Path:
        return self.folder / f"timeline-{operator}.jsonl"

    def _fault_log(self, path: str) -> Path:
        return self.folder / f"faults-{path}.jsonl"

    def _modem(self, path: str, family: str) -> None:
        operator = self.operators[path]
        argv = [
            *(sys.executable, "-m", "tandem_bench", "modem", "--family", family),
            *("--timeline", str(self._timeline(operator)), "--operator-name", f"Operator {operator}"),
            *("--epoch-ns", str(self.epoch_monotonic_ns), "--seed", str(self.played.seed)),
            *("--link", str(self.folder / f"modem-{path}"), "--control", str(self.control_socket(path))),
            *("--json-log", str(self._fault_log(path))),
        ]
        if path in self.faults:
            argv += ["--faults", str(self.faults[path])]
        self.programs.start(f"modem-{path}", confined(argv, self.owner), ready_s=READY_S)

    def failed(self) -> str | None:
        """Why the bench cannot go on: a link or modem that ended by itself; else None."""
        for path, running in self.topology.links.items():
            if (status := running.poll()) is not None:
                return f"the link of path {path} ended by itself with status {status}"
        return self.programs.watch()

    def stop_radio(self) -> list[Usage]:
        """End modems and links; what each used."""
        for program in self.programs.started[::-1]:
            self.programs.end(program)
        for path, running in self.topology.links.items():
            if running.poll() is None:
                used = usage_so_far(running.pid)
                self._link_usage.append(Usage(f"link-{path}", *used, exit=running.stop() or 0))
        self.topology.links.clear()
        return self.programs.ended + self._link_usage

    def write_truth(self, path: Path) -> None:
        """What was played and what links and modems logged, as one file ordered by time (after ``stop_radio``)."""
        logs = [self.folder / f"link-{access.path}.jsonl" for access in self.topology.spec.accesses]
        logs += [self._fault_log(name) for name in self.operators]
        epoch_utc_ns = self.epoch_monotonic_ns + time.time_ns() - time.monotonic_ns()
        there = [log for log in logs if log.exists()]
        write(self.played, path, self.epoch_monotonic_ns, epoch_utc_ns, self.later, there, until_s=self.now_s())
