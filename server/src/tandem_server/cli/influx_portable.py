"""InfluxDB's own portable backup: where the running database takes it, running its program, and when what it sent is there."""

from __future__ import annotations

import re
import subprocess
import tarfile
import time
from pathlib import Path

from tandem_server.cli.stop import EnvironmentLacks

_IN_USE = {"01", "03", "08"}
"""ESTABLISHED, SYN_RECV, CLOSE_WAIT, as in Linux's include/net/tcp_states.h: a connection that its own end has not closed."""
_LOOK_EVERY_S = 0.02


def backup_address(folder: Path) -> str:
    """Where the running database listens for backups; EnvironmentLacks."""
    try:
        found = re.search(r'^bind-address = "([^"]+)"', (folder / "influxd.conf").read_text(), re.MULTILINE)
    except OSError as error:
        raise EnvironmentLacks(
            f"{error.filename}: {error.strerror}; hint: start tandem-database, and run this as root"
        ) from error
    if found is None:
        raise EnvironmentLacks(f"{folder / 'influxd.conf'} names no bind-address; hint: start tandem-database anew")
    return found[1]


def run_influxd(command: list[str], what: str) -> None:
    """Run influxd to its end; EnvironmentLacks with its last words."""
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        words = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        raise EnvironmentLacks(
            f"influxd could not {what} ({words[-1] if words else 'it says nothing'}); hint: see that tandem-database runs"
        )


def open_connections(port: int, table: Path = Path("/proc/net/tcp")) -> int:
    """How many connections to the listener on ``port`` (IPv4) it has not closed, in this network namespace."""
    rows = [line.split() for line in table.read_text().splitlines()[1:]]
    return sum(int(row[1].rpartition(":")[2], 16) == port and row[3] in _IN_USE for row in rows)


def await_taken(address: str, within_s: float = 3600.0) -> None:
    """Wait until the database has taken what `influxd restore` sent it; EnvironmentLacks.

    That program ends when it has sent: a shard is answered by nothing, and shows no point before the database has read it, put it in
    place and closed its end of the connection.
    """
    port = int(address.rpartition(":")[2])
    deadline_s = time.monotonic() + within_s
    while open_connections(port) > 0:
        if time.monotonic() > deadline_s:
            raise EnvironmentLacks(
                f"influxd still reads from {address} after {within_s:.0f} s; hint: end what else uses it"
            )
        time.sleep(_LOOK_EVERY_S)


def shards_sent(backup: Path) -> int:
    """How many shards of a portable backup hold points. OSError, tarfile.TarError."""
    found = 0
    for file in sorted(backup.glob("*.tar.gz")):
        with tarfile.open(file) as archive:
            found += any(name.endswith(".tsm") for name in archive.getnames())
    return found


def shards_taken(folder: Path, database: str) -> int:
    """How many shards of the database in ``folder`` hold points on the disk."""
    return len({file.parent for file in (folder / "data" / database).glob("*/*/*.tsm")})
