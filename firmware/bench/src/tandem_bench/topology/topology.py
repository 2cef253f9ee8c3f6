"""Builds the networks of a bench and takes them down.

    probe ──TUN link── op-a ──veth── internet ──veth── server
      └────TUN link── op-b ──veth──────┘

Each access namespace (op-a, op-b, wifi …) does NAT and answers DNS, as an operator or a home router does. The probe has one
default route an interface with differing metrics, as DHCP would leave it; rules and MPTCP endpoints are the probe's own work.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from ipaddress import IPv4Address
from pathlib import Path
from types import TracebackType
from typing import Self

from tandem_bench.link import LinkProcess, LinkSpec, Played
from tandem_bench.requirements import MachineError, out_of_tree, require
from tandem_bench.topology.namespace import Namespace
from tandem_bench.topology.spec import SERVER_NAME, SERVER_NETWORK, Access, Offer, TopologySpec

_EVERYWHERE = {
    # Replies come in by another interface than the main table's route: strict filtering would drop them.
    "net.ipv4.conf.all.rp_filter": "0",
    "net.ipv4.conf.default.rp_filter": "0",
    # No IPv6 on these links: its router solicitations would be noise in the captures.
    "net.ipv6.conf.default.disable_ipv6": "1",
}
_ROUTER = {"net.ipv4.ip_forward": "1"}
_HOST = {
    "net.mptcp.enabled": "1",
    # Runs must not inherit the slow-start threshold of the run before.
    "net.ipv4.tcp_no_metrics_save": "1",
}
_NSSWITCH = Path("/etc/nsswitch.conf")
_GLOBAL_THERE = {*_HOST, "net.ipv4.tcp_wmem", "net.ipv4.tcp_rmem"}
"""On the out-of-tree kernel (Linux 4.14) these are the machine's, set in its first network namespace and hidden in others."""
# What the tracking of connections does not accept is not translated, and would be taken for the operator's own: its kernel would
# answer with a reset, which ends the server's side of a connection. An operator says nothing of its own. The empty chain: before
# Linux 4.18 answers are translated back only where there is one.
_NAT = """
table ip nat {
    chain prerouting {
        type nat hook prerouting priority dstnat;
    }
    chain postrouting {
        type nat hook postrouting priority srcnat;
        oifname "core0" masquerade
    }
    chain input {
        type filter hook input priority filter;
        iifname "core0" meta l4proto tcp counter drop
    }
}
"""
# Nor does it judge windows: a segment outside of what it has seen goes through. The file is there once NAT is.
_LIBERAL = {"net.netfilter.nf_conntrack_tcp_be_liberal": "1"}


class Topology:
    """The networks, from entering to leaving this context manager. Touches nothing outside its own namespaces."""

    def __init__(self, spec: TopologySpec) -> None:
        self.spec = spec
        self.links: dict[str, LinkProcess] = {}
        """Running links by path; ``links["a"].set("down", "rate", 1e6)`` changes one."""
        self._namespaces: dict[str, Namespace] = {}
        self._stack = ExitStack()
        self._out_of_tree = out_of_tree()

    def __enter__(self) -> Self:
        require()
        try:
            self._build()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
        self.links.clear()
        self._namespaces.clear()

    @property
    def names(self) -> tuple[str, ...]:
        """The namespaces: probe, internet, server, one an access network."""
        return tuple(self._namespaces)

    def netns_path(self, name: str) -> str:
        """A file that names the network namespace ``name``; valid while the topology is up."""
        return self._namespace(name).path

    def command(self, name: str, argv: Sequence[str | os.PathLike[str]], folder: Path | None = None) -> list[str]:
        """``argv`` so that it runs in ``name`` with that namespace's resolv.conf and /sys; no process in between.

        ``folder``: working directory (default: the current). Popen's own ``cwd`` has no effect on it.
        """
        return self._namespace(name).command(argv, folder)

    def run(self, name: str, argv: Sequence[str], text: str = "") -> str:
        """Run a short program in ``name``; its stdout. MachineError when it fails."""
        return self._namespace(name).run(argv, text)

    def _namespace(self, name: str) -> Namespace:
        try:
            return self._namespaces[name]
        except KeyError:
            raise MachineError(f"no namespace {name!r}; there are: {', '.join(self._namespaces) or 'none'}") from None

    def _build(self) -> None:
        accesses = self.spec.accesses
        for name in dict.fromkeys(
            ("probe", "internet", "server", *(a.namespace for a in accesses), *(a.near for a in accesses))
        ):
            namespace = Namespace(name, etc_files(name, self.spec))
            self._stack.callback(namespace.close)
            namespace.open()
            self._namespaces[name] = namespace
            host = name in (*self.spec.probes, "server")
            settings = _EVERYWHERE | (_HOST if host else _ROUTER) | dict(self.spec.sysctls.get(name, {}))
            namespace.sysctl({n: v for n, v in settings.items() if not (self._out_of_tree and n in _GLOBAL_THERE)})
        self._server()
        for access in self.spec.accesses:
            self._access(access)
        if not self.spec.links_later:
            self.start_links()

    def start_links(self, epoch_ns: int | None = None) -> None:
        """Start every link and its network's resolver; with ``epoch_ns`` the timelines begin at that CLOCK_MONOTONIC instant."""
        for access in self.spec.accesses:
            offer = access.offer
            if epoch_ns is not None and isinstance(offer, Played):
                offer = replace(offer, epoch_ns=epoch_ns)
            self._link(access, offer)

    def _veth(self, left: str, left_name: str, right: str, right_name: str) -> None:
        pair = f"link add {left_name} type veth peer name {right_name} netns {self._namespace(right).pid}"
        self.run(left, ["ip", "-batch", "-"], f"{pair}\nlink set {left_name} up\n")
        self.run(right, ["ip", "link", "set", right_name, "up"])

    def _server(self) -> None:
        router, size = SERVER_NETWORK[1], SERVER_NETWORK.prefixlen
        self._veth("server", "eth0", "internet", "server0")
        self.run("internet", ["ip", "address", "add", f"{router}/{size}", "dev", "server0"])
        lines = [f"address add {address}/{size} dev eth0" for address in self.spec.server_addresses]
        lines += [f"address add {address}/32 dev eth0" for address in self.spec.sites.values()]
        for address in self.spec.sites.values():
            self.run("internet", ["ip", "route", "add", f"{address}/32", "via", str(self.spec.server_addresses[0])])
        # By the route and not by sysctl: a namespace may only choose by sysctl among what the host's root allowed. Not on the out-of-tree
        # kernel: there a session's controller is the listener's, before which a route's would go on the first subflow.
        chosen = "" if self._out_of_tree else f" congctl {self.spec.congestion_control}"
        lines.append(f"route add default via {router}{chosen}")
        self.run("server", ["ip", "-batch", "-"], "\n".join(lines) + "\n")
        self._announce()

    def _announce(self) -> None:
        """The server's further address is told in every connection of Multipath TCP (ADD_ADDR); who does not want it takes no notice."""
        if self._out_of_tree:
            return  # its path manager tells of every address by itself
        told = [f"endpoint add {address} dev eth0 signal" for address in self.spec.server_addresses[1:]]
        for line in ("limits set subflow 8", *told):
            self.run("server", ["ip", "mptcp", *line.split()])

    def _access(self, access: Access) -> None:
        self._veth(access.namespace, "core0", "internet", access.namespace)
        self.run("internet", ["ip", "address", "add", f"{access.internet_side}/30", "dev", access.namespace])
        far = f"address add {access.public_address}/30 dev core0\nroute add default via {access.internet_side}\n"
        self.run(access.namespace, ["ip", "-batch", "-"], far)
        try:
            # Nobody reads the counter of a kernel that may not have it (CONFIG_NFT_COUNTER).
            self.run(access.namespace, ["nft", "-f", "-"], _NAT.replace(" counter", "") if self._out_of_tree else _NAT)
        except MachineError as error:
            raise MachineError(f"{error}; hint: a kernel with nftables and NAT (modprobe nft_masq)") from None
        self._namespace(access.namespace).sysctl(_LIBERAL)

    def _link(self, access: Access, offer: Offer) -> None:
        log = None if self.spec.log_folder is None else self.spec.log_folder / f"link-{access.path}.jsonl"
        link = LinkProcess(
            LinkSpec(
                a_netns=self.netns_path(access.near),
                a_name=access.interface,
                b_netns=self.netns_path(access.namespace),
                b_name="ran0",
                offer=offer,
                log=log,
                operator=access.operator,
                seed=self.spec.seed * 64 + self.spec.accesses.index(access),
            )
        )
        self._stack.callback(link.stop)
        link.start()
        self.links[access.path] = link
        self.run(access.namespace, ["ip", "address", "add", f"{access.gateway}/30", "dev", "ran0"])
        near = (
            f"address add {access.address} dev {access.interface}\n"
            f"route add default via {access.gateway} dev {access.interface} metric {access.metric}\n"
        )
        self.run(access.near, ["ip", "-batch", "-"], near)
        resolver = Dnsmasq(
            self.command(access.namespace, resolving(access.gateway, hosts(self.spec))), "started, version"
        )
        self._stack.callback(resolver.stop)
        resolver.start(f"the resolver of {access.namespace}")


# --- names -----------------------------------------------------------------------------------------------------------


def hosts(spec: TopologySpec) -> dict[str, IPv4Address]:
    """Names of the server's addresses, ``server.tandem.test``, ``server-2.tandem.test``, and of the sites beside it."""
    first, *more = spec.server_addresses
    label, domain = SERVER_NAME.split(".", 1)
    numbered = {f"{label}-{number}.{domain}": address for number, address in enumerate(more, 2)}
    return {SERVER_NAME: first} | numbered | dict(spec.sites)


def etc_files(name: str, spec: TopologySpec) -> dict[str, str]:
    """Path → text for the namespace ``name``. Only probes ask resolvers; the others know the server from /etc/hosts."""
    local = "127.0.0.1 localhost\n"
    if name in spec.probes:
        # Short waits: a resolver behind an outage must not hold the probe back for long.
        # A modem by USB is a hop further; resolv.conf takes three at most.
        own = [a for a in spec.accesses if a.near == name or (name == "probe" and a.near not in spec.probes)]
        lines = [f"nameserver {access.gateway}" for access in own[:3]]
        files = {"/etc/resolv.conf": "\n".join([*lines, "options timeout:1 attempts:2"]) + "\n", "/etc/hosts": local}
    else:
        names = "".join(f"{address} {host}\n" for host, address in hosts(spec).items())
        files = {"/etc/resolv.conf": "# no resolver here\n", "/etc/hosts": local + names}
    if _NSSWITCH.exists():
        files[str(_NSSWITCH)] = plain_lookup(_NSSWITCH.read_text())
    return {path: text for path, text in files.items() if path == "/etc/resolv.conf" or Path(path).exists()}


def plain_lookup(nsswitch: str) -> str:
    """The file with hosts looked up in files and DNS alone: other services ask daemons outside the namespace."""
    if re.search(r"^hosts:", nsswitch, re.MULTILINE):
        return re.sub(r"^hosts:.*$", "hosts: files dns", nsswitch, flags=re.MULTILINE)
    return nsswitch.rstrip("\n") + "\nhosts: files dns\n"


def resolving(address: IPv4Address, names: Mapping[str, IPv4Address]) -> list[str]:
    """The command line of a resolver as an operator runs one: dnsmasq at port 53 of ``address``, knowing ``names`` and nothing else."""
    return [
        "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--pid-file=", "--no-resolv", "--no-hosts", "--log-facility=-",
        "--bind-interfaces", f"--listen-address={address}",
        *(f"--host-record={name},{host}" for name, host in names.items()),
        *(f"--local=/{domain}/" for domain in sorted({name.split(".", 1)[1] for name in names})),
    ]  # fmt: skip


class Dnsmasq:
    """One dnsmasq, from ``start`` to ``stop``. It answers once it has said ``ready``; what it says after that fits into a pipe."""

    def __init__(self, argv: Sequence[str], ready: str) -> None:
        self._argv, self._ready = list(argv), ready
        self._process: subprocess.Popen[str] | None = None

    def start(self, who: str) -> None:
        """Start it and wait until it answers; MachineError with its own line when it does not start."""
        self._process = subprocess.Popen(self._argv, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        assert self._process.stderr is not None  # noqa: S101 - opened as a pipe above
        last = "it ended without a word"
        for line in self._process.stderr:
            if self._ready in line:
                return
            last = line.strip() or last
        self.stop()
        raise MachineError(f"{who} does not start: {last}")

    def stop(self) -> None:
        """End it. Safe to call twice."""
        process, self._process = self._process, None
        if process is not None:
            process.terminate()
            process.wait()
            if process.stderr is not None:
                process.stderr.close()
