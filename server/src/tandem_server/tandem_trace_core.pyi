"""The native pass over a capture; docs/reference/captures.md says what each table and column is."""

from os import PathLike
from typing import TypedDict

DIRECTIONS: tuple[str, ...]
JOINED_BY: tuple[str, ...]
RTT_METHODS: tuple[str, ...]
VANTAGES: tuple[str, ...]
CLOSED_BY: tuple[str, ...]
EVENT_KINDS: tuple[str, ...]
PROBLEM_KINDS: tuple[str, ...]

class File(TypedDict):
    format: str | None
    compression: str | None
    bytes: int
    packets: int
    tcp_packets: int
    other_packets: int
    first_utc_ns: int | None
    last_utc_ns: int | None
    link_types: list[int]
    problems: dict[str, int]
    bounded: list[str]
    bin_ns: int

class Table(TypedDict):
    rows: int
    columns: dict[str, tuple[str, bytes, bytes | None]]

class Tables(TypedDict):
    file: File
    connections: Table
    subflows: Table
    totals: Table
    bins: Table
    waits: Table
    rtts: Table
    events: Table
    packets: Table
    problems: Table

def analyse(
    path: str | PathLike[str], *, bin_ns: int = 100_000_000, packets: bool = False, limits: dict[str, int] | None = None
) -> Tables: ...
def analyse_bytes(
    content: bytes, *, bin_ns: int = 100_000_000, packets: bool = False, limits: dict[str, int] | None = None
) -> Tables: ...
def analyse_together(
    paths: list[str] | list[PathLike[str]],
    *,
    bin_ns: int = 100_000_000,
    packets: bool = False,
    limits: dict[str, int] | None = None,
) -> Tables: ...
