"""Ask the resolvers of one path for many names: UDP sockets bound to its interface, a bounded rate, each question tried again."""

from __future__ import annotations

import random
import select
import socket
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tandem.mptcp import dns_message as dns

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
    status: str = "timeout"


@dataclass(slots=True)
class Asker:
    """One path's. ``rate``: questions per second; ``timeout_s`` for each of ``tries``, which go to the resolvers in turn."""

    interface: str
    resolvers: Sequence[str]
    rate: float
    timeout_s: float
    tries: int
    port: int = 53
    sent_bytes: int = 0
    received_bytes: int = 0
    _numbers: random.Random = field(default_factory=random.SystemRandom)  # numbers that others cannot guess: RFC 5452

    def ask(
        self, names: Sequence[str], kinds: Sequence[int], stopped: Callable[[], bool]
    ) -> dict[tuple[str, int], Answer]:
        """Every name for every kind (``dns_message.A``, ``AAAA``); what is missing when stopped is left out."""
        answers: dict[tuple[str, int], Answer] = {}
        waiting = deque(_Question(name, kind) for name in names for kind in kinds)
        sockets = self._open()
        if not sockets:
            return {(q.name, q.kind): Answer("not sent") for q in waiting}
        pending: dict[int, _Question] = {}
        poll = select.poll()
        for made in sockets:
            poll.register(made, select.POLLIN)
        by_descriptor = {made.fileno(): (index, made) for index, made in enumerate(sockets)}
        next_ns = time.monotonic_ns()
        try:
            while (waiting or pending) and not stopped():
                now = time.monotonic_ns()
                while waiting and len(pending) < _IN_FLIGHT and now >= next_ns:
                    self._send(waiting.popleft(), sockets, pending, waiting, answers)
                    next_ns = max(next_ns, now - 20_000_000) + int(1e9 / self.rate)
                oldest = min((q.sent_ns for q in pending.values()), default=now)
                due = oldest + int(self.timeout_s * 1e9)
                wake = min(due, next_ns) if waiting and len(pending) < _IN_FLIGHT else due
                for descriptor, _ in poll.poll(min(200.0, max(0.0, (wake - time.monotonic_ns()) / 1e6 + 0.5))):
                    self._receive(*by_descriptor[descriptor], pending, waiting, answers)
                self._expire(pending, waiting, answers)
        finally:
            for made in sockets:
                made.close()
        return answers

    def _open(self) -> list[socket.socket]:
        """One connected socket a resolver, so that answers come from it alone; those that cannot be reached at all are left out."""
        made = list[socket.socket]()
        for address in self.resolvers:
            one = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
            try:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, self.interface.encode() + b"\0")
                one.setblocking(False)
                one.connect((address, self.port))
            except OSError:
                one.close()  # no route or no interface: counted as "not sent" when it is so for all
                continue
            made.append(one)
        return made

    def _send(
        self,
        question: _Question,
        sockets: list[socket.socket],
        pending: dict[int, _Question],
        waiting: deque[_Question],
        answers: dict[tuple[str, int], Answer],
    ) -> None:
        number = self._numbers.randrange(65536)
        while number in pending:
            number = self._numbers.randrange(65536)
        question.number, question.server = number, question.tries % len(sockets)
        question.tries += 1
        question.sent_ns = time.monotonic_ns()
        raw = dns.query(number, question.name, question.kind)
        try:
            self.sent_bytes += sockets[question.server].send(raw)
        except OSError:  # refused by the last answer (ICMP), or the path is down
            question.status = "not sent"
            self._again(question, waiting, answers)
            return
        pending[number] = question

    def _receive(
        self,
        index: int,
        made: socket.socket,
        pending: dict[int, _Question],
        waiting: deque[_Question],
        answers: dict[tuple[str, int], Answer],
    ) -> None:
        try:
            raw = made.recv(_LONGEST)
        except BlockingIOError:
            return
        except OSError:
            for number in [n for n, q in pending.items() if q.server == index]:
                question = pending.pop(number)
                question.status = "refused"  # ICMP: nobody listens there
                self._again(question, waiting, answers)
            return
        now = time.monotonic_ns()
        self.received_bytes += len(raw)
        number = int.from_bytes(raw[:2], "big")
        asked = pending.get(number)
        if asked is None or asked.server != index or len(raw) < 2:
            return  # too late, or never asked
        try:
            message = dns.decode(raw)
        except dns.DnsError:
            asked.status = "malformed"
            self._again(pending.pop(number), waiting, answers)
            return
        if not message.response or (message.name, message.type) != (asked.name, asked.kind):
            return  # not ours: the right one may still come
        del pending[number]
        asked.status = _STATUS.get(message.code, f"code {message.code}")
        if asked.status not in ("ok", "nxdomain") and asked.tries < self.tries:
            waiting.append(asked)
            return
        found = dns.addresses(message, asked.name, asked.kind)
        ms = (now - asked.sent_ns) / 1e6
        answers[asked.name, asked.kind] = Answer(asked.status, found, ms, asked.tries, message.truncated)

    def _expire(
        self, pending: dict[int, _Question], waiting: deque[_Question], answers: dict[tuple[str, int], Answer]
    ) -> None:
        before = time.monotonic_ns() - int(self.timeout_s * 1e9)
        for number in [n for n, q in pending.items() if q.sent_ns <= before]:
            question = pending.pop(number)
            question.status = "timeout"
            self._again(question, waiting, answers)

    def _again(self, question: _Question, waiting: deque[_Question], answers: dict[tuple[str, int], Answer]) -> None:
        if question.tries < self.tries:
            waiting.append(question)
        else:
            answers[question.name, question.kind] = Answer(question.status, tries=question.tries)


_STATUS = {dns.NOERROR: "ok", dns.NXDOMAIN: "nxdomain", dns.SERVFAIL: "servfail", dns.REFUSED: "refused"}
