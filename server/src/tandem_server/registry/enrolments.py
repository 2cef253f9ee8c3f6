"""Invitations (one-time codes), and the keys that a probe gave when it used one, as WireGuard's hub and SSH read them. A code is 256 random
bits, kept as SHA-256 only."""

from __future__ import annotations

import fcntl
import hashlib
import ipaddress
import json
import os
import re
import secrets
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tandem_server.registry.probes import NO_KEY, new_token, take_token, valid_name
from tandem_server.registry.table import Table

SCHEMA = """
CREATE TABLE invitations (
    probe TEXT PRIMARY KEY,
    code_sha256 BLOB NOT NULL UNIQUE,
    expires_utc_ns INTEGER NOT NULL,
    used_utc_ns INTEGER,
    used_key TEXT
) STRICT;
CREATE TABLE enrolments (
    probe TEXT PRIMARY KEY,
    address TEXT UNIQUE,
    wireguard_public_key TEXT UNIQUE,
    ssh_host_keys TEXT NOT NULL,
    enrolled_utc_ns INTEGER
) STRICT;
"""
"""An enrolment's row begins with the invitation, which reserves the address; it stays with the probe's name for good."""

FILE = "wireguard-peers.conf"
"""What the hub reads, beside the registry."""
HUB_AND_PEOPLE = 15
"""Of the tunnel's network the first address is the hub's, the next are for people's machines; probes get those after."""

_AGAIN_S = 86_400
"""A used code may be used again for so long at least, also where it expires: its answer was lost."""
_CODE = re.compile(r"invite_[A-Za-z0-9_-]{43}\Z")

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class BadCode(ValueError):  # noqa: N818  (an answer, no accident)
    """No good code. ``why``: for the server's log; who sent it learns nothing. None: nothing worth a line."""

    def __init__(self, why: str | None) -> None:
        super().__init__(why or "unknown")
        self.why = why


class KeyTaken(ValueError):  # noqa: N818  (an answer, no accident)
    """The WireGuard key is another probe's."""


class NetworkFullError(RuntimeError):
    """The tunnel's network has no address left."""


@dataclass(frozen=True, slots=True)
class Invitation:
    """A code, shown once; ``address``: in the tunnel, None without one. ``known``: the probe is registered and not revoked already."""

    probe: str
    code: str
    expires_utc_ns: int
    address: str | None
    known: bool


@dataclass(frozen=True, slots=True)
class Enrolment:
    """A probe's public keys as it gave them; ``invited_until_utc_ns``: end of its code, also past, None
    without one or once it was used."""

    probe: str
    address: str | None
    wireguard_public_key: str | None
    ssh_host_keys: tuple[str, ...]
    enrolled_utc_ns: int | None
    invited_until_utc_ns: int | None


class Enrolments(Table):
    """The tables of invitations and enrolments."""

    def invite(self, name: str, lifetime_s: float, network: Network | None) -> Invitation:
        """A code for ``name``, which need not be registered yet; one of before is void. ValueError for no valid name, NetworkFullError."""
        if not valid_name(name):
            raise ValueError(f"{name!r} is no probe name; use lower-case letters, digits and inner hyphens, at most 63")
        code = "invite_" + secrets.token_urlsafe(32)
        expires = time.time_ns() + int(lifetime_s * 1e9)
        with self._write() as connection:
            address = _reserve(connection, name, network)
            connection.execute(
                "INSERT OR REPLACE INTO invitations (probe, code_sha256, expires_utc_ns) VALUES (?, ?, ?)",
                (name, _digest(code), expires),
            )
            known = connection.execute(
                "SELECT 1 FROM probes WHERE name = ? AND revoked_utc_ns IS NULL", (name,)
            ).fetchone()
        return Invitation(name, code, expires, address, known is not None)

    def redeem(
        self, name: str, code: str, wireguard_key: str, ssh_host_keys: Sequence[str], network: Network | None
    ) -> tuple[str, str | None]:
        """The probe's new token, which voids those of before, and its address. BadCode, KeyTaken, NetworkFullError.

        An answer that was lost is requested again with the same code and key: another token, until one of them has been used.
        """
        now = time.time_ns()
        with self._write() as connection:
            digest = _digest(code) if _CODE.match(code) else b""
            _check(connection, name, digest, wireguard_key, now)
            if connection.execute(
                "SELECT 1 FROM enrolments WHERE wireguard_public_key = ? AND probe <> ?", (wireguard_key, name)
            ).fetchone():
                raise KeyTaken
            token = new_token()
            take_token(connection, name, token, now)
            address = _reserve(connection, name, network)
            connection.execute(
                "UPDATE enrolments SET wireguard_public_key = ?, ssh_host_keys = ?, enrolled_utc_ns = ? WHERE probe = ?",
                (wireguard_key, json.dumps(list(ssh_host_keys)), now, name),
            )
            connection.execute(
                "UPDATE invitations SET used_utc_ns = ?, used_key = ?, expires_utc_ns = max(expires_utc_ns, ?)"
                " WHERE probe = ? AND used_utc_ns IS NULL",
                (now, wireguard_key, now + _AGAIN_S * 10**9, name),
            )
        return token, address

    def all(self) -> list[Enrolment]:
        """Every probe that was ever invited, by name; of a revoked one the keys are gone."""
        rows = self._rows(
            "SELECT e.probe, address, wireguard_public_key, ssh_host_keys, enrolled_utc_ns,"
            " (SELECT expires_utc_ns FROM invitations i WHERE i.probe = e.probe AND used_utc_ns IS NULL)"
            " FROM enrolments e ORDER BY e.probe"
        )
        return [Enrolment(row[0], row[1], row[2], tuple(json.loads(row[3])), row[4], row[5]) for row in rows]


def _check(connection: sqlite3.Connection, name: str, digest: bytes, wireguard_key: str, now: int) -> None:
    """BadCode unless this probe may use it, now, with this key. The look-up is by digest: its time shows nothing of a code."""
    row = connection.execute(
        "SELECT probe, expires_utc_ns, used_utc_ns, used_key FROM invitations WHERE code_sha256 = ?", (digest,)
    ).fetchone()
    if row is None:
        raise BadCode(None)
    probe, expires, used, used_key = row
    if probe != name:
        raise BadCode(f"the code of {probe} came with another name")
    if expires <= now:
        raise BadCode(f"the code of {probe} came after its end; hint: probe invite {probe}")
    if used is None:
        return
    if used_key == NO_KEY:
        raise BadCode(f"the code of {probe} came again after its token had been used")
    if used_key != wireguard_key:
        raise BadCode(f"the code of {probe} came again with another key: two cards, or someone who has the image")


def _reserve(connection: sqlite3.Connection, name: str, network: Network | None) -> str | None:
    """The address of ``name``: the one of before if it is of this network, else the lowest that is free."""
    connection.execute("INSERT OR IGNORE INTO enrolments (probe, ssh_host_keys) VALUES (?, '[]')", (name,))
    if network is None:
        return None
    row = connection.execute("SELECT address FROM enrolments WHERE probe = ?", (name,)).fetchone()
    if row[0] is not None and ipaddress.ip_address(row[0]) in network:
        return str(row[0])
    taken = {one for (one,) in connection.execute("SELECT address FROM enrolments WHERE address IS NOT NULL")}
    last = int(network.network_address) + network.num_addresses - 2
    for number in range(int(network.network_address) + HUB_AND_PEOPLE + 1, last + 1):
        address = str(type(network.network_address)(number))
        if address not in taken:
            connection.execute("UPDATE enrolments SET address = ? WHERE probe = ?", (address, name))
            return address
    raise NetworkFullError(f"{network} has no address left for {name}")


def _digest(code: str) -> bytes:
    return hashlib.sha256(code.encode()).digest()


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
