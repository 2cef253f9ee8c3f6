"""What has arrived at the provisioned server: its database and its ledger."""

from __future__ import annotations

import json
import shlex
from typing import Any

_QUERY = """
import contextlib, json, pathlib, sys
from tandem_server.cli.configuration import load
from tandem_server.cli.stores import open_store
with contextlib.closing(open_store(load(pathlib.Path("/etc/tandem/server.toml")))) as store:
    print(json.dumps([{"tags": dict(one.tags), "rows": one.rows} for one in store.query(sys.argv[1], json.loads(sys.argv[2]))]))
"""
_PYTHON = "sudo /opt/tandem-server/current/bin/python3 -c"


def query(statement: str, **values: str) -> str:
    """The command that asks the server's database in InfluxQL with ``$name`` for ``values``; it prints JSON: series with ``tags`` and
    ``rows``."""
    return f"{_PYTHON} {shlex.quote(_QUERY)} {shlex.quote(statement)} {shlex.quote(json.dumps(values))}"


LEVELS = query('SELECT "rsrp_dbm" FROM "radio" GROUP BY "path" ORDER BY time DESC LIMIT 30')
"""The command for the newest levels of each path, the newest first."""


def carried(run: str) -> str:
    """The command for the most bytes that a subflow of ``run`` has brought, by path."""
    return query('SELECT max("bytes_received") FROM "subflow" WHERE "run" = $run GROUP BY "path"', run=run)


def by_path(said: str) -> dict[str, list[list[Any]]]:
    """By path its rows: when (ns, UTC) and what."""
    return {series["tags"]["path"]: series["rows"] for series in json.loads(said)}


LEDGER = "sudo tandem-server ledger --no-files --json || test $? -eq 1"
"""The command for every run that the server knows of; 1: a run lacks something."""
