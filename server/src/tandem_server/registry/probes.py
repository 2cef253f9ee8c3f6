"""Probes and their tokens. A token is 256 random bits, shown once; the file keeps its SHA-256 only."""

from __future__ import annotations

import hashlib
import re
import secrets
import sqlite3
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

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
    # The token is random and long, so one round of SHA-256 is enough: there is nothing to guess.
    return hashlib.sha256(token.encode()).digest()
