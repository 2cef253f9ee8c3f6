"""Probes and their tokens. A token is 256 random bits, shown once; the file keeps its SHA-256 only."""

from __future__ import annotations

import hashlib
import re
import secrets
import sqlite3
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

Opening = Callable[[], AbstractContextManager[sqlite3.Connection]]
"""Opens this thread's connection for reading, or for one transaction of writing."""

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\Z")
_TOKEN = re.compile(r"tandem_[A-Za-z0-9_-]{43}\Z")


@dataclass(frozen=True, slots=True)
class Probe:
    """One probe; times in UTC ns, None when it never happened."""

    name: str
    created_utc_ns: int
    rotated_utc_ns: int | None
    revoked_utc_ns: int | None


def valid_name(name: str) -> bool:
    """Lower-case letters, digits and inner hyphens, 1 to 63: safe as tag, folder and host name."""
    return _NAME.match(name) is not None


class Probes:
    """The table of probes."""

    def __init__(self, read: Opening, write: Opening) -> None:
        self._read, self._write = read, write

    def add(self, name: str) -> str:
        """Register ``name`` and return its token. ValueError when the name is taken or no valid one."""
        if not valid_name(name):
            raise ValueError(f"{name!r} is no probe name; use lower-case letters, digits and inner hyphens, at most 63")
        token = _new_token()
        try:
            with self._write() as connection:
                connection.execute(
                    "INSERT INTO probes (name, token_sha256, created_utc_ns) VALUES (?, ?, ?)",
                    (name, _digest(token), time.time_ns()),
                )
        except sqlite3.IntegrityError:
            raise ValueError(f"there is a probe {name} already; use rotate for a new token") from None
        return token

    def rotate(self, name: str) -> str:
        """A new token for ``name``; the old one is void at once, a revocation is lifted. KeyError when unknown."""
        token = _new_token()
        with self._write() as connection:
            changed = connection.execute(
                "UPDATE probes SET token_sha256 = ?, rotated_utc_ns = ?, revoked_utc_ns = NULL WHERE name = ?",
                (_digest(token), time.time_ns(), name),
            ).rowcount
        if not changed:
            raise KeyError(name)
        return token

    def revoke(self, name: str) -> None:
        """Void the token of ``name``; what it sent stays. KeyError when unknown."""
        with self._write() as connection:
            changed = connection.execute(
                "UPDATE probes SET revoked_utc_ns = coalesce(revoked_utc_ns, ?) WHERE name = ?",
                (time.time_ns(), name),
            ).rowcount
        if not changed:
            raise KeyError(name)

    def all(self) -> list[Probe]:
        """Every probe, by name."""
        with self._read() as connection:
            rows = connection.execute(
                "SELECT name, created_utc_ns, rotated_utc_ns, revoked_utc_ns FROM probes ORDER BY name"
            ).fetchall()
        return [Probe(*row) for row in rows]

    def of_token(self, token: str) -> str | None:
        """The probe whose token this is, None when there is none or it is revoked.

        The look-up is by digest, so that its time tells nothing about a token.
        """
        if not _TOKEN.match(token):
            return None
        with self._read() as connection:
            row = connection.execute(
                "SELECT name FROM probes WHERE token_sha256 = ? AND revoked_utc_ns IS NULL", (_digest(token),)
            ).fetchone()
        return None if row is None else str(row[0])

    def active(self, name: str) -> bool:
        """Whether ``name`` is registered and not revoked."""
        with self._read() as connection:
            row = connection.execute(
                "SELECT 1 FROM probes WHERE name = ? AND revoked_utc_ns IS NULL", (name,)
            ).fetchone()
        return row is not None


def _new_token() -> str:
    return "tandem_" + secrets.token_urlsafe(32)


def _digest(token: str) -> bytes:
    # The token is random and long, so one round of SHA-256 is enough: there is nothing to guess.
    return hashlib.sha256(token.encode()).digest()
