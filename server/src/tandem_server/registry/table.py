"""What the tables' classes have in common."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any

Opening = Callable[[], AbstractContextManager[sqlite3.Connection]]
"""Lends a connection for reading, or for one transaction of writing."""


class Table:
    """A few tables of the registry's file. A read sees a whole state and waits for nobody; a write is one transaction, on the disk when it
    returns. sqlite3.Error."""

    def __init__(self, read: Opening, write: Opening) -> None:
        self._read, self._write = read, write

    def _rows(self, select: str, values: tuple[object, ...] = ()) -> list[Any]:
        with self._read() as connection:
            return connection.execute(select, values).fetchall()

    def _row(self, select: str, values: tuple[object, ...] = ()) -> Any:  # noqa: ANN401  a row, None without one
        with self._read() as connection:
            return connection.execute(select, values).fetchone()

    def _do(self, statement: str, values: tuple[object, ...] = ()) -> int:
        """How many rows it changed."""
        with self._write() as connection:
            return connection.execute(statement, values).rowcount

    def _do_all(self, statement: str, rows: Iterable[tuple[object, ...]]) -> None:
        with self._write() as connection:
            connection.executemany(statement, rows)
