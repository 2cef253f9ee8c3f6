"""The enrolled probes' public keys as WireGuard's hub and SSH read them. Pure, but for the file."""

from __future__ import annotations

import fcntl
import ipaddress
import os
from pathlib import Path

from tandem_server.registry.enrolments import Enrolment, Enrolments

FILE = "wireguard-peers.conf"
"""Beside the registry."""


def peers(enrolments: list[Enrolment]) -> str:
    """``[Peer]`` sections (wg(8)), by name: each may use its own address and no other."""
    return "".join(
        f"# {one.probe}\n[Peer]\nPublicKey = {one.wireguard_public_key}\nAllowedIPs = {one.address}/{_bits(one.address)}\n"
        for one in enrolments
        if one.wireguard_public_key is not None and one.address is not None
    )


def known_hosts(enrolments: list[Enrolment]) -> str:
    """Lines for ``UserKnownHostsFile`` (sshd(8)): name, and address in the tunnel."""
    return "".join(
        f"{one.probe if one.address is None else f'{one.probe},{one.address}'} {key}\n"
        for one in enrolments
        for key in one.ssh_host_keys
    )


def write_peers(folder: Path, enrolments: Enrolments) -> None:
    """Write ``peers`` into its file, if it says something else; whoever watches the file applies it. OSError, sqlite3.Error.

    Several processes do this at once: each reads the registry with the lock in hand, so that the last to write knows most.
    """
    file = folder / FILE
    lock = os.open(folder / f".{FILE}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        text = peers(enrolments.all())
        if file.exists() and file.read_text(encoding="ascii", errors="replace") == text:
            return
        fresh = folder / f".{FILE}.tmp"
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o640)
        with os.fdopen(descriptor, "w", encoding="ascii") as opened:
            opened.write(text)
            opened.flush()
            os.fsync(opened.fileno())
        fresh.rename(file)
    finally:
        os.close(lock)


def _bits(address: str) -> int:
    return ipaddress.ip_address(address).max_prefixlen
