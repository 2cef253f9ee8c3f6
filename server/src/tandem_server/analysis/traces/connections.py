"""A capture's tables → one JSON object for each connection (README.md has the keys). Pure."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from tandem_server import tandem_trace_core as core
from tandem_server.analysis.traces.columns import end, listed

if TYPE_CHECKING:  # the library has no types of its own when it runs
    from tandem_server.tandem_trace_core import Table, Tables

TO_OPENER = core.DIRECTIONS.index("to_opener")
FROM_OPENER = core.DIRECTIONS.index("from_opener")
AT_RESPONDER = core.VANTAGES.index("responder")

Row = dict[str, Any]


def connections_of(file: str, tables: Tables) -> list[Row]:
    """In the order in which they began. Absent is None."""
    totals = {(t["connection"], t["subflow"], t["direction"]): t for t in _rows(tables["totals"], TOTALS)}
    subflows = _by_connection(_rows(tables["subflows"], SUBFLOWS))
    events = _by_connection(_rows(tables["events"], EVENTS))
    number = dict(zip(range(tables["subflows"]["rows"]), listed(tables["subflows"], "number"), strict=True))
    made = []
    for row in _rows(tables["connections"], CONNECTIONS):
        own = row["connection"]
        direction = _data_direction(totals, own)
        whole = totals.get((own, None, direction), {})
        packets = [totals.get((own, None, d), {}).get("packets", 0) for d in (FROM_OPENER, TO_OPENER)]
        lasted_ns = row["end_utc_ns"] - row["start_utc_ns"]
        delivered = whole.get("goodput_bytes", 0)
        made.append(
            {
                "file": file,
                "multipath": bool(row["multipath"]),
                "version": row["version"],
                "vantage": core.VANTAGES[row["vantage"]],
                "uncertain": bool(row["uncertain"]),
                "disordered": bool(row["disordered"]),
                "one_direction": 0 in packets,
                "start_utc_ns": row["start_utc_ns"],
                "duration_s": lasted_ns / 1e9,
                "bytes": delivered,
                "goodput_bit_per_s": delivered * 8e9 / lasted_ns if lasted_ns > 0 else None,
                "reorder_queue_max_bytes": whole.get("reorder_queue_max_bytes"),
                "unmapped_bytes": whole.get("unmapped_bytes", 0),
                "unseen_bytes": whole.get("unseen_bytes", 0),
                "fallback": bool(row["fallback"]),
                "subflows": [
                    _subflow(subflow, totals.get((own, subflow["subflow"], direction), {}), row["vantage"])
                    for subflow in subflows[own]
                ],
                "events": [
                    {
                        "kind": core.EVENT_KINDS[event["kind"]],
                        "time_ns": event["time_utc_ns"],
                        "subflow": number.get(event["subflow"]),
                    }
                    for event in events[own]
                ],
            }
        )
    return made


CONNECTIONS = (
    *("connection", "multipath", "version", "start_utc_ns", "end_utc_ns", "fallback", "vantage", "uncertain"),
    "disordered",
)
SUBFLOWS = (
    *("connection", "number", "opener_address", "responder_address", "opener_port", "responder_port"),
    *("join_delay_ns", "backup", "subflow"),
)
EVENTS = ("connection", "subflow", "kind", "time_utc_ns")
TOTALS = (
    *(
        "connection",
        "subflow",
        "direction",
        "packets",
        "unmapped_bytes",
        "unseen_bytes",
        "goodput_bytes",
        "share",
        "duplicate_bytes",
        "hole_fill_bytes",
    ),
    *("reinjected_bytes", "reorder_queue_max_bytes", "rtt_method", "rtt_min_ns", "rtt_median_ns", "rtt_p95_ns"),
)


def _rows(table: Table, names: tuple[str, ...]) -> list[Row]:
    columns = [listed(table, name) for name in names]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def _by_connection(rows: list[Row]) -> dict[int, list[Row]]:
    grouped: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        grouped[row["connection"]].append(row)
    return grouped


def _data_direction(totals: dict[tuple[int, int | None, int], Row], connection: int) -> int:
    """That which carried more goodput; when equal, towards the opener."""
    carried = {d: totals.get((connection, None, d), {}).get("goodput_bytes", 0) for d in (TO_OPENER, FROM_OPENER)}
    return FROM_OPENER if carried[FROM_OPENER] > carried[TO_OPENER] else TO_OPENER


def _subflow(row: Row, total: Row, vantage: int) -> Row:
    opener = end(row["opener_address"], row["opener_port"])
    responder = end(row["responder_address"], row["responder_port"])
    local, remote = (responder, opener) if vantage == AT_RESPONDER else (opener, responder)
    method = total.get("rtt_method")
    return {
        "id": row["number"],
        "local": local,
        "remote": remote,
        "bytes": total.get("goodput_bytes", 0),
        "share": total.get("share"),
        "rtt_ms": {name: _ms(total.get(f"rtt_{name}_ns")) for name in ("min", "median", "p95")},
        "rtt_method": None if method is None else core.RTT_METHODS[method],
        "retransmitted_bytes": total.get("duplicate_bytes", 0),
        "hole_fill_bytes": total.get("hole_fill_bytes", 0),
        "reinjected_bytes": total.get("reinjected_bytes", 0),
        "join_delay_ms": _ms(row["join_delay_ns"]),
        "backup": bool(row["backup"]),
    }


def _ms(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / 1e6
