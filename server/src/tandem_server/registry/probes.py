"""Probes and their tokens; invitations (one-time codes), and the keys that a probe gave when it used one, as WireGuard's hub and SSH read
them; when each probe last reached the gateway, and the state that it was found in. Tokens and codes are 256 random bits, shown once: the
file keeps their SHA-256 only."""

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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tandem_server.durable import write_whole
from tandem_server.registry.table import Table

if TYPE_CHECKING:
    from tandem_server.registry.database import Registry


SCHEMA = """
CREATE TABLE probes (
    name TEXT PRIMARY KEY,
    token_sha256 BLOB NOT NULL UNIQUE,
    created_utc_ns INTEGER NOT NULL,
    rotated_utc_ns INTEGER,
    revoked_utc_ns INTEGER
) STRICT;
"""
OLD_TOKENS = """
CREATE TABLE IF NOT EXISTS old_tokens (
    token_sha256 BLOB PRIMARY KEY,
    probe TEXT NOT NULL REFERENCES probes(name),
    until_utc_ns INTEGER NOT NULL
) STRICT;
"""
"""Tokens that were replaced and still work for a while."""

NO_KEY = ""
"""In place of the key that a code was used with, once the token that it brought was used: no key is good any more."""

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\Z")
_TOKEN = re.compile(r"tandem_[A-Za-z0-9_-]{43}\Z")


@dataclass(frozen=True, slots=True)
class Probe:
    """One probe; times in UTC ns, None when it never happened. ``old_until_utc_ns``: a token of before works until then."""

    name: str
    created_utc_ns: int
    rotated_utc_ns: int | None
    revoked_utc_ns: int | None
    old_until_utc_ns: int | None = None


def valid_name(name: str) -> bool:
    """Lower-case letters, digits and inner hyphens, 1 to 63: safe as tag, folder and host name."""
    return _NAME.match(name) is not None


class Probes(Table):
    """The table of probes."""

    def add(self, name: str) -> str:
        """Register ``name`` and return its token. ValueError when the name is taken or no valid one."""
        if not valid_name(name):
            raise ValueError(f"{name!r} is no probe name; use lower-case letters, digits and inner hyphens, at most 63")
        token = new_token()
        try:
            self._do(
                "INSERT INTO probes (name, token_sha256, created_utc_ns) VALUES (?, ?, ?)",
                (name, _digest(token), time.time_ns()),
            )
        except sqlite3.IntegrityError:
            raise ValueError(f"there is a probe {name} already; use rotate for a new token") from None
        return token

    def rotate(self, name: str, keep_old_s: float = 0.0) -> str:
        """A new token for ``name``; a revocation is lifted. KeyError when unknown.

        The token of before works for ``keep_old_s`` more, so that a probe in the field can be given the new one first; with 0 it is void
        at once, and so is any older one. A revoked token stays void.
        """
        token, now = new_token(), time.time_ns()
        with self._write() as connection:
            row = connection.execute(
                "SELECT token_sha256, revoked_utc_ns FROM probes WHERE name = ?", (name,)
            ).fetchone()
            if row is None:
                raise KeyError(name)
            if keep_old_s > 0 and row[1] is None:
                connection.execute("DELETE FROM old_tokens WHERE until_utc_ns <= ?", (now,))
                until = now + int(keep_old_s * 1e9)
                connection.execute("INSERT INTO old_tokens VALUES (?, ?, ?)", (row[0], name, until))
            else:
                connection.execute("DELETE FROM old_tokens WHERE probe = ?", (name,))
            connection.execute(
                "UPDATE probes SET token_sha256 = ?, rotated_utc_ns = ?, revoked_utc_ns = NULL WHERE name = ?",
                (_digest(token), now, name),
            )
        return token

    def revoke(self, name: str, keep_peer: bool = False) -> bool:
        """Void every token of ``name``, its code and, unless ``keep_peer``, its tunnel's key; what it sent stays. Whether that changed
        anything. KeyError when unknown."""
        with self._write() as connection:
            known = connection.execute("SELECT revoked_utc_ns FROM probes WHERE name = ?", (name,)).fetchone()
            connection.execute(
                "UPDATE probes SET revoked_utc_ns = coalesce(revoked_utc_ns, ?) WHERE name = ?", (time.time_ns(), name)
            )
            connection.execute("DELETE FROM old_tokens WHERE probe = ?", (name,))
            invited = connection.execute("DELETE FROM invitations WHERE probe = ?", (name,)).rowcount > 0
            peer = not keep_peer and forget_keys(connection, name)
        if known is None and not invited:
            raise KeyError(name)
        return invited or peer or (known is not None and known[0] is None)

    def all(self) -> list[Probe]:
        """Every probe, by name."""
        rows = self._rows(
            "SELECT name, created_utc_ns, rotated_utc_ns, revoked_utc_ns,"
            " (SELECT max(until_utc_ns) FROM old_tokens WHERE probe = name AND until_utc_ns > ?) FROM probes ORDER BY name",
            (time.time_ns(),),
        )
        return [Probe(*row) for row in rows]

    def of_token(self, token: str) -> str | None:
        """The probe whose token this is, None when there is none or it is revoked.

        The look-up is by digest, so that its time shows nothing of a token. The first use of a token that a code brought ends the code.
        """
        if not _TOKEN.match(token):
            return None
        digest = _digest(token)
        row = self._row(
            "SELECT name, EXISTS (SELECT 1 FROM invitations WHERE probe = name AND used_key <> ?2)"
            " FROM probes WHERE token_sha256 = ?1 AND revoked_utc_ns IS NULL",
            (digest, NO_KEY),
        ) or self._row(
            "SELECT probe, 0 FROM old_tokens WHERE token_sha256 = ? AND until_utc_ns > ?", (digest, time.time_ns())
        )
        if row is None:
            return None
        if row[1]:
            self._do("UPDATE invitations SET used_key = ? WHERE probe = ? AND used_key IS NOT NULL", (NO_KEY, row[0]))
        return str(row[0])

    def active(self, name: str) -> bool:
        """Whether ``name`` is registered and not revoked."""
        row = self._row("SELECT 1 FROM probes WHERE name = ? AND revoked_utc_ns IS NULL", (name,))
        return row is not None


def probe_of(registry: Registry, authorization: str | None) -> str | None:
    """Whose token ``Authorization: Bearer TOKEN`` has; None when the header is absent, of another scheme, or its token is unknown or
    revoked."""
    scheme, _, token = (authorization or "").partition(" ")
    return registry.probes.of_token(token.strip()) if scheme.lower() == "bearer" else None


def new_token() -> str:
    """256 random bits."""
    return "tandem_" + secrets.token_urlsafe(32)


def take_token(connection: sqlite3.Connection, name: str, token: str, now_utc_ns: int) -> None:
    """Within a transaction: ``token`` is the probe's only one from now on; it is registered, and no longer revoked."""
    connection.execute(
        "INSERT INTO probes (name, token_sha256, created_utc_ns) VALUES (?1, ?2, ?3)"
        " ON CONFLICT (name) DO UPDATE SET token_sha256 = ?2, rotated_utc_ns = ?3, revoked_utc_ns = NULL",
        (name, _digest(token), now_utc_ns),
    )
    connection.execute("DELETE FROM old_tokens WHERE probe = ?", (name,))


def forget_keys(connection: sqlite3.Connection, name: str) -> bool:
    """Within the revocation's transaction: it is no peer any more; the address stays its own. Whether it was one."""
    keyless = "wireguard_public_key = NULL, ssh_host_keys = '[]', enrolled_utc_ns = NULL"
    where = "probe = ? AND enrolled_utc_ns IS NOT NULL"
    return connection.execute(f"UPDATE enrolments SET {keyless} WHERE {where}", (name,)).rowcount > 0  # noqa: S608  (constants)


def _digest(token: str) -> bytes:
    # A token or code is random and long, so one round of SHA-256 is enough: there is nothing to guess.
    return hashlib.sha256(token.encode()).digest()


# --- Invitations and keys --------------------------------------------------------------------------------------------

INVITATIONS = """
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
        write_whole(file, text.encode("ascii"), 0o640)
    finally:
        os.close(lock)


def _bits(address: str) -> int:
    return ipaddress.ip_address(address).max_prefixlen


# --- Last seen -------------------------------------------------------------------------------------------------------

LAST_SEEN = """
CREATE TABLE seen (
    probe TEXT PRIMARY KEY REFERENCES probes(name),
    first_utc_ns INTEGER NOT NULL,
    last_utc_ns INTEGER NOT NULL
) STRICT;
CREATE TABLE probe_states (
    probe TEXT PRIMARY KEY REFERENCES probes(name),
    state TEXT NOT NULL,
    since_utc_ns INTEGER NOT NULL
) STRICT;
CREATE INDEX sessions_open ON sessions (probe) WHERE ended_utc_ns IS NULL;
CREATE INDEX runs_of_probe ON runs (probe, received_utc_ns);
CREATE TABLE leases (
    name TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    until_utc_ns INTEGER NOT NULL
) STRICT;
"""
NO_LEASES = "DROP TABLE IF EXISTS leases;"
"""One worker does what several gateways shared."""


@dataclass(frozen=True, slots=True)
class Seen:
    """First and last request of a probe with a good token, UTC ns."""

    first_utc_ns: int
    last_utc_ns: int


@dataclass(frozen=True, slots=True)
class KeptState:
    """The state a probe was found in last, and since when it is in it, UTC ns."""

    state: str
    since_utc_ns: int


class LastSeen(Table):
    """The tables of when probes were seen, and of their states."""

    def note(self, last_utc_ns: Mapping[str, int]) -> None:
        """Write down when each of these probes was seen: one transaction. An earlier time than what is there changes nothing."""
        self._do_all(
            "INSERT INTO seen SELECT ?1, ?2, ?2 WHERE EXISTS (SELECT 1 FROM probes WHERE name = ?1)"
            " ON CONFLICT (probe) DO UPDATE SET last_utc_ns = max(last_utc_ns, excluded.last_utc_ns)",
            list(last_utc_ns.items()),
        )

    def all(self) -> dict[str, Seen]:
        """By probe; those that were never seen are not in it."""
        rows = self._rows("SELECT probe, first_utc_ns, last_utc_ns FROM seen")
        return {probe: Seen(first, last) for probe, first, last in rows}

    def states(self) -> dict[str, KeptState]:
        """By probe."""
        rows = self._rows("SELECT probe, state, since_utc_ns FROM probe_states")
        return {probe: KeptState(state, since) for probe, state, since in rows}

    def keep_states(self, states: Mapping[str, KeptState]) -> None:
        """Write these down in place of what was there."""
        self._do_all(
            "INSERT INTO probe_states VALUES (?, ?, ?)"
            " ON CONFLICT (probe) DO UPDATE SET state = excluded.state, since_utc_ns = excluded.since_utc_ns",
            [(probe, kept.state, kept.since_utc_ns) for probe, kept in states.items()],
        )
