"""The bench in motion with its modems on USB: links, operators and server as ever, the probe outside, behind the plugs."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tandem_bench.gadget import bearer
from tandem_bench.gadget.bearer import Bearer, DhcpServer
from tandem_bench.gadget.description import GadgetError
from tandem_bench.rig.programs import Program
from tandem_bench.rig.rig import Rig
from tandem_bench.rig.rights import Owner
from tandem_bench.scenario import Played
from tandem_bench.topology.topology import Topology

READY_S = 120.0
"""For a modem on USB: on an emulated processor Python alone takes seconds to start."""


@dataclass(frozen=True)
class UsbPath:
    """One path as the probe will find it: which controller its modem hangs on, and what DHCP will give."""

    name: str
    operator: str
    controller: str
    bearer: Bearer


class GadgetRig(Rig):
    """A ``Rig`` whose modems are gadgets, one on each of ``controllers``, and whose probe is whatever they are plugged into.

    Between the plug and the radio link each modem has a namespace of its own (``modem-PATH``) with its DHCP server and NAT.
    ``family``: of the AT dialogue and the USB ids. ``alike``: all modems give out the same addresses.
    """

    def __init__(
        self,
        played: Played,
        folder: Path,
        owner: Owner,
        controllers: Sequence[str],
        *,
        family: str = "ublox",
        alike: bool = False,
    ) -> None:
        super().__init__(played, folder, owner, families=(family,))
        if len(controllers) < len(self.operators):
            raise GadgetError(
                f"{len(self.operators)} modems and {len(controllers)} USB device controllers; hint: name fewer operators"
            )
        spec = self.topology.spec
        accesses = tuple(replace(access, near=f"modem-{access.path}") for access in spec.accesses)
        self.topology = Topology(replace(spec, accesses=accesses))
        self._controllers = dict(zip(self.operators, controllers, strict=False))
        self._alike = alike
        self._dhcp: list[DhcpServer] = []
        self._starting: dict[str, Program] = {}
        self.paths: dict[str, UsbPath] = {}

    def __exit__(self, *error: object) -> None:
        try:
            for server in self._dhcp:
                server.stop()
        finally:
            super().__exit__(*error)

    def start_radio(self) -> None:
        """As a ``Rig``'s, and the modems' networks; GadgetError too."""
        super().start_radio()
        for number, path in enumerate(self.operators):
            self._network(path, number)

    def tell(self, path: str, wish: dict[str, object]) -> None:
        """A wish to a path's modem (``gadget.process``); GadgetError when it refuses."""
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(self.control_socket(path)))
            client.sendall(json.dumps(wish).encode() + b"\n")
            with client.makefile() as answers:
                answer = json.loads(answers.readline())
        if not answer["ok"]:
            raise GadgetError(f"the modem of path {path} refuses: {answer['error']}")

    def tell_link_again(self, path: str) -> None:
        """Have a path's modem say once more that its network is there. Linux as the host now and then loses the notification that
        waited while the interface was opened for the first time (seen with 6.1): the interface then stays without a carrier."""
        interface = self.paths[path].bearer.interface
        again = f"link set {interface} down\nlink set {interface} up\n"
        self.topology.run(f"modem-{path}", ["ip", "-batch", "-"], again)

    def _modem(self, path: str, family: str) -> None:
        operator, place = self.operators[path], f"modem-{path}"
        argv = [
            *(sys.executable, "-m", "tandem_bench", "gadget", "modem", "--family", family, "--name", f"tandem-{path}"),
            *("--timeline", str(self._timeline(operator)), "--operator-name", f"Operator {operator}"),
            *("--epoch-ns", str(self.epoch_monotonic_ns), "--seed", str(self.played.seed)),
            *("--udc", self._controllers[path], "--control", str(self.control_socket(path))),
            *("--json-log", str(self._fault_log(path))),
            *("--netns-pid", self.topology.netns_path(place).split("/")[2]),
        ]
        # As root: the kernel's gadget stack takes orders from nobody else.
        self._starting[path] = self.programs.start(place, argv)

    def _network(self, path: str, number: int) -> None:
        """Await the modem and set up what is behind its plug."""
        place = f"modem-{path}"
        interface = self._starting.pop(path).await_ready(READY_S).split()[1]
        access = next(access for access in self.topology.spec.accesses if access.path == path)
        given = Bearer(interface, access.interface, bearer.network_of(number, alike=self._alike), access.gateway)
        self.topology.run(place, ["ip", "-batch", "-"], bearer.ip_batch(given))
        self.topology.run(place, ["nft", "-f", "-"], bearer.nat(given))
        server = DhcpServer(given, lambda argv: self.topology.command(place, argv))
        server.start()
        self._dhcp.append(server)
        self.paths[path] = UsbPath(path, self.operators[path], self._controllers[path], given)
