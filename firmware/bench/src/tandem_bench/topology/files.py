"""The files in /etc that decide how a name is looked up, for each namespace."""

from __future__ import annotations

import re
from ipaddress import IPv4Address
from pathlib import Path

from tandem_bench.topology.spec import SERVER_NAME, TopologySpec

_NSSWITCH = Path("/etc/nsswitch.conf")


def hosts(spec: TopologySpec) -> dict[str, IPv4Address]:
    """Names of the server's addresses, ``server.tandem.test``, ``server-2.tandem.test``, and of the sites beside it."""
    first, *more = spec.server_addresses
    label, domain = SERVER_NAME.split(".", 1)
    numbered = {f"{label}-{number}.{domain}": address for number, address in enumerate(more, 2)}
    return {SERVER_NAME: first} | numbered | dict(spec.sites)


def of(name: str, spec: TopologySpec) -> dict[str, str]:
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
