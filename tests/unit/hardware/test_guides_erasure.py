"""The lab book's statements that erase a name from the server's registry leave nothing of it but the name, and touch no other."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest

from tandem_server.registry.database import Registry

BOOK = (Path(__file__).parents[3] / "hardware" / "guides" / "lab-book.md").read_text(encoding="utf-8")
GONE, KEPT = "kit-01b", "kit-02a"
TOKENS = {"probes", "old_tokens", "invitations"}
"""Void since it was revoked; the name itself stays, so that nobody gets it again."""


def _statements() -> str:
    found = re.search(r"```\n\s*(BEGIN IMMEDIATE;.*?VACUUM;)\n", BOOK, re.DOTALL)
    assert found is not None
    return found[1]


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> sqlite3.Connection:
    """One row of each of two names in each table that knows names."""
    file = tmp_path_factory.mktemp("registry") / "registry.sqlite"
    made = Registry(file)
    for name in (GONE, KEPT):
        made.probes.add(name)
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("PRAGMA foreign_keys = OFF")
    for table in _tables(connection):
        columns = connection.execute(f"PRAGMA table_info({table})").fetchall()
        if table == "probes" or not {"probe", "run"} & {column[1] for column in columns}:
            continue
        for name in (GONE, KEPT):
            values = [_value(column[1], column[2], name) for column in columns]
            marks = ",".join("?" * len(values))
            connection.execute(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", values)  # noqa: S608  # its own tables' names
    return connection


def _tables(connection: sqlite3.Connection) -> list[str]:
    return [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]


def _value(column: str, kind: str, name: str) -> object:
    if column == "probe":
        return name
    if column in ("id", "run"):
        return f"run-of-{name}"
    return {"INTEGER": 1, "BLOB": name.encode(), "REAL": 1.0}.get(kind, name)


def test_the_name_is_gone_and_the_other_is_whole(registry: sqlite3.Connection) -> None:
    before = {table: _rows(registry, table, KEPT) for table in _tables(registry)}
    assert sum(before.values()) > 12
    registry.executescript(_statements())
    left = {table for table in _tables(registry) if _rows(registry, table, GONE)}
    assert left <= TOKENS, left
    assert {table: _rows(registry, table, KEPT) for table in _tables(registry)} == before
    assert registry.execute("PRAGMA foreign_key_check").fetchall() == []


def _rows(registry: sqlite3.Connection, table: str, name: str) -> int:
    """Rows in which the name stands anywhere."""
    return sum(
        any(name in (value.decode(errors="replace") if isinstance(value, bytes) else str(value)) for value in row)
        for row in registry.execute(f"SELECT * FROM {table}")  # noqa: S608  # likewise
    )
