"""Connections as lines for people: one for each, and one for each of its subflows. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

HEADS = (
    f"{'start (UTC)':23}  {'protocol':8} {'duration':>10} {'goodput':>10} {'rate':>13} {'reorder queue':>13}  file\n"
    f"  {'subflow':>7}  {'local → remote':51} {'goodput':>10} {'share':>6}  {'RTT min, median, 95 % (method)':42}"
    f" {'sent twice':>10} {'hole fills':>10} {'reinjected':>10}"
)


def lines(connection: Mapping[str, Any]) -> str:
    """One connection; ends without a line feed. ``–``: not known. MPTCP without a version: no packet tells it."""
    began = datetime.fromtimestamp(connection["start_utc_ns"] // 1_000_000_000, UTC)
    version = connection["version"]
    protocol = "TCP" if not connection["multipath"] else "MPTCP" if version is None else f"MPTCP v{version}"
    notes = "".join(f"  {note}" for note in _notes(connection))
    rate = connection["goodput_bit_per_s"]
    first = (
        f"{began:%Y-%m-%d %H:%M:%S}.{connection['start_utc_ns'] // 1_000_000 % 1000:03}  {protocol:8}"
        f" {connection['duration_s']:>8.3f} s {_bytes(connection['bytes']):>10}"
        f" {'–' if rate is None else f'{rate / 1e6:.3f} Mbit/s':>13}"
        f" {_bytes(connection['reorder_queue_max_bytes']):>13}  {connection['file']}{notes}"
    )
    return "\n".join([first, *(_subflow(subflow) for subflow in connection["subflows"])])


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


def _subflow(subflow: Mapping[str, Any]) -> str:
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
