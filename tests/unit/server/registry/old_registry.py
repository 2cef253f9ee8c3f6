"""A registry's file as an earlier version left it."""

import re
import sqlite3

from tandem_server.registry.database import _STEPS

WITH_FORMS = 9
"""The first version whose campaigns have a form; before, a mark that they were short."""
WITH_ZONES = 10


def to_version(connection: sqlite3.Connection, version: int) -> None:
    """Take away what later versions added."""
    if version < WITH_ZONES:
        connection.execute("ALTER TABLE campaigns DROP COLUMN timezone")
    if version < WITH_FORMS:
        connection.execute("ALTER TABLE campaigns ADD COLUMN short INTEGER NOT NULL DEFAULT 0")
        connection.execute("UPDATE campaigns SET short = 1 WHERE form = 'short'")
        connection.execute("ALTER TABLE campaigns DROP COLUMN form")
    for step in reversed(_STEPS[version:]):
        for kind, name in reversed(re.findall(r"CREATE (TABLE|INDEX|TRIGGER) (\w+)", step)):
            connection.execute(f"DROP {kind} IF EXISTS {name}")
    connection.execute(f"PRAGMA user_version = {version}")
