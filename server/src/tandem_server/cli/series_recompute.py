"""What ``tandem-server series recompute`` does: a piece at a time, in turn with the gateway, telling how far it is."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime

from tandem_server.ingest.rolling import DAY_S, HOUR_S, LEASE, LEASE_S, Rollups, Span
from tandem_server.registry import Registry
from tandem_server.store import Influx
from tandem_server.store.preparing import Kept

_TURN_S = 0.1
_TOLD_EVERY_S = 5.0


def recompute(
    registry: Registry,
    store: Influx,
    kept: Kept,
    only: Sequence[str],
    start_s: int | None,
    end_s: int | None,
    probe: str | None,
    *,
    as_json: bool,
) -> None:
    """Roll-ups of ``only`` from ``start_s`` (the oldest record) to ``end_s`` (now), seconds since 1970 UTC. StoreDown, QueryError."""
    rollups = Rollups(registry, store, kept, only)
    now_s = time.time()
    last_s = -(-int(now_s if end_s is None else end_s) // HOUR_S) * HOUR_S
    spans: list[Span] = []
    for measurement in only:
        first_s = rollups.oldest(measurement, last_s) if start_s is None else start_s // HOUR_S * HOUR_S
        days = range(first_s, last_s, DAY_S)
        spans.extend(Span(measurement, at_s, min(at_s + DAY_S, last_s), probe) for at_s in days)
    spans.sort(key=lambda span: -span.start_s)  # people look at what is new
    told_s, holder = 0.0, f"{os.getpid()}-{os.urandom(8).hex()}"
    for number, span in enumerate(spans):
        while not registry.seen.lease(LEASE, holder, time.time_ns(), LEASE_S):
            time.sleep(_TURN_S)  # the gateway has its turn: a round of a few seconds
        try:
            rollups.make(span, now_s)
        finally:
            registry.seen.give_up(LEASE, holder)
        if as_json or time.monotonic() - told_s >= _TOLD_EVERY_S:
            _tell(span, number + 1, len(spans), as_json=as_json)
            told_s = time.monotonic()
    if as_json:
        print(json.dumps({"format": "tandem-series-recompute/1", "done": True, "pieces": len(spans)}), flush=True)
    else:
        print(f"made again: {len(only)} measurements, {len(spans)} pieces, {time.time() - now_s:.0f} s")


def _tell(span: Span, done: int, of: int, *, as_json: bool) -> None:
    if as_json:
        piece = {"measurement": span.measurement, "from_utc_s": span.start_s, "to_utc_s": span.end_s}
        print(
            json.dumps({"format": "tandem-series-recompute/1", "pieces_done": done, "pieces": of, **piece}), flush=True
        )
        return
    day = datetime.fromtimestamp(span.start_s, UTC).strftime("%Y-%m-%d %H:%M UTC")
    print(f"{100 * done // of:3} %  {span.measurement} from {day}", file=sys.stderr, flush=True)
