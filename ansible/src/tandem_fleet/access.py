"""How a person gets to a fleet's machines: SSH as the plays take it, and the fleet's CA in their browsers."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from tandem_fleet.files import FleetError, group, load

FIREFOX = (
    ".mozilla/firefox",
    "snap/firefox/common/.mozilla/firefox",
    ".var/app/org.mozilla.firefox/.mozilla/firefox",
    ".config/mozilla/firefox",
)
"""Where the distribution's package, Ubuntu's snap, Flatpak and newer versions keep their profiles."""


def ssh(fleet: Path, host: str, words: list[str]) -> list[str]:
    """What runs ``words`` on ``host``, or without words opens a shell: the server by its address, a kit through the server's tunnel.
    FleetError: no such host, or its address is not known yet."""
    known = f"UserKnownHostsFile={fleet.resolve() / 'known_hosts'} ~/.ssh/known_hosts"
    hosts = load(fleet / "hosts.yml")
    there = ["--", *words] if words else []
    # Of hosts.yml, or of aws.yml, which `./kit provision aws` writes.
    at: dict[str, object] = {}
    for file in [hosts, *([load(fleet / "aws.yml")] if (fleet / "aws.yml").exists() else [])]:
        for variables in group(file, "servers").values():
            at |= variables if isinstance(variables, dict) else {}
    if "ansible_host" not in at:
        raise FleetError(fleet, "the server has no address yet", f"./kit provision aws -i {fleet}")
    server = f"{at.get('ansible_user', 'admin')}@{at['ansible_host']}"
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


def trust(fleet: Path, home: Path) -> list[Path]:
    """Add ``ca.pem`` to the databases of Firefox and Chromium below ``home`` (NSS, one for each browser); which they are. FleetError: none,
    or it failed."""
    certificate, program = fleet / "ca.pem", shutil.which("certutil") or ""
    if not certificate.is_file():
        raise FleetError(certificate, "no such file", "a fleet with certificate_kind acme needs no trust")
    if not program:
        raise FleetError("certutil", "not installed", "sudo apt-get install libnss3-tools")

    def certutil(*words: str | Path) -> None:
        ran = subprocess.run([program, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if ran.returncode != 0:
            said = ran.stderr.strip().splitlines()[-1]
            raise FleetError(" ".join(map(str, words[:3])), said, "close the browser and start again")

    chromium = home / ".pki/nssdb"
    chromium.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not (chromium / "cert9.db").exists():
        certutil("-N", "-d", f"sql:{chromium}", "--empty-password")
    profiles = (file.parent for place in FIREFOX for file in home.glob(f"{place}/*/cert9.db"))
    found = [chromium, *sorted(profiles)]
    for place in found:
        certutil("-A", "-d", f"sql:{place}", "-n", f"Tandem {fleet.resolve().name}", "-t", "C,,", "-i", certificate)
    return found
