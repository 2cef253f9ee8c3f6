"""Many sessions at once against a whole server, over its loopback: all downloads at full rate, then all at 1 Mbit/s."""

from __future__ import annotations

import http.client
import json
import selectors
import socket
import ssl
import statistics
import threading
import time
from pathlib import Path
from typing import Any

from processes import cpu_s

from support.two_paths import Space
from tandem.experiment.control import Session
from tandem.mptcp_abi import IPPROTO_MPTCP

CONTROL, MEASUREMENT = 8444, 8480
FULL_BYTES = 2_000_000
PACED_BIT_PER_S = 1e6
PACED_S = 10.0
_BLOCK = 65536


class Control:
    """The control channel over one kept connection, for one thread."""

    def __init__(self, folder: Path) -> None:
        context = ssl.create_default_context(cafile=folder / "tls/ca.pem")
        self._connection = http.client.HTTPSConnection("127.0.0.1", CONTROL, context=context)
        self._login = {"Authorization": f"Bearer {(folder / 'token').read_text().strip()}"}

    def ask(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        raw = None if body is None else json.dumps(body)
        self._connection.request(method, path, raw, self._login)
        answer = self._connection.getresponse()
        told: dict[str, Any] = json.loads(answer.read())
        if answer.status not in (200, 201):
            raise SystemExit(f"{method} {path}: {answer.status} {told}")
        return told

    def close(self) -> None:
        self._connection.close()


class Reader:
    """One client: reads at most ``bit_per_s`` when told."""

    def __init__(self, kind: str, session: Session, query: str, bit_per_s: float | None) -> None:
        protocol = IPPROTO_MPTCP if kind == "mptcp" else socket.IPPROTO_TCP
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)
        if bit_per_s is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32_768)
        self.socket.connect(("127.0.0.1", MEASUREMENT))
        target = f"/v1/download?{query}"
        self.socket.sendall(
            f"GET {target} HTTP/1.1\r\nHost: x\r\nX-Tandem-Session: {session.claim(target)}\r\n\r\n".encode()
        )
        self.socket.setblocking(False)
        self.bytes, self.started_s, self.ended_s = 0, time.monotonic(), 0.0
        self.first_s: float | None = None
        self._bit_per_s = bit_per_s

    def may_read(self, now_s: float) -> bool:
        return self._bit_per_s is None or self.bytes * 8 < self._bit_per_s * (now_s - self.started_s)


def family(pid: int) -> dict[str, list[int]]:
    """The endpoint's first process and its others, below the process ``pid`` that runs the whole server."""
    below = lambda p: [int(x) for x in Path(f"/proc/{p}/task/{p}/children").read_text().split()]  # noqa: E731  a word for three uses
    for child in below(pid):
        if b"endpoint" in Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0"):
            return {"first": [child], "others": below(child)}
    raise SystemExit("no endpoint there")


def fetch(folder: Path, count: int, query: str, bit_per_s: float | None, stop_s: float | None) -> dict[str, Any]:
    """``count`` sessions, half of them Multipath TCP, opened over eight control connections, then all read at once."""
    kinds = ["mptcp" if i % 2 else "tcp" for i in range(count)]
    sessions: dict[int, Session] = {}
    ended: list[dict[str, Any]] = [{}] * count
    name, _, value = query.partition("=")
    asked = {name: float(value) if name == "seconds" else int(value)}

    def over_eight(work: Any) -> float:
        def some(first: int) -> None:
            control = Control(folder)
            for i in range(first, count, 8):
                work(control, i)
            control.close()

        begun = time.monotonic()
        threads = [threading.Thread(target=some, args=(first,)) for first in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return time.monotonic() - begun

    def begin(control: Control, i: int) -> None:
        body = {"run": f"many-{i}", "kind": kinds[i], "path": "a", **asked}
        told = control.ask("POST", "/v1/sessions", body)
        sessions[i] = Session(told["session"], bytes.fromhex(told["key"]), "a")

    def finish(control: Control, i: int) -> None:
        ended[i] = control.ask("DELETE", f"/v1/sessions/{sessions[i].id}")

    opening_s = over_eight(begin)
    begun = time.monotonic()
    readers = [Reader(kind, sessions[i], query, bit_per_s) for i, kind in enumerate(kinds)]
    alive, most = set(readers), 0
    buffer = bytearray(_BLOCK)
    with selectors.DefaultSelector() as selector:
        for reader in readers:
            selector.register(reader.socket, selectors.EVENT_READ, reader)
        while alive:
            now_s = time.monotonic()
            if stop_s is not None:
                # Each by its own clock from its own first byte, as the probe's downloads end. By one clock for all, those whose turn
                # came late on a busy machine would close before the endpoint's time for them is over, and be told as gone.
                for reader in [r for r in alive if r.first_s is not None and now_s - r.first_s > stop_s]:
                    selector.unregister(reader.socket)
                    reader.socket.close()
                    alive.discard(reader)
            idle = True
            for key, _ in selector.select(1.0):
                reader = key.data
                if not reader.may_read(now_s):
                    continue
                idle = False
                count_read = reader.socket.recv_into(buffer)
                reader.bytes += count_read
                reader.first_s = reader.first_s or now_s
                if not count_read:
                    reader.ended_s = time.monotonic()
                    selector.unregister(reader.socket)
                    alive.discard(reader)
            most = max(most, len(alive))
            if idle:
                time.sleep(0.005)
    wall = time.monotonic() - begun
    for reader in readers:
        reader.socket.close()
    closing_s = over_eight(finish)
    connections = [c for one in ended for c in one["connections"]]
    took = [r.ended_s - r.started_s for r in readers if r.ended_s]
    return {
        "opened_a_second": round(count / opening_s, 1),
        "closed_a_second": round(count / closing_s, 1),
        "at_once": most,
        "ended": {end: sum(c["end"] == end for c in connections) for end in {c["end"] for c in connections}},
        "goodput_mbit_per_s": round(sum(r.bytes for r in readers) * 8 / wall / 1e6, 1),
        "bytes": sum(r.bytes for r in readers),
        "wall_s": round(wall, 2),
        "took_s": [round(f(took), 2) for f in (min, statistics.median, max)] if took else None,
    }


def many_sessions(server: Space, folder: Path, supervisor: int, count: int) -> dict[str, Any]:
    """Figures of both rounds, with the endpoint's CPU shares (1 is one core)."""
    figures = {}
    for label, query, rate, stop_s in (
        ("full_rate", f"bytes={FULL_BYTES}", None, None),
        ("paced", f"seconds={PACED_S}", PACED_BIT_PER_S, PACED_S),
    ):
        pids = family(supervisor)
        before = {what: sum(map(cpu_s, each)) for what, each in pids.items()}
        begun = time.monotonic()
        figure = server.inside(lambda query=query, rate=rate, stop_s=stop_s: fetch(folder, count, query, rate, stop_s))
        spent = time.monotonic() - begun
        figure["cpu_share"] = {
            what: round((sum(map(cpu_s, each)) - before[what]) / spent, 3) for what, each in pids.items()
        }
        figures[label] = figure
    return figures
