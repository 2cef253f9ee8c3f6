"""A target's first boot by cloud-init, the real one of the distribution.

A stand-in only for AWS's metadata address: cloud-init finds what that would say in its seed folder.
"""

from __future__ import annotations

import secrets
import subprocess
from collections.abc import Mapping
from pathlib import Path

SEED = "var/lib/cloud/seed/nocloud"
# A container's cards are set up from outside.
_NETWORK = "network: {config: disabled}\n"
_MACHINE = """datasource_list: [NoCloud]
system_info: {default_user: {name: admin, lock_passwd: true, sudo: ["ALL=(ALL) NOPASSWD:ALL"], shell: /bin/bash}}
"""
_CARD = "datasource_list: [NoCloud, None]\ndatasource: {NoCloud: {seedfrom: 'file:///boot/firmware/'}}\nssh_deletekeys: false\n"
RESTARTS = 133
"""What systemd-nspawn says where the machine wants to start again."""


def from_aws(root: Path, files: Mapping[str, bytes]) -> None:
    """As Debian's image for AWS, whose account is admin, with these ``files`` (``user-data``, ``meta-data``)."""
    _set_up(root, _MACHINE)
    seed = root / SEED
    seed.mkdir(parents=True)
    for name, content in files.items():
        (seed / name).write_bytes(content)


def from_card(root: Path) -> None:
    """As Raspberry Pi OS trixie: with the files that lie in /boot/firmware."""
    _set_up(root, _CARD)


def _set_up(root: Path, configuration: str) -> None:
    (root / "etc/cloud/cloud-init.disabled").unlink()
    (root / "etc/cloud/cloud.cfg.d/99_target.cfg").write_text(configuration + _NETWORK, encoding="ascii")


def until_it_ends(root: Path, *words: str, status: int = RESTARTS) -> None:
    """One start of the container in ``root``, without a network, which ends by itself with this ``status``. ``words``: of its command
    line."""
    argv = ["systemd-nspawn", "--quiet", "--boot", "--register=no", "--keep-unit", f"--directory={root}"]
    argv += [f"--machine=first-{secrets.token_hex(4)}", "--private-network", "--link-journal=no"]
    argv += ["--resolv-conf=off", "--timezone=off", "--console=read-only", "--hostname=raspberrypi", *words]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == status, done.stdout[-3000:] + done.stderr
