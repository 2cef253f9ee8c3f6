"""``server_health`` and ``server_disk``: the machine that the gateway is on, once a minute."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from tandem.schema.record import Value
from tandem_server import __version__
from tandem_server.ingest.leased import PERIOD_S, Leased
from tandem_server.ingest.machine import held_bytes, machine, of_places, processors_now
from tandem_server.ingest.own_lines import own_line, put
from tandem_server.registry import Registry
from tandem_server.store import SeriesStore

LEASE = "machine"
_HELD_EVERY_S = 600.0
_SHARE = 100
"""A folder whose files took long to count is counted again after a hundred times as long."""
_PROC = Path("/proc")


class MachineSeries(Leased):
    """``places``: the server's folders, and its registry's file, by their names in SERVER_PLACES (tandem_server.schema.measurements)."""

    def __init__(
        self, registry: Registry, store: SeriesStore, places: Mapping[str, Path], period_s: int = PERIOD_S
    ) -> None:
        super().__init__(registry, LEASE, self._put, period_s)
        self._registry_of_probes, self._store, self._places = registry.probes, store, places
        self._before = processors_now(_PROC)
        self._next_s: dict[str, float] = {}

    def _put(self, now_utc_ns: int) -> None:
        at_utc_ns = self.whole(now_utc_ns)
        began_s = time.perf_counter()
        version = self._store.ping()
        answer_ms = 1e3 * (time.perf_counter() - began_s)
        now = processors_now(_PROC)
        fields: dict[str, Value | None] = {
            **machine(_PROC, now, self._before),
            "database_answer_ms": answer_ms,
            "database": version or None,
            "version": __version__,
            "probes": sum(probe.revoked_utc_ns is None for probe in self._registry_of_probes.all()),
        }
        self._before = now
        lines = [own_line("server_health", {}, fields, at_utc_ns)]
        for name, told in of_places(self._places).items():
            lines.append(own_line("server_disk", {"place": name}, {**told, "held_bytes": self._held(name)}, at_utc_ns))
        put(self._store, [line for line in lines if line is not None])

    def _held(self, name: str) -> int | None:
        """Counted now, or None while it is not due."""
        start_s = time.monotonic()
        if start_s < self._next_s.get(name, 0.0):
            return None
        held = held_bytes(self._places[name])
        self._next_s[name] = start_s + max(_HELD_EVERY_S, _SHARE * (time.monotonic() - start_s))
        return held
