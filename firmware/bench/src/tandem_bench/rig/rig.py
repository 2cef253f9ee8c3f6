"""The bench in motion: topology, one link and one modem an operator, playing a scenario from one agreed instant (the epoch)."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tandem_bench.rig.binaries import find_binary
from tandem_bench.rig.programs import Programs, Usage
from tandem_bench.rig.rights import Owner, confined
from tandem_bench.scenario import Played, write_timelines
from tandem_bench.topology import SERVER_NAME, Topology, TopologySpec
from tandem_bench.topology.spec import WIFI
from tandem_bench.truth import write
from tandem_bench.truth.writer import Epoch

LEAD_S = 4.0
"""From starting links and modems to the epoch: what rides along gets ready meanwhile, in the first instant's radio."""

FAMILIES = ("quectel", "huawei", "generic")
"""Which family's dialogue the first, second, third … operator's modem speaks."""

WIFI_LINK = (
    "--down-bit-per-s",
    "30000000",
    "--up-bit-per-s",
    "10000000",
    "--rtt-ms",
    "24",
    "--buffer-down-bytes",
    "300000",
)


@dataclass(frozen=True)
class ProbePath:
    """One path as the probe finds it: a modem's bearer, or (without ``modem_port``) Wi-Fi."""

    name: str
    operator: str
    interface: str
    gateway: str | None
    modem_port: Path | None


class Rig:
    """``with Rig(…) as rig``: topology is up. ``start_radio`` begins the scenario. ``folder`` gets timelines, ports and logs."""

    def __init__(
        self,
        played: Played,
        folder: Path,
        owner: Owner,
        *,
        families: Sequence[str] = FAMILIES,
        wifi: bool = False,
        faults: dict[str, Path] | None = None,
    ) -> None:
        self.played = played
        self.folder = folder
        self.owner = owner
        self.families = families
        self.faults = faults or {}
        self.topology = Topology(TopologySpec(tuple(played.operators), wifi=wifi))
        self.server_address = self.topology.server_address
        self.programs = Programs(folder)
        self.epoch_monotonic_ns = 0

    def __enter__(self) -> Rig:
        self.topology.__enter__()
        return self

    def __exit__(self, *args: object) -> None:
        self.programs.__exit__(*args)
        self.topology.__exit__(*args)

    def command(self, namespace: str, argv: Sequence[str]) -> list[str]:
        """``argv`` inside a namespace: probe, op-NAME, internet, server."""
        return self.topology.command(namespace, argv)

    def probe_paths(self) -> list[ProbePath]:
        """The probe's paths, operators first: ``a``, ``b`` … and ``wifi``."""
        return [
            ProbePath(
                name=net.name.lower(),
                operator=net.name,
                interface=net.interface,
                gateway=net.gateway_address if net.name == WIFI else None,
                modem_port=None if net.name == WIFI else self._port(net.name),
            )
            for net in sorted(self.topology.networks, key=lambda net: net.name == WIFI)
        ]

    def control_socket(self, operator: str) -> Path:
        """Where the operator's modem takes faults."""
        return self.folder / f"modem-{operator.lower()}.sock"

    def start_radio(self) -> None:
        """Start links and modems; the scenario's first instant lies ``LEAD_S`` ahead. ProgramError when one does not start."""
        timelines = write_timelines(self.played, self.folder)
        for path in timelines.values():
            self.owner.give(path)
        self.epoch_monotonic_ns = time.monotonic_ns() + int(LEAD_S * 1e9)
        for net in self.topology.networks:
            source = WIFI_LINK if net.name == WIFI else ("--timeline", str(timelines[net.name]))
            self._link(net.name, net.namespace, net.interface, source)
        for number, operator in enumerate(self.played.operators):
            self._modem(operator, self.families[number % len(self.families)], timelines[operator])

    def _port(self, operator: str) -> Path:
        return self.folder / f"modem-{operator.lower()}"

    def _link_log(self, name: str) -> Path:
        return self.folder / f"link-{name.lower()}.jsonl"

    def _fault_log(self, operator: str) -> Path:
        return self.folder / f"faults-{operator.lower()}.jsonl"

    def _link(self, name: str, namespace: str, interface: str, source: Sequence[str]) -> None:
        """One radio link. It stays root: it opens TUN devices in two namespaces and wants a real-time priority."""
        argv = [
            *(str(find_binary()), "--a-netns", str(self.topology.netns_path("probe")), "--a-name", interface),
            *("--b-netns", str(self.topology.netns_path(namespace)), "--b-name", "ran0", *source),
            *("--epoch-ns", str(self.epoch_monotonic_ns), "--log", str(self._link_log(name)), "--operator", name),
            *("--seed", str(self.played.seed)),
        ]
        self.programs.start(f"link-{name.lower()}", argv, ready_s=10)
        self.topology.attach(name, interface, "ran0")

    def _modem(self, operator: str, family: str, timeline: Path) -> None:
        argv = [
            *(sys.executable, "-m", "tandem_bench", "modem", "--family", family, "--timeline", str(timeline)),
            *("--operator-name", f"Operator {operator}", "--epoch-ns", str(self.epoch_monotonic_ns)),
            *("--link", str(self._port(operator)), "--control", str(self.control_socket(operator))),
            *("--json-log", str(self._fault_log(operator)), "--seed", str(self.played.seed)),
        ]
        if operator in self.faults:
            argv += ["--faults", str(self.faults[operator])]
        self.programs.start(f"modem-{operator.lower()}", confined(argv, self.owner), ready_s=10)

    def failed(self) -> str | None:
        """Why the bench cannot go on: a link or modem that ended by itself; else None."""
        return self.programs.watch()

    def stop_radio(self) -> list[Usage]:
        """End modems and links; what each used."""
        for program in self.programs.started[::-1]:
            self.programs.end(program)
        return self.programs.ended

    def write_truth(self, path: Path) -> None:
        """What was played and what links and modems logged, as one file ordered by time (after ``stop_radio``)."""
        offset = time.time_ns() - time.monotonic_ns()
        epoch = Epoch(self.epoch_monotonic_ns, self.epoch_monotonic_ns + offset)
        logs = [self._link_log(net.name) for net in self.topology.networks]
        logs += [self._fault_log(name) for name in self.played.operators]
        write(
            self.played,
            path,
            epoch.monotonic_ns,
            epoch.utc_ns,
            logs=[log for log in logs if log.exists()],
            until_s=(time.monotonic_ns() - epoch.monotonic_ns) / 1e9,
        )


__all__ = ["SERVER_NAME", "ProbePath", "Rig"]
