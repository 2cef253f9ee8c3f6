"""The native pass's tables as Python values, and what its codes mean (server/trace-core/README.md). Pure."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tandem_server import tandem_trace_core as core

if TYPE_CHECKING:  # the library has no types of its own when it runs
    from tandem_server.tandem_trace_core import Table

NAMES: dict[str, tuple[str, ...]] = {
    "direction": core.DIRECTIONS,
    "joined_by": core.JOINED_BY,
    "rtt_method": core.RTT_METHODS,
    "vantage": core.VANTAGES,
    "closed_by": core.CLOSED_BY,
}
"""Columns of codes, the same in every table; ``kind`` differs (``names_of``)."""
YES_OR_NO = frozenset(
    {
        "multipath",
        "opener_known",
        "handshake_seen",
        "uncertain",
        "disordered",
        "fallback",
        "opened_by_responder",
        "backup",
        "timestamps",
    }
)


def names_of(table: str, column: str) -> tuple[str, ...] | None:
    """What the codes of a column mean; None when it has none."""
    if column == "kind":
        return core.PROBLEM_KINDS if table == "problems" else core.EVENT_KINDS
    return NAMES.get(column)


def known_of(validity: bytes | None, rows: int) -> NDArray[np.bool_] | None:
    """Which rows have a value; None: all."""
    if validity is None:
        return None
    bits = np.unpackbits(np.frombuffer(validity, np.uint8), bitorder="little")[:rows]
    return bits.astype(np.bool_)


def listed(table: Table, name: str) -> list[Any]:
    """A column's values in order, None where absent. Addresses as text; codes stay codes."""
    dtype, data, validity = table["columns"][name]
    array = np.frombuffer(data, dtype)
    known = known_of(validity, table["rows"])
    has = [True] * table["rows"] if known is None else known.tolist()
    raw = (bytes(value) for value in array) if dtype == "V16" else array.tolist()
    of = address if dtype == "V16" else _as_it_is
    return [of(value) if there else None for value, there in zip(raw, has, strict=True)]


def address(raw: bytes) -> str:
    """An address as people write it: IPv4 where it is a mapped one."""
    whole = ipaddress.IPv6Address(raw)
    return str(whole.ipv4_mapped or whole)


def end(host: str, port: int) -> str:
    """``address:port``, IPv6 in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _as_it_is(value: Any) -> Any:  # noqa: ANN401  (what the column holds)
    return value
