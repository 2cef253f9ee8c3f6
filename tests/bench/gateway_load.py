"""A thousand probes in one process of little cost: kept TLS connections, a token each, a batch of 20 lines each second.

Started by ``bench_gateway.py``, as is, a second time, what watches the database beside it. Takes one JSON object on stdin, says ``ready``
when all are connected, begins at a line on stdin, prints ``warm`` when it begins to count and a JSON object when it is over. The probes of
one slot of 20 ms share the bytes of their batch (boot, run and values; the gateway sets each one's own ``probe``), so that packing them
costs next to nothing here; nothing else is shared. What is told 503 is kept and sent again.
"""

import contextlib
import json
import random
import select
import socket
import ssl
import sys
import time
from collections import Counter, deque

import gateway_batches

from tandem_server.store import Influx

SLOTS = 50
TEMPLATES = 40


class Probe:
    """One probe's connection, what it has not sent yet and what it waits for."""

    def __init__(self, number, token, context, port):
        self.number, self.port, self.context = number, port, context
        self.head = (
            f"POST /v1/records HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer {token}\r\n"
            "Content-Type: text/plain; charset=utf-8\r\nContent-Encoding: gzip\r\nContent-Length: "
        )
        self.waiting, self.sent_s, self.not_before_s, self.answer = deque(), None, 0.0, b""
        self.connect()

    def connect(self):
        raw = socket.create_connection(("127.0.0.1", self.port), timeout=30)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = self.context.wrap_socket(raw, server_hostname="127.0.0.1")
        self.socket.setblocking(False)

    def send_next(self, now_s):
        if self.sent_s is not None or not self.waiting or now_s < self.not_before_s:
            return
        body = self.waiting[0][1]
        self.socket.send(f"{self.head}{len(body)}\r\n\r\n".encode() + body)
        self.sent_s = now_s

    def receive(self):
        """Status and head of a whole answer, or None."""
        with contextlib.suppress(ssl.SSLWantReadError):
            more = self.socket.recv(65536)
            if not more:
                raise ConnectionError("closed")
            self.answer += more
        head, found, body = self.answer.partition(b"\r\n\r\n")
        if not found:
            return None
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
        if len(body) < int(fields[b"content-length"]):
            return None
        self.answer = b""
        return int(head.split(b" ", 2)[1]), fields, body


class Load:
    def __init__(self, port, ca, tokens, seconds, warm_s):
        context = ssl.create_default_context(cafile=ca)
        self.seconds, self.warm_s = seconds + warm_s, warm_s
        self.probes = [Probe(i, token, context, port) for i, token in enumerate(tokens)]
        self.poll = select.epoll()
        self.by_descriptor = {}
        for probe in self.probes:
            self._watch(probe)
        chance = random.Random(1)
        names = [(f"slot-{slot}", f"b0070000-{slot:04d}", f"run-load-{slot:04d}") for slot in range(SLOTS)]
        self.templates = [[gateway_batches.template(chance, *of) for _ in range(TEMPLATES)] for of in names]
        self.acknowledged = self.rejected = self.packed_bytes = 0
        self._begin_counting()

    def _begin_counting(self):
        self.statuses, self.answer_s, self.lag_s, self.broken, self.most_waiting = Counter(), [], 0.0, 0, 0

    def _watch(self, probe):
        self.by_descriptor[probe.socket.fileno()] = probe
        self.poll.register(probe.socket, select.EPOLLIN)

    def run(self, grace_s=30.0):
        began_s, began_wall_ns = time.monotonic(), time.time_ns()
        slot_s, slots = 1.0 / SLOTS, self.seconds * SLOTS
        at = 0
        while True:
            now_s = time.monotonic()
            while at < slots and began_s + at * slot_s <= now_s:
                self.lag_s = max(self.lag_s, now_s - began_s - at * slot_s)
                if at == self.warm_s * SLOTS:
                    print("warm", flush=True)
                    self._begin_counting()
                self._begin_slot(at, now_s)
                at += 1
                now_s = time.monotonic()
            held = [p for p in self.probes if p.waiting] if at % 5 == 0 or at == slots else ()
            for probe in held:
                self._send(probe, now_s)
            if at == slots and (not held or now_s > began_s + self.seconds + grace_s):
                break
            until_s = began_s + at * slot_s if at < slots else now_s + 0.02
            for descriptor, _ in self.poll.poll(max(0.0, until_s - time.monotonic())):
                self._answered(self.by_descriptor[descriptor])
        return {
            "began_utc_ns": began_wall_ns,
            "took_s": time.monotonic() - began_s,
            "statuses": dict(self.statuses),
            "acknowledged": self.acknowledged,
            "rejected": self.rejected,
            "unsent": sum(len(p.waiting) for p in self.probes) * gateway_batches.LINES,
            "broken_connections": self.broken,
            "most_behind_s": self.lag_s,
            "most_batches_waiting": self.most_waiting,
            "bytes_a_batch": self.packed_bytes / max(1, slots),
            "answer_ms": shares([1000 * s for s in self.answer_s]),
        }

    def _begin_slot(self, at, now_s):
        second, slot = divmod(at, SLOTS)
        filled = self.templates[slot][second % TEMPLATES] % gateway_batches.numbers(
            second * gateway_batches.LINES + 1, time.monotonic_ns(), time.time_ns()
        )
        body = gateway_batches.gzipped(filled)
        self.packed_bytes += len(body)
        for probe in self.probes[slot::SLOTS]:
            probe.waiting.append((second, body))
            self.most_waiting = max(self.most_waiting, len(probe.waiting))
            self._send(probe, now_s)

    def _send(self, probe, now_s):
        try:
            probe.send_next(now_s)
        except (OSError, ConnectionError):
            self._again(probe)

    def _answered(self, probe):
        try:
            answer = probe.receive()
        except (OSError, ConnectionError):
            self._again(probe)
            return
        if answer is None:
            return
        status, fields, body = answer
        now_s = time.monotonic()
        self.statuses[status] += 1
        self.answer_s.append(now_s - probe.sent_s)
        probe.sent_s = None
        if status == 200:
            told = json.loads(body)
            self.acknowledged += told["accepted"]
            self.rejected += len(told["rejected"])
            probe.waiting.popleft()
        else:
            probe.not_before_s = now_s + float(fields.get(b"retry-after", b"1"))
        self._send(probe, now_s)

    def _again(self, probe):
        """A broken connection is made anew; what was not answered is sent again, as the exporter does."""
        self.broken += 1
        del self.by_descriptor[probe.socket.fileno()]
        probe.socket.close()
        probe.sent_s, probe.answer, probe.not_before_s = None, b"", time.monotonic() + 0.5
        probe.connect()
        self._watch(probe)


def shares(values):
    """The values below which half of them lie, and 99 %, and all; None of none."""
    ordered = sorted(values)
    last, parts = len(ordered) - 1, {"p50": 0.5, "p99": 0.99, "most": 1.0}
    return {
        name: round(ordered[min(last, int(part * len(ordered)))], 2) if ordered else None
        for name, part in parts.items()
    }


def watch(asked):
    """When can a record be read? Asks the database for the newest records of marked probes, again and again, and notes when each was first
    seen. A figure is at most one period and one query too large, never too small."""
    store = Influx(asked["url"], "tandem", asked["user"], asked["password"])
    probes = " OR ".join(f"\"probe\" = '{name}'" for name in asked["probes"])
    newest = dict.fromkeys(asked["probes"], time.time_ns())
    newest_ms, queries, slowest_s = [], 0, 0.0
    print("ready", flush=True)
    while True:
        began_s = time.monotonic()
        since = min(newest.values())
        answer = store.query(f'SELECT "seq" FROM "connection" WHERE time > {since} AND ({probes}) GROUP BY "probe"')  # noqa: S608
        seen_ns = time.time_ns()
        queries += 1
        slowest_s = max(slowest_s, time.monotonic() - began_s)
        for series in answer:
            name = series.tags["probe"]
            fresh = sorted(at for at in series.column("time") if at > newest[name])
            if not fresh:
                continue
            # A batch's records lie 50 ms apart, two batches' about a second: each batch counts by its newest.
            ends = [
                at
                for at, after in zip(fresh, [*fresh[1:], None], strict=True)
                if after is None or after - at > 500_000_000
            ]
            newest_ms += [(seen_ns - at) / 1e6 for at in ends]
            newest[name] = max([newest[name], *fresh])
        left_s = asked["period_s"] - (time.monotonic() - began_s)
        if select.select([sys.stdin], [], [], max(0.0, left_s))[0]:
            break
    print(json.dumps({"newest_ms": newest_ms, "queries": queries, "slowest_query_s": slowest_s}), flush=True)


def main():
    asked = json.loads(sys.stdin.readline())
    if "period_s" in asked:
        watch(asked)
        return
    load = Load(asked["port"], asked["ca"], asked["tokens"], asked["seconds"], asked["warm_s"])
    print("ready", flush=True)
    sys.stdin.readline()
    print(json.dumps(load.run()), flush=True)


if __name__ == "__main__":
    main()
