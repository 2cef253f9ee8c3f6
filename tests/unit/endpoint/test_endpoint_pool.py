"""Several processes serve the connections of sessions that one keeps: exact budgets, no session lost with a process."""

import contextlib
import os
import resource
import signal
import socket
import sqlite3
import sys
import threading
import time
from pathlib import Path

import pytest
from endpoint_on_loopback import Endpoint, head, read_answer, request

from tandem_server.endpoint.listener import Acceptor, listen
from tandem_server.endpoint.pool import Pool, PoolError
from tandem_server.endpoint.sessions import Limits

CONFIG = """
[store]
kind = "running"
url = "http://127.0.0.1:9"
user = "nobody"
password_file = "password"
[limits]
stall_s = 1.0
"""


class Pooled(Endpoint):
    """The endpoint of the other tests, with two processes behind its listener."""

    def __init__(self, registry, folder, limits):
        super().__init__(registry, limits)
        self.acceptor.stop()
        (folder / "server.toml").write_text(CONFIG)
        (folder / "password").write_text("x")
        self.command = [sys.executable, "-m", "tandem_server.cli.measurement_process", str(folder / "server.toml")]
        self.pool = Pool(self.command, 2, self.sessions)
        listener = listen("127.0.0.1", 0)
        self.port = listener.getsockname()[1]
        self.acceptor = Acceptor(listener, self.pool.serve, limits.connections, limits.connections_per_address)

    def stop(self):
        super().stop()
        self.pool.stop()


@pytest.fixture
def pooled(registry, tmp_path):
    started = []

    def start(**limits):
        started.append(Pooled(registry, tmp_path, Limits(**limits)))
        return started[-1]

    yield start
    for one in started:
        one.stop()


def await_true(condition, what):
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


def test_a_session_is_served_by_any_process(pooled):
    here = pooled()
    session = here.session("any")
    for kind in ("mptcp", "tcp") * 2:
        assert len(here.get("/v1/download?bytes=70000", session.id, kind)[2]) == 70_000
    with here.connect() as client:
        client.sendall(head("POST", "/v1/upload?bytes=5", session.id, "Content-Length: 5") + b"12345")
        assert read_answer(client)[2]["bytes"] == 5
    assert here.get("/v1/whoami")[0] == 200
    ended = here.sessions.end(session.id, "probe-1")
    assert [c["end"] for c in ended.summaries] == ["complete"] * 5
    assert ended.used_bytes == 4 * 70_000 + 5
    assert all(c["request_to_last_ack_s"] > 0 for c in ended.summaries[:4])


def test_connections_at_once_are_spread_over_the_processes(pooled):
    here = pooled()
    session = here.session("tcp")
    with contextlib.ExitStack() as stack:
        for _ in range(4):
            client = stack.enter_context(here.connect("tcp"))
            client.sendall(request("/v1/download?seconds=60", session.id))
            client.recv(1000)
        holding = [sockets_of(pid) for pid in here.pool.pids]
    assert len(holding) == 2
    assert min(holding) >= 1 + 2 * 2  # its channel, and two connections with their wires
    here.sessions.end(session.id, "probe-1", wait_s=0.1)


def sockets_of(pid):
    return sum(str(one.readlink()).startswith("socket:") for one in Path(f"/proc/{pid}/fd").iterdir())


def test_refusals_come_through(pooled):
    here = pooled(session_bytes=1000)
    session = here.session()
    assert here.get("/v1/download?bytes=1000", "0" * 32)[0] == 403
    assert here.get("/v1/download?bytes=1001", session.id)[0] == 429
    assert (session.live, session.used_bytes) == (0, 0)


def test_the_budget_is_one_for_all_processes(pooled):
    here = pooled(session_bytes=50_000_000)
    session = here.session("tcp")
    got = []

    def fetch():
        got.append(len(here.get("/v1/download?seconds=20", session.id, "tcp")[2]))

    threads = [threading.Thread(target=fetch) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(got) == session.used_bytes
    # What a part still holds when the others find nothing left stays with its connection, which uses it up; the last one ends exact.
    assert 49_000_000 < sum(got) <= 50_000_000
    assert {c["end"] for c in session.summaries} == {"budget"}


def test_ending_a_session_cuts_what_another_process_serves(pooled):
    here = pooled()
    session = here.session()
    with here.connect() as client:
        client.sendall(request("/v1/download?seconds=60", session.id))
        client.recv(1000)
        started = time.monotonic()
        ended = here.sessions.end(session.id, "probe-1", wait_s=0.3)
        assert time.monotonic() - started < 2
    assert [c["end"] for c in ended.summaries] == ["stopped"]


def test_a_process_that_dies_takes_its_connections_and_no_session(pooled):
    here = pooled()
    session = here.session("tcp")
    with here.connect("tcp") as client:
        client.sendall(request("/v1/download?seconds=60", session.id))
        client.recv(1000)
        before = here.pool.pids
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ConnectionResetError):
            while client.recv(1 << 20):
                pass
        await_true(lambda: session.live == 0, "the connection counted as ended")
    assert session.summaries[0]["end"] == "process died"
    await_true(lambda: len(here.pool.pids) == 2 and not set(here.pool.pids) & set(before), "both started again")
    assert len(here.get("/v1/download?bytes=5000", session.id, "tcp")[2]) == 5000


def test_a_connection_goes_to_another_process_when_one_takes_none(pooled):
    here = pooled()
    session = here.session("tcp")
    # The first in the order: it gets a connection whenever both are idle.
    here.pool._members[0].channel.shutdown(socket.SHUT_WR)
    for _ in range(5):
        assert len(here.get("/v1/download?bytes=5000", session.id, "tcp")[2]) == 5000


def test_a_process_without_descriptors_left_goes_on_with_the_connections_that_it_has(pooled):
    here = pooled()
    session = here.session("tcp")
    before = here.pool.pids
    with here.connect("tcp") as client:
        client.sendall(request("/v1/download?seconds=60", session.id))
        client.recv(1000)
        limits = {pid: resource.prlimit(pid, resource.RLIMIT_NOFILE) for pid in before}
        for pid in before:
            # Room for one more, of the two that come with a connection.
            taken = {int(one.name) for one in Path(f"/proc/{pid}/fd").iterdir()}
            free = next(number for number in range(1000) if number not in taken)
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (free + 1, limits[pid][1]))
        for _ in range(2):
            with here.connect("tcp") as refused, contextlib.suppress(ConnectionError):
                refused.sendall(request("/v1/whoami"))
                assert refused.recv(100) == b""
        assert client.recv(1000)
    for pid in before:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, limits[pid])
    await_true(lambda: session.live == 0, "the first connection's end")
    assert here.get("/v1/whoami")[0] == 200
    assert here.pool.pids == before


def test_a_registry_that_cannot_be_read_is_an_answer(pooled, monkeypatch):
    here = pooled()
    session = here.session("tcp")

    def active(_name):
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(here.registry.probes, "active", active)
    status, _, told = here.get("/v1/download?bytes=5000", session.id, "tcp")
    assert (status, told) == (503, {"error": "the endpoint's registry cannot be read now: disk I/O error"})


def test_stopping_ends_connections_and_processes(pooled):
    here = pooled()
    session = here.session()
    pids = here.pool.pids
    with here.connect() as client:
        client.sendall(request("/v1/download?seconds=60", session.id))
        client.recv(1000)
        started = time.monotonic()
        here.stop()
        assert time.monotonic() - started < 10
    assert session.summaries[0]["end"] == "stopped"
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_process_that_does_not_start_is_told():
    with pytest.raises(PoolError, match="did not start; mend: see its log"):
        Pool([sys.executable, "-c", "pass"], 1, None)
    with pytest.raises(PoolError, match="No such file"):
        Pool(["/nonexistent"], 1, None)
