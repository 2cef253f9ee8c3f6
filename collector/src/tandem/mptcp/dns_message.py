"""DNS messages (RFC 1035, §4; AAAA: RFC 3596; OPT: RFC 6891): a query for one name, and the addresses in its answer. Pure.

Only what a stub that asks for A and AAAA needs. Whatever bytes come in, the outcome is a ``Message`` or ``DnsError``.
"""

from __future__ import annotations

import ipaddress
import re
import struct
from dataclasses import dataclass

A, CNAME, OPT, AAAA = 1, 5, 41, 28
NOERROR, SERVFAIL, NXDOMAIN, REFUSED = 0, 2, 3, 5

UDP_PAYLOAD_BYTES = 1232
"""What we say that we take (OPT): fits into IPv6's least MTU, so that no answer is cut into fragments."""

_HEADER = struct.Struct(">6H")
_FIXED = struct.Struct(">HHIH")
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\Z")
_CLASS_IN = 1
_CHAIN = 16


class DnsError(ValueError):
    """The bytes are no DNS message, or the text no name; one line says why."""


@dataclass(frozen=True, slots=True)
class Record:
    """A resource record of type A, AAAA or CNAME. ``value``: the address, or the name it stands for."""

    name: str
    type: int
    ttl_s: int
    value: str


@dataclass(frozen=True, slots=True)
class Message:
    """An answer. Names are in lower case without the last dot."""

    id: int
    response: bool
    truncated: bool
    code: int
    name: str
    type: int
    answers: tuple[Record, ...]


def normal_name(text: str) -> str:
    """``text`` as a host's name in lower case; DnsError unless it is one (ASCII: international names come encoded, RFC 5891)."""
    name = text.strip().rstrip(".").lower()
    if not name or len(name) > 253:
        raise DnsError(f"{text[:80]!r}: a name has 1 to 253 characters")
    for label in name.split("."):
        if not _LABEL.match(label):
            raise DnsError(f"{text[:80]!r}: {label[:70]!r} is no label of a name")
    return name


def query(number: int, name: str, kind: int) -> bytes:
    """A recursive query; ``number`` 0..65535; DnsError for a name that is none."""
    labels = normal_name(name).encode("ascii").split(b".")
    question = b"".join(bytes([len(label)]) + label for label in labels) + b"\0" + struct.pack(">HH", kind, _CLASS_IN)
    return _HEADER.pack(number, 0x0100, 1, 0, 0, 1) + question + b"\0" + _FIXED.pack(OPT, UDP_PAYLOAD_BYTES, 0, 0)


def decode(raw: bytes) -> Message:
    """The header, the one question, and those of the answer section's records that are of use here."""
    if len(raw) < _HEADER.size:
        raise DnsError(f"{len(raw)} bytes are no DNS message")
    number, flags, questions, answers, _, _ = _HEADER.unpack_from(raw)
    if questions != 1:
        raise DnsError(f"{questions} questions, one expected")
    name, at = _name(raw, _HEADER.size)
    if at + 4 > len(raw):
        raise DnsError("ends within the question")
    kind, _class = struct.unpack_from(">HH", raw, at)
    at += 4
    truncated = bool(flags & 0x0200)
    found = []
    for _ in range(answers):
        if truncated and at >= len(raw):
            break  # cut between two records: what is whole counts
        record, at = _record(raw, at)
        if record is not None:
            found.append(record)
    return Message(number, bool(flags & 0x8000), truncated, flags & 15, name, kind, tuple(found))


def addresses(message: Message, name: str, kind: int) -> tuple[str, ...]:
    """The addresses of ``name`` in the answer, through its aliases, in the answer's order and without repetition."""
    aliases = {r.name: r.value for r in message.answers if r.type == CNAME}
    names = [name]
    while names[-1] in aliases and len(names) < _CHAIN:
        names.append(aliases[names[-1]])
    return tuple(dict.fromkeys(r.value for r in message.answers if r.type == kind and r.name in names))


def _record(raw: bytes, at: int) -> tuple[Record | None, int]:
    name, at = _name(raw, at)
    if at + _FIXED.size > len(raw):
        raise DnsError("ends within a record")
    kind, class_, ttl_s, length = _FIXED.unpack_from(raw, at)
    at += _FIXED.size
    end = at + length
    if end > len(raw):
        raise DnsError(f"a record of {length} bytes, {len(raw) - at} are left")
    if class_ != _CLASS_IN:
        return None, end
    if kind == A:
        if length != 4:
            raise DnsError(f"an A record of {length} bytes")
        return Record(name, kind, ttl_s, str(ipaddress.IPv4Address(raw[at:end]))), end
    if kind == AAAA:
        if length != 16:
            raise DnsError(f"an AAAA record of {length} bytes")
        return Record(name, kind, ttl_s, str(ipaddress.IPv6Address(raw[at:end]))), end
    if kind == CNAME:
        target, after = _name(raw, at)
        if after != end:
            raise DnsError("an alias that is longer or shorter than its record")
        return Record(name, kind, ttl_s, target), end
    return None, end


def _name(raw: bytes, at: int) -> tuple[str, int]:
    """The name at ``at``, and where what follows it begins. A pointer must point before the name that it ends (so it cannot loop)."""
    labels: list[str] = []
    after: int | None = None
    limit, length = at, 0
    while True:
        if at >= len(raw):
            raise DnsError("ends within a name")
        size = raw[at]
        if size == 0:
            return ".".join(labels), at + 1 if after is None else after
        if size >= 0xC0:
            if at + 2 > len(raw):
                raise DnsError("ends within a pointer")
            target = (size & 0x3F) << 8 | raw[at + 1]
            if target >= limit:
                raise DnsError("a pointer that does not point back")
            after = at + 2 if after is None else after
            at = limit = target
        elif size > 63:
            raise DnsError(f"a label of type {size >> 6}")
        else:
            label = raw[at + 1 : at + 1 + size]
            length += size + 1
            if len(label) < size or length > 254:
                raise DnsError("ends within a label" if len(label) < size else "a name of more than 255 bytes")
            # A dot within a label, or a byte that is no text, must not look like another name.
            labels.append(label.decode("latin-1").lower().replace(".", "\\046"))
            at += 1 + size
