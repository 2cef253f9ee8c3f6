"""A capture's tables → one object for each connection (keys: docs/reference/captures.md), and its lines for people. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tandem_server.analysis.traces.tables import arrow
from tandem_server.utc import SPACED, utc

if TYPE_CHECKING:  # the library has no types of its own when it runs
    from tandem_server.tandem_trace_core import Table, Tables

Row = dict[str, Any]
_BOTH = ("from_opener", "to_opener")


def connections_of(file: str, tables: Tables) -> list[Row]:
    """In the order in which they began. Absent is None."""
    totals = {(t["connection"], t["subflow"], t["direction"]): t for t in _rows("totals", tables["totals"])}
    flows = _rows("subflows", tables["subflows"])
    subflows, events = _by_connection(flows), _by_connection(_rows("events", tables["events"]))
    number = {flow["subflow"]: flow["number"] for flow in flows}
    made = []
    for row in _rows("connections", tables["connections"]):
        own = row["connection"]
        carried = {d: totals.get((own, None, d), {}).get("goodput_bytes", 0) for d in _BOTH}
        # That which carried more goodput; when equal, towards the opener.
        direction = "from_opener" if carried["from_opener"] > carried["to_opener"] else "to_opener"
        whole = totals.get((own, None, direction), {})
        packets = [totals.get((own, None, d), {}).get("packets", 0) for d in _BOTH]
        lasted_ns = row["end_utc_ns"] - row["start_utc_ns"]
        delivered = whole.get("goodput_bytes", 0)
        made.append(
            {
                "file": file,
                **{key: row[key] for key in ("multipath", "version", "vantage", "uncertain", "disordered")},
                "one_direction": 0 in packets,
                "start_utc_ns": row["start_utc_ns"],
                "duration_s": lasted_ns / 1e9,
                "bytes": delivered,
                "goodput_bit_per_s": delivered * 8e9 / lasted_ns if lasted_ns > 0 else None,
                "reorder_queue_max_bytes": whole.get("reorder_queue_max_bytes"),
                "unmapped_bytes": whole.get("unmapped_bytes", 0),
                "unseen_bytes": whole.get("unseen_bytes", 0),
                "fallback": row["fallback"],
                "subflows": [
                    _subflow(flow, totals.get((own, flow["subflow"], direction), {}), row["vantage"])
                    for flow in subflows[own]
                ],
                "events": [
                    {"kind": e["kind"], "time_ns": e["time_utc_ns"], "subflow": number.get(e["subflow"])}
                    for e in events[own]
                ],
            }
        )
    return made


def _rows(name: str, table: Table) -> list[Row]:
    rows: list[Row] = arrow(name, "", table).to_pylist()
    return rows


def _by_connection(rows: list[Row]) -> dict[int, list[Row]]:
    grouped: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        grouped[row["connection"]].append(row)
    return grouped


def _subflow(row: Row, total: Row, vantage: str) -> Row:
    opener, responder = (_end(row[f"{end}_address"], row[f"{end}_port"]) for end in ("opener", "responder"))
    local, remote = (responder, opener) if vantage == "responder" else (opener, responder)
    return {
        "id": row["number"],
        "local": local,
        "remote": remote,
        "bytes": total.get("goodput_bytes", 0),
        "share": total.get("share"),
        "rtt_ms": {name: _ms(total.get(f"rtt_{name}_ns")) for name in ("min", "median", "p95")},
        "rtt_method": total.get("rtt_method"),
        "retransmitted_bytes": total.get("duplicate_bytes", 0),
        "hole_fill_bytes": total.get("hole_fill_bytes", 0),
        "reinjected_bytes": total.get("reinjected_bytes", 0),
        "join_delay_ms": _ms(row["join_delay_ns"]),
        "backup": row["backup"],
    }


def _end(host: str, port: int) -> str:
    """``address:port``, IPv6 in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _ms(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / 1e6


HEADS = (
    f"{'start (UTC)':23}  {'protocol':8} {'duration':>10} {'goodput':>10} {'rate':>13} {'reorder queue':>13}  file\n"
    f"  {'subflow':>7}  {'local → remote':51} {'goodput':>10} {'share':>6}  {'RTT min, median, 95 % (method)':42}"
    f" {'sent twice':>10} {'hole fills':>10} {'reinjected':>10}"
)


def lines(connection: Mapping[str, Any]) -> str:
    """One connection; ends without a line feed. ``–``: not known. MPTCP without a version: no packet tells it."""
    version = connection["version"]
    protocol = "TCP" if not connection["multipath"] else "MPTCP" if version is None else f"MPTCP v{version}"
    notes = "".join(f"  {note}" for note in _notes(connection))
    rate = connection["goodput_bit_per_s"]
    first = (
        f"{utc(connection['start_utc_ns'], SPACED)}.{connection['start_utc_ns'] // 1_000_000 % 1000:03}  {protocol:8}"
        f" {connection['duration_s']:>8.3f} s {_bytes(connection['bytes']):>10}"
        f" {'–' if rate is None else f'{rate / 1e6:.3f} Mbit/s':>13}"
        f" {_bytes(connection['reorder_queue_max_bytes']):>13}  {connection['file']}{notes}"
    )
    return "\n".join([first, *(_subflow_line(subflow) for subflow in connection["subflows"])])


def _notes(connection: Mapping[str, Any]) -> Iterator[str]:
    """What is to be known of the figures."""
    if connection["vantage"] != "unknown":
        yield f"captured at the {connection['vantage']}"
    if connection["fallback"]:
        yield "fallback"
    if connection["uncertain"]:
        yield "uncertain: subflows joined by likeness"
    if connection["disordered"]:
        yield "packets out of order"
    if connection["one_direction"]:
        yield "one direction only"
    if connection["unmapped_bytes"]:
        yield f"{_bytes(connection['unmapped_bytes'])} without a mapping"
    if connection["unseen_bytes"]:
        yield f"{_bytes(connection['unseen_bytes'])} not in the capture"


def _subflow_line(subflow: Mapping[str, Any]) -> str:
    rtt = subflow["rtt_ms"]
    told = "–"
    if rtt["median"] is not None:
        told = f"{rtt['min']:.2f}, {rtt['median']:.2f}, {rtt['p95']:.2f} ms ({subflow['rtt_method']})"
    share = subflow["share"]
    joined = "" if subflow["join_delay_ms"] is None else f"  joined after {subflow['join_delay_ms']:.1f} ms"
    return (
        f"  {subflow['id']:>7}  {subflow['local'] + ' → ' + subflow['remote']:51} {_bytes(subflow['bytes']):>10}"
        f" {'–' if share is None else f'{share:.1%}':>6}  {told:42} {_bytes(subflow['retransmitted_bytes']):>10}"
        f" {_bytes(subflow['hole_fill_bytes']):>10} {_bytes(subflow['reinjected_bytes']):>10}"
        f"{joined}{'  backup' if subflow['backup'] else ''}"
    )


def _bytes(count: int | None) -> str:
    if count is None:
        return "–"
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.2f} {unit}"
    return f"{count} B"
