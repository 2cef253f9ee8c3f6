"""A registry's file as an earlier version left it."""

import re
import sqlite3

from tandem_server.registry.database import _STEPS


def to_version(connection: sqlite3.Connection, version: int) -> None:
    """Take away what later versions added."""
    for step in reversed(_STEPS[version:]):
        for kind, name in reversed(re.findall(r"CREATE (TABLE|INDEX|TRIGGER) (\w+)", step)):
            connection.execute(f"DROP {kind} IF EXISTS {name}")
    connection.execute(f"PRAGMA user_version = {version}")
