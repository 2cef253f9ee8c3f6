"""The configuration of a private ``influxd`` 1.6 to 1.8: loopback only, accounts on, nothing reported, no listener besides."""

from __future__ import annotations

from pathlib import Path

_TEMPLATE = """\
# Written at each start; changes here are lost.
reporting-enabled = false
bind-address = "127.0.0.1:{backup_port}"

[meta]
  dir = {meta}
[data]
  dir = {data}
  wal-dir = {wal}
  # Each write is synced before it is acknowledged: the gateway's promise to the probes rests on it.
  wal-fsync-delay = "0s"
  index-version = "tsi1"
  query-log-enabled = false
  # More than the default 25m: fewer and larger files, less CPU a line under the load of a thousand probes.
  cache-snapshot-memory-size = "64m"
  # A run's id is a tag, so values only ever grow; a limit would refuse good points one day.
  max-series-per-database = 0
  max-values-per-tag = 0
[monitor]
  store-enabled = false
[subscriber]
  enabled = false
[continuous_queries]
  # Whoever may read may make one, and it would run with the right to write: roll-ups are the gateway's (ingest/rolling.py).
  enabled = false
[http]
  bind-address = "127.0.0.1:{port}"
  auth-enabled = true
  log-enabled = false
  pprof-enabled = false
[logging]
  level = "warn"
  suppress-logo = true
"""


def render(folder: Path, port: int, backup_port: int) -> str:
    """The file's text. ``backup_port`` is the one listener that ``influxd`` cannot do without; it stays on loopback."""
    place = folder.resolve()
    return _TEMPLATE.format(
        port=port,
        backup_port=backup_port,
        meta=_quoted(place / "meta"),
        data=_quoted(place / "data"),
        wal=_quoted(place / "wal"),
    )


def _quoted(path: Path) -> str:
    return '"' + str(path).replace("\\", "\\\\").replace('"', '\\"') + '"'
