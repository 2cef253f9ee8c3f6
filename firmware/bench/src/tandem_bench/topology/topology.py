"""Builds the namespaces of ``spec`` and takes them down. Works only inside ``private.run_inside``."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tandem_bench.topology.spec import SERVER_ADDRESSES, SERVER_NAME, SERVER_ROUTER, OperatorNet, TopologySpec

NETNS = Path("/run/netns")
ETC_NETNS = Path("/etc/netns")

END_HOST = {
    # What one run learned about a path must not shape the next.
    "net.ipv4.tcp_no_metrics_save": "1",
    # Loose, as systemd's distributions have it: a packet may come in where its answer would not go out.
    "net.ipv4.conf.all.rp_filter": "2",
    "net.ipv4.conf.default.rp_filter": "2",
}
SERVER_HOST = {
    # As the server's playbook sets them: the send buffer must hold what is under way on both paths, queues in the operators' base
    # stations included (capacity times RTT plus buffer: 40 Mbit/s at 1 s is 5 MB a path; the kernel's limit is 4 MB).
    "net.ipv4.tcp_wmem": "4096 262144 33554432",
    "net.ipv4.tcp_rmem": "4096 131072 33554432",
}


class TopologyError(RuntimeError):
    """A namespace, route or resolver could not be made; the message is the tool's own."""


class Topology:
    """The bench's hosts. A context manager: whatever happens, its processes end and its namespaces go."""

    def __init__(self, spec: TopologySpec) -> None:
        self.spec = spec
        self.networks = spec.networks()
        self.server_address = SERVER_ADDRESSES[0]
        self._names: list[str] = []
        self._resolvers: list[subprocess.Popen[bytes]] = []

    def netns_path(self, name: str) -> Path:
        """The file that stands for namespace ``name`` (for setns)."""
        return NETNS / name

    def command(self, name: str, argv: Sequence[str]) -> list[str]:
        """``argv`` as a command inside namespace ``name``, with that namespace's resolv.conf and /sys."""
        return ["ip", "netns", "exec", name, *argv]

    def network(self, name: str) -> OperatorNet:
        """The access network called ``name``; KeyError when there is none."""
        for net in self.networks:
            if net.name == name:
                return net
        raise KeyError(name)

    def __enter__(self) -> Topology:
        try:
            self._build()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the resolvers and delete the namespaces; may be called again."""
        for process in self._resolvers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGTERM)
            process.wait(timeout=5)
        self._resolvers.clear()
        for name in reversed(self._names):
            _tool("ip", "netns", "delete", name)
        self._names.clear()

    def attach(self, name: str, probe_device: str, network_device: str) -> None:
        """Give addresses and routes to a link's two ends, once the link has made them.

        The probe's side is left as DHCP would leave it: an address, a default route whose metric tells it from the others', and the
        network's resolver. Policy routes and MPTCP endpoints are the collector's work.
        """
        net = self.network(name)
        bits = net.prefix_length
        self._ip("probe", "address", "add", f"{net.probe_address}/{bits}", "dev", probe_device)
        self._ip("probe", "link", "set", probe_device, "up")
        self._ip(
            "probe", "route", "add", "default", "dev", probe_device, "src", net.probe_address, "metric", str(net.metric)
        )
        self._ip("probe", "route", "add", f"{net.resolver}/32", "dev", probe_device, "src", net.probe_address)
        self._ip(net.namespace, "address", "add", f"{net.gateway_address}/{bits}", "dev", network_device)
        self._ip(net.namespace, "link", "set", network_device, "up")

    # --- building ----------------------------------------------------------------------------------------------------

    def _ip(self, namespace: str, *args: str) -> None:
        _tool("ip", "-n", namespace, *args)

    def _sysctl(self, namespace: str, settings: dict[str, str]) -> None:
        for name, value in settings.items():
            path = "/proc/sys/" + name.replace(".", "/")
            _tool(*self.command(namespace, ["sh", "-c", 'printf %s "$1" >"$2"', "sh", value, path]))

    def _namespace(self, name: str) -> None:
        _tool("ip", "netns", "add", name)
        self._names.append(name)
        self._ip(name, "link", "set", "lo", "up")

    def _build(self) -> None:
        for name in ("probe", "internet", "server"):
            self._namespace(name)
        self._sysctl("internet", {"net.ipv4.ip_forward": "1"})
        self._sysctl("probe", END_HOST)
        self._sysctl("server", {**END_HOST, **SERVER_HOST})
        self._wire("internet", "server0", "server", "eth0")
        self._ip("internet", "address", "add", f"{SERVER_ROUTER}/24", "dev", "server0")
        for address in SERVER_ADDRESSES[: self.spec.server_addresses]:
            self._ip("server", "address", "add", f"{address}/24", "dev", "eth0")
        self._ip("server", "route", "add", "default", "via", SERVER_ROUTER)
        for number, net in enumerate(self.networks):
            self._access_network(number, net)
        resolvers = "".join(f"nameserver {net.resolver}\n" for net in self.networks)
        self._file("probe", "resolv.conf", resolvers + "options timeout:1 attempts:2\n")
        self._file("server", "hosts", f"127.0.0.1 localhost\n{self.server_address} {SERVER_NAME}\n")

    def _access_network(self, number: int, net: OperatorNet) -> None:
        self._namespace(net.namespace)
        self._sysctl(net.namespace, {"net.ipv4.ip_forward": "1"})
        self._wire("internet", f"access{number}", net.namespace, "wan0")
        self._ip("internet", "address", "add", f"{net.upstream_address}/30", "dev", f"access{number}")
        self._ip(net.namespace, "address", "add", f"{net.public_address}/30", "dev", "wan0")
        self._ip(net.namespace, "route", "add", "default", "via", net.upstream_address)
        # Line breaks, not spaces: nft 1.0 wants them between blocks.
        chain = 'chain out {\ntype nat hook postrouting priority srcnat\noifname "wan0" masquerade\n}'
        rules = f"table ip nat {{\n{chain}\n}}"
        _tool(*self.command(net.namespace, ["nft", rules]))
        self._ip(net.namespace, "address", "add", f"{net.resolver}/32", "dev", "lo")
        self._resolver(net)

    def _wire(self, a: str, a_device: str, b: str, b_device: str) -> None:
        """A cable (veth) between two namespaces, both ends up. It does not limit: 10 Gbit/s and more."""
        _tool("ip", "link", "add", a_device, "netns", a, "type", "veth", "peer", "name", b_device, "netns", b)
        self._ip(a, "link", "set", a_device, "up")
        self._ip(b, "link", "set", b_device, "up")

    def _file(self, namespace: str, name: str, text: str) -> None:
        """What programs in ``namespace`` see as /etc/``name``."""
        folder = ETC_NETNS / namespace
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)

    def _resolver(self, net: OperatorNet) -> None:
        """The operator's resolver: it knows the server's name and nothing else."""
        addresses = [f"--host-record={SERVER_NAME},{self.server_address}"]
        argv = [
            *("dnsmasq", "--keep-in-foreground", "--no-resolv", "--no-hosts", "--conf-file=/dev/null", "--pid-file="),
            *(f"--listen-address={net.resolver}", "--bind-interfaces", "--user=root", "--log-facility=-", *addresses),
        ]
        self._resolvers.append(
            subprocess.Popen(
                self.command(net.namespace, argv),
                stdin=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        )


def _tool(*argv: str) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise TopologyError(f"{' '.join(argv)}: {done.stderr.strip() or f'status {done.returncode}'}")
    return done.stdout
