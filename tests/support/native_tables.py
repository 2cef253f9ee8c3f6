"""Tables as rows of plain Python values, by the documented format alone; None where the validity bitmap says so."""

import ipaddress
from typing import Any

import numpy as np

from support.native import core

CODES = {
    "direction": "DIRECTIONS",
    "joined_by": "JOINED_BY",
    "rtt_method": "RTT_METHODS",
    "vantage": "VANTAGES",
    "closed_by": "CLOSED_BY",
}


def rows(tables: dict[str, Any], name: str) -> list[dict[str, Any]]:
    table = tables[name]
    columns: dict[str, list[Any]] = {}
    for column, (dtype, data, validity) in table["columns"].items():
        array = np.frombuffer(data, dtype)
        assert len(array) == table["rows"], column
        values = [_address(bytes(v)) for v in array] if dtype == "V16" else array.tolist()
        if column in CODES:
            values = [getattr(core, CODES[column])[code] for code in values]
        elif column == "kind":
            names = core.EVENT_KINDS if name == "events" else core.PROBLEM_KINDS
            values = [names[code] for code in values]
        if validity is not None:
            known = np.unpackbits(np.frombuffer(validity, np.uint8), bitorder="little")[: table["rows"]]
            values = [value if has else None for value, has in zip(values, known, strict=True)]
        columns[column] = values
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _address(raw: bytes) -> str:
    address = ipaddress.IPv6Address(raw)
    return str(address.ipv4_mapped or address)


def analyse(content: bytes, **options: Any) -> dict[str, Any]:
    """All tables of a capture in memory, with rows of packets."""
    tables = core.analyse_bytes(content, **{"packets": True, **options})
    made: dict[str, Any] = {name: rows(tables, name) for name in tables if name != "file"}
    made["file"] = tables["file"]
    return made


def of(made: dict[str, Any], name: str, **what: Any) -> list[dict[str, Any]]:
    return [row for row in made[name] if all(row[key] == value for key, value in what.items())]


def one(made: dict[str, Any], name: str, **what: Any) -> dict[str, Any]:
    found = of(made, name, **what)
    assert len(found) == 1, (name, what, found)
    return found[0]
