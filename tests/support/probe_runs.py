"""Probes that tell of runs: records as a gateway stores them, manifests as it enters them."""

import hashlib
import time
from dataclasses import dataclass, field
from typing import Any

from support.offers import offer_of
from tandem.schema.line_protocol import encode
from tandem.schema.record import Record
from tandem_server.ledger.reader import Ledger, LedgerReader
from tandem_server.ledger.records import RecordCounts
from tandem_server.ledger.states import Tolerances
from tandem_server.registry import Registry
from tandem_server.store import Influx

S = 10**9
MANIFEST = {
    "format": "tandem-run/1", "id": "run-1", "pair": "pair-1", "pairing": "sequential", "kind": "mptcp", "paths": ["a", "b"],
    "probe": "probe-1", "boot": "b", "trigger": "told", "experiment": {"name": "download", "version": 1}, "parameters": {}, "seed": 1,
    "started_utc_ns": 1, "ended_utc_ns": 2, "started_monotonic_ns": 1, "ended_monotonic_ns": 2, "environment": {}, "modems": {},
    "clock": {}, "records": {"subflow": 10}, "result": {"bytes": 5, "duration_s": 1.0, "goodput_bit_per_s": 40.0}, "failure": None,
    "files": [],
}  # fmt: skip
"""Of a run, as a gateway takes it."""


@dataclass
class Probe:
    """``now_ns``: time of the next record; each is a tenth of a second later. The first is of half an hour ago: what is an hour old is not
    looked for in each pass."""

    name: str = "probe-1"
    boot: str = "b1"
    spool: str = "aaaaaaaaaaaa"
    first: int = 1
    seq: int = 0
    now_ns: int = field(default_factory=lambda: time.time_ns() - 1800 * S)
    gone: dict[str, int] = field(default_factory=lambda: {"rejected": 0, "dropped": 0})
    lines: list[str] = field(default_factory=list)

    def record(self, measurement: str, tags: dict[str, Any], fields: dict[str, Any]) -> None:
        self.seq += 1
        self.now_ns += S // 10
        record = Record.make(measurement, tags, fields, self.now_ns)
        self.lines.append(encode(record, {"probe": self.name, "boot": self.boot}, self.seq, self.now_ns))

    def polls(self, count: int) -> None:
        for _ in range(count):
            self.record("radio", {"path": "a"}, {"state": "idle"})

    def lost(self, count: int) -> None:
        self.seq += count

    def tell(self, waiting: int = 0, manifests: int = 0, oldest_s: float | None = None) -> None:
        """The spool's report; ``waiting`` of the last numbers are not settled."""
        made, first = self.seq, self.first
        counts = {"made": made, "settled": made - waiting, "first": first, "manifests": manifests, **self.gone}
        sent = made - waiting - sum(self.gone.values())
        if waiting and oldest_s is None:
            oldest_s = waiting / 10
        self.record("spool", {}, {"spool": self.spool, "sent": sent, "oldest_s": oldest_s, **counts})

    def run(self, run: str, samples: int = 5, **more: Any) -> dict[str, Any]:
        began = self.now_ns
        for n in range(samples):
            self.record("subflow", {"run": run, "end": "probe", "subflow": "1"}, {"bytes_received": n})
            self.record("connection", {"run": run, "end": "probe"}, {"bytes": n})
        self.record("run", {"run": run}, {"bytes": samples, "ok": True})
        told = {"subflow": samples, "connection": samples, "run": 1, "broken": 2}
        return {
            "id": run, "probe": self.name, "kind": "mptcp", "boot": self.boot, "records": told, "files": [],
            "result": {"bytes": samples}, "failure": None, "started_utc_ns": began, "ended_utc_ns": self.now_ns, **more,
        }  # fmt: skip

    def send(self, store: Influx) -> None:
        assert store.write(self.lines) == []
        self.lines.clear()

    def tell_all(self, store: Influx, **how: Any) -> None:
        """It tells of its spool, and sends all that it has."""
        self.tell(**how)
        self.send(store)


def file_of(name: str, content: bytes) -> dict[str, Any]:
    return {"name": name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest(), "packets": None}


def receive(registry: Registry, probe: str, name: str, content: bytes, run: str | None) -> None:
    """As the gateway does when the last chunk is in the store."""
    import io

    offer = offer_of(io.BytesIO(content), name, run, "identity")
    registry.pending_uploads.offer(probe, offer, 8)
    registry.pending_uploads.finish(probe, offer, f"{probe}/{name}", "identity", len(content))


def ledger(
    registry: Registry, store: Influx, probe: str | None = None, retention_days: int | None = None, **how: bool
) -> Ledger:
    with_files = how.pop("with_files", True)
    book = LedgerReader(registry, RecordCounts(store), Tolerances(), retention_days, with_files=with_files)
    return book.read(probe, **how)


def queries_of(store: Influx, monkeypatch) -> list[str]:
    """What the database is asked from now on."""
    queries, query = [], store.query

    def note(influxql, params=None):
        queries.append(influxql)
        return query(influxql, params)

    monkeypatch.setattr(store, "query", note)
    return queries
