"""The way to a machine of the fleet, as the plays take it: the server by its address, a kit through the server's tunnel."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tandem_fleet.files import FleetError, load
from tandem_fleet.new import group


def command(fleet: Path, host: str, words: list[str]) -> list[str]:
    """What runs ``words`` on ``host``, or without words opens a shell. FleetError: no such host, or its address is not known yet."""
    known = f"UserKnownHostsFile={fleet.resolve() / 'known_hosts'} ~/.ssh/known_hosts"
    hosts = load(fleet / "hosts.yml")
    server = _server(fleet, hosts)
    there = ["--", *words] if words else []
    if host in group(hosts, "servers"):
        return ["ssh", "-o", known, server, *there]
    if host not in group(hosts, "probes"):
        raise FleetError(fleet / "hosts.yml", f"no host {host}", f"./kit fleet add-kit {host} -i {fleet}")
    address = re.search(rf"^{re.escape(host)},(\S+) ", (fleet / "known_hosts").read_text(), re.M)
    if address is None:
        raise FleetError(fleet / "known_hosts", f"{host} has not enrolled", f"./kit provision enrolled -i {fleet}")
    user = load(fleet / "group_vars/all.yml").get("tandem_user", "tandem-admin")
    jump = f"ProxyCommand=ssh -o '{known}' -W '[%h]:%p' {server}"
    return ["ssh", "-o", known, "-o", f"HostKeyAlias={host}", "-o", jump, f"{user}@{address[1]}", *there]


def _server(fleet: Path, hosts: dict[str, Any]) -> str:
    """USER@ADDRESS of the fleet's server: of hosts.yml, or of aws.yml, which `./kit provision aws` writes."""
    read = [hosts, *([load(fleet / "aws.yml")] if (fleet / "aws.yml").exists() else [])]
    said: dict[str, object] = {}
    for file in read:
        for variables in group(file, "servers").values():
            said |= variables if isinstance(variables, dict) else {}
    if "ansible_host" not in said:
        raise FleetError(fleet, "the server has no address yet", f"./kit provision aws -i {fleet}")
    return f"{said.get('ansible_user', 'admin')}@{said['ansible_host']}"
