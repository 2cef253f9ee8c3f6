"""DNS: a query for one name and the addresses in its answer, and the resolvers of one path asked for many names.

Messages are pure (RFC 1035, §4; AAAA: RFC 3596; OPT: RFC 6891), only what a stub that asks for A and AAAA needs: whatever bytes come in,
the outcome is a ``Message`` or ``DnsError``. ``Asker`` has UDP sockets bound to the path's interface, a bounded rate, and tries each
question again.
"""

from __future__ import annotations

import ipaddress
import random
import re
import select
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Sequence
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
    kind, class_, _ttl_s, length = _FIXED.unpack_from(raw, at)
    at += _FIXED.size
    end = at + length
    if end > len(raw):
        raise DnsError(f"a record of {length} bytes, {len(raw) - at} are left")
    if class_ != _CLASS_IN:
        return None, end
    if kind == A:
        if length != 4:
            raise DnsError(f"an A record of {length} bytes")
        return Record(name, kind, str(ipaddress.IPv4Address(raw[at:end]))), end
    if kind == AAAA:
        if length != 16:
            raise DnsError(f"an AAAA record of {length} bytes")
        return Record(name, kind, str(ipaddress.IPv6Address(raw[at:end]))), end
    if kind == CNAME:
        target, after = _name(raw, at)
        if after != end:
            raise DnsError("an alias that is longer or shorter than its record")
        return Record(name, kind, target), end
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


_IN_FLIGHT = 256
_LONGEST = 65535


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one question. ``status``: ``ok`` (addresses may still be none), ``nxdomain``, ``servfail``, ``refused``, ``code N``,
    ``timeout``, ``malformed``, ``not sent``. ``ms``: question to answer, the last try's."""

    status: str
    addresses: tuple[str, ...] = ()
    ms: float | None = None
    tries: int = 0
    truncated: bool = False


@dataclass(slots=True)
class _Question:
    name: str
    kind: int
    tries: int = 0
    number: int = -1
    server: int = 0
    sent_ns: int = 0


class Asker:
    """One path's, for one call of ``ask`` at a time. ``rate``: questions per second; ``timeout_s`` for each of ``tries``, which go to the
    resolvers in turn."""

    def __init__(
        self, interface: str, resolvers: Sequence[str], rate: float, timeout_s: float, tries: int, port: int = 53
    ) -> None:
        self._interface, self._resolvers, self._port = interface, resolvers, port
        self._rate, self._timeout_ns, self._tries = rate, int(timeout_s * 1e9), tries
        self._numbers = random.SystemRandom()  # numbers that others cannot guess: RFC 5452
        self._sockets: list[socket.socket] = []
        self._waiting: deque[_Question] = deque()
        self._pending: dict[int, _Question] = {}
        self._answers: dict[tuple[str, int], Answer] = {}
        self.sent_bytes = self.received_bytes = 0

    def ask(
        self, names: Sequence[str], kinds: Sequence[int], stopped: Callable[[], bool]
    ) -> dict[tuple[str, int], Answer]:
        """Every name for every kind (``A``, ``AAAA``); what is missing when stopped is left out."""
        self._waiting = deque(_Question(name, kind) for name in names for kind in kinds)
        self._pending, self._answers = {}, {}
        self._sockets = self._open()
        if not self._sockets:
            return {(q.name, q.kind): Answer("not sent") for q in self._waiting}
        poll = select.poll()
        for made in self._sockets:
            poll.register(made, select.POLLIN)
        by_descriptor = {made.fileno(): index for index, made in enumerate(self._sockets)}
        next_ns = time.monotonic_ns()
        try:
            while (self._waiting or self._pending) and not stopped():
                now = time.monotonic_ns()
                while self._may_send and now >= next_ns:
                    self._send(self._waiting.popleft())
                    next_ns = max(next_ns, now - 20_000_000) + int(1e9 / self._rate)
                oldest = min((q.sent_ns for q in self._pending.values()), default=now)
                due = oldest + self._timeout_ns
                wake = min(due, next_ns) if self._may_send else due
                for descriptor, _ in poll.poll(min(200.0, max(0.0, (wake - time.monotonic_ns()) / 1e6 + 0.5))):
                    self._receive(by_descriptor[descriptor])
                self._expire()
        finally:
            for made in self._sockets:
                made.close()
        return self._answers

    @property
    def _may_send(self) -> bool:
        return bool(self._waiting) and len(self._pending) < _IN_FLIGHT

    def _open(self) -> list[socket.socket]:
        """One connected socket a resolver, so that answers come from it alone; those that cannot be reached at all are left out."""
        made = list[socket.socket]()
        for address in self._resolvers:
            one = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
            try:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, self._interface.encode() + b"\0")
                one.setblocking(False)
                one.connect((address, self._port))
            except OSError:
                one.close()  # no route or no interface: counted as "not sent" when it is so for all
                continue
            made.append(one)
        return made

    def _send(self, question: _Question) -> None:
        number = self._numbers.randrange(65536)
        while number in self._pending:
            number = self._numbers.randrange(65536)
        question.number, question.server = number, question.tries % len(self._sockets)
        question.tries += 1
        question.sent_ns = time.monotonic_ns()
        raw = query(number, question.name, question.kind)
        try:
            self.sent_bytes += self._sockets[question.server].send(raw)
        except OSError:  # refused by the last answer (ICMP), or the path is down
            self._again(question, "not sent")
            return
        self._pending[number] = question

    def _receive(self, server: int) -> None:
        try:
            raw = self._sockets[server].recv(_LONGEST)
        except BlockingIOError:
            return
        except OSError:
            for number in [n for n, q in self._pending.items() if q.server == server]:
                self._again(self._pending.pop(number), "refused")  # ICMP: nobody listens there
            return
        now = time.monotonic_ns()
        self.received_bytes += len(raw)
        number = int.from_bytes(raw[:2], "big")
        question = self._pending.get(number)
        if question is None or question.server != server or len(raw) < 2:
            return  # too late, or never sent
        try:
            message = decode(raw)
        except DnsError:
            self._again(self._pending.pop(number), "malformed")
            return
        if not message.response or (message.name, message.type) != (question.name, question.kind):
            return  # not ours: the right one may still come
        del self._pending[number]
        status = _STATUS.get(message.code, f"code {message.code}")
        if status not in ("ok", "nxdomain") and question.tries < self._tries:
            self._waiting.append(question)
            return
        found = addresses(message, question.name, question.kind)
        ms = (now - question.sent_ns) / 1e6
        self._answers[question.name, question.kind] = Answer(status, found, ms, question.tries, message.truncated)

    def _expire(self) -> None:
        before = time.monotonic_ns() - self._timeout_ns
        for number in [n for n, q in self._pending.items() if q.sent_ns <= before]:
            self._again(self._pending.pop(number), "timeout")

    def _again(self, question: _Question, status: str) -> None:
        """Another try, or ``status`` when it was the last."""
        if question.tries < self._tries:
            self._waiting.append(question)
        else:
            self._answers[question.name, question.kind] = Answer(status, tries=question.tries)


_STATUS = {NOERROR: "ok", NXDOMAIN: "nxdomain", SERVFAIL: "servfail", REFUSED: "refused"}
