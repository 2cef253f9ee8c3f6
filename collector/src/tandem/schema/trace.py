"""What probe and server exchange about a file that goes up in chunks: names, hashes, offers, receipts (docs/reference/probe-api.md).

A file travels as a *stream*: the file itself (``identity``), or each of its chunks deflated on its own (``gzip``), so that the stream
is a gzip file of many members and can be made again from any chunk on. Offsets and hashes of chunks are those of the stream; the hash
that names the trace is that of the file, as a run's manifest has it.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import asdict, dataclass
from typing import Any, Literal

from tandem.schema.manifest import PLAIN_NAME

FORMAT = "tandem-trace/1"
RECEIPT_FORMAT = "tandem-receipt/1"

CHUNK_BYTES = 256 * 1024
"""Of the file, in one chunk, while ``_FEW_CHUNKS`` are enough; the last one is shorter."""
_FEW_CHUNKS = 4096
LEAST_CHUNK_BYTES, MOST_CHUNK_BYTES = 4 * 1024, 4 * 1024 * 1024
MOST_CHUNKS = 16_384
MOST_BYTES = MOST_CHUNKS * MOST_CHUNK_BYTES

SERVER_CAPTURES = "captures/server/"
"""Among a probe's names those of the captures that the server made of its runs; no probe may offer such a name."""

Encoding = Literal["identity", "gzip"]

_NAME = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}/){0,4}[A-Za-z0-9_][A-Za-z0-9_.-]{0,149}\Z")
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")


class TraceError(ValueError):
    """What came is no offer or no receipt; one line says what is wrong."""


def is_name(name: object) -> bool:
    """Whether ``name`` may be a trace's: up to five parts with ``/`` between, none empty, hidden, or ``..``; ASCII, at most 250."""
    return isinstance(name, str) and len(name) <= 250 and _NAME.match(name) is not None


def server_capture(run: str, session: str) -> str:
    """The name of the server's capture of one session of ``run``."""
    return f"{SERVER_CAPTURES}{run}-{session}.pcap"


def is_sha256(value: object) -> bool:
    """64 lower-case hexadecimal digits."""
    return isinstance(value, str) and _SHA256.match(value) is not None


@dataclass(frozen=True, slots=True)
class Chunk:
    """``bytes`` and ``sha256`` of one chunk as it is in the stream."""

    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Offer:
    """A file that a probe has. ``name``: as in the manifest, relative to the probe's folder; ``run``: None for what is of no single
    run; ``bytes`` and ``sha256`` of the file; ``chunk_bytes`` of the file in each chunk but the last."""

    name: str
    run: str | None
    bytes: int
    sha256: str
    encoding: Encoding
    chunk_bytes: int
    chunks: tuple[Chunk, ...]

    @property
    def stream_bytes(self) -> int:
        return sum(chunk.bytes for chunk in self.chunks)

    def as_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "name": self.name,
            "run": self.run,
            "bytes": self.bytes,
            "sha256": self.sha256,
            "encoding": self.encoding,
            "chunk_bytes": self.chunk_bytes,
            "chunks": [[chunk.bytes, chunk.sha256] for chunk in self.chunks],
        }


@dataclass(frozen=True, slots=True)
class Receipt:
    """The server has the file, whole and verified, and will not change it. Only now may the probe delete it."""

    probe: str
    name: str
    run: str | None
    bytes: int
    sha256: str
    received_utc_ns: int

    def as_json(self) -> dict[str, Any]:
        return {"format": RECEIPT_FORMAT, **asdict(self)}


def chunk_bytes_of(total: int) -> int:
    """The size of chunks for a file of ``total`` bytes: its offer stays short."""
    size = CHUNK_BYTES
    while size < MOST_CHUNK_BYTES and size * _FEW_CHUNKS < total:
        size *= 2
    return size


def encoded(part: bytes, encoding: Encoding) -> bytes:
    """One chunk of the file as it is in the stream; the same bytes each time that it is made by the same zlib."""
    if encoding == "identity":
        return part
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    return packer.compress(part) + packer.flush()


def read_offer(document: object) -> Offer:
    """The offer in a JSON document; TraceError names the first fault."""
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise TraceError(f"no {FORMAT}")
    name, run, total, digest = document.get("name"), document.get("run"), document.get("bytes"), document.get("sha256")
    encoding, size = document.get("encoding"), document.get("chunk_bytes")
    if not is_name(name):
        raise TraceError("'name' is none of a trace: parts of letters, digits, '_', '.', '-', with '/' between")
    if str(name).startswith(SERVER_CAPTURES):
        raise TraceError(f"'name': what begins with {SERVER_CAPTURES} is the server's own")
    if not (run is None or (isinstance(run, str) and PLAIN_NAME.match(run))):
        raise TraceError("'run' is no run's id")
    if type(total) is not int or not 0 <= total <= MOST_BYTES:
        raise TraceError(f"'bytes' is no count up to {MOST_BYTES}")
    if not is_sha256(digest):
        raise TraceError("'sha256' is no hash")
    if encoding not in ("identity", "gzip"):
        raise TraceError("'encoding' is neither identity nor gzip")
    if type(size) is not int or not LEAST_CHUNK_BYTES <= size <= MOST_CHUNK_BYTES:
        raise TraceError(f"'chunk_bytes' is not between {LEAST_CHUNK_BYTES} and {MOST_CHUNK_BYTES}")
    chunks = _chunks(document.get("chunks"), total, encoding, size)
    return Offer(str(name), run, total, str(digest), encoding, size, chunks)


def _chunks(document: object, total: int, encoding: str, size: int) -> tuple[Chunk, ...]:
    count = -(-total // size)
    if count > MOST_CHUNKS:
        raise TraceError(f"more than {MOST_CHUNKS} chunks; hint: a larger chunk_bytes")
    if not isinstance(document, list) or len(document) != count:
        raise TraceError(f"'chunks' does not list {count} chunks, as 'bytes' and 'chunk_bytes' require")
    chunks = []
    for number, row in enumerate(document):
        if not (isinstance(row, list) and len(row) == 2 and type(row[0]) is int and is_sha256(row[1])):
            raise TraceError(f"chunk {number} is no pair of bytes and hash")
        plain = size if number < count - 1 else total - size * (count - 1)
        # What deflate cannot make smaller grows by 5 bytes a 16 KiB and the member's frame.
        most = plain if encoding == "identity" else plain + plain // 1000 + 64
        if not 1 <= row[0] <= most or (encoding == "identity" and row[0] != plain):
            raise TraceError(f"chunk {number} has {row[0]} bytes, which {plain} of the file cannot be")
        chunks.append(Chunk(row[0], row[1]))
    return tuple(chunks)


def read_receipt(document: object) -> Receipt:
    """The receipt in a JSON document; TraceError when it is none. Whether it is of the file that was offered is the caller's to see."""
    if not isinstance(document, dict) or document.get("format") != RECEIPT_FORMAT:
        raise TraceError(f"no {RECEIPT_FORMAT}")
    probe, name, run, total = document.get("probe"), document.get("name"), document.get("run"), document.get("bytes")
    digest, received = document.get("sha256"), document.get("received_utc_ns")
    if not (isinstance(probe, str) and is_name(name) and is_sha256(digest)):
        raise TraceError("a receipt without probe, name or hash")
    if not (run is None or (isinstance(run, str) and PLAIN_NAME.match(run))):
        raise TraceError("a receipt whose 'run' is no run's id")
    if type(total) is not int or not 0 <= total <= MOST_BYTES or type(received) is not int or received < 0:
        raise TraceError("a receipt whose 'bytes' or 'received_utc_ns' is no count")
    return Receipt(probe, str(name), run, total, str(digest), received)
