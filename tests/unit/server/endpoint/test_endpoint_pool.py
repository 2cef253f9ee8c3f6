"""Several processes serve the connections of sessions that one keeps: exact budgets, no session lost with a process."""

import contextlib
import http.server
import os
import resource
import signal
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from endpoint_on_loopback import Endpoint, request, wait_until

from tandem_server.endpoint.listener import Acceptor, listen
from tandem_server.endpoint.pool import Pool, PoolError
from tandem_server.endpoint.sessions import Limits
from tandem_server.registry import Registry


class TakesAll(http.server.BaseHTTPRequestHandler):
    """A database for the processes' records, so that none of them waits for it at its end."""

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


class Pooled(Endpoint):
    def __init__(self, registry, folder):
        limits = Limits(sessions_per_probe=100)
        super().__init__(registry, limits)
        self.acceptor.stop()
        self.database = http.server.ThreadingHTTPServer(("127.0.0.1", 0), TakesAll)
        threading.Thread(target=self.database.serve_forever, args=(0.05,)).start()
        (folder / "server.toml").write_text(
            f'[store]\nkind = "running"\nurl = "http://127.0.0.1:{self.database.server_port}"\n'
            'user = "nobody"\npassword_file = "password"\n'
        )
        (folder / "password").write_text("x")
        command = [sys.executable, "-m", "tandem_server.cli.measurement_process", str(folder / "server.toml")]
        self.pool = Pool(command, 2, self.sessions)
        listener = listen("127.0.0.1", 0)
        self.port = listener.getsockname()[1]
        self.acceptor = Acceptor(listener, self.pool.serve, self.limiter)

    @property
    def members(self):
        return list(self.pool._members.values())

    @property
    def pids(self):
        return [member.process.pid for member in self.members]

    def idle(self):
        return [member.connections for member in self.members] == [0, 0]

    def stop(self):
        super().stop()
        self.pool.stop()
        self.database.shutdown()
        self.database.server_close()


@contextlib.contextmanager
def new_pool(folder):
    with Registry(folder / "registry.sqlite") as registry:
        made = Pooled(registry, folder)
        try:
            yield made
        finally:
            made.stop()


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with new_pool(tmp_path_factory.mktemp("pool")) as made:
        yield made


@pytest.fixture
def here(shared):
    wait_until(shared.idle)
    return shared


@pytest.fixture
def fresh(tmp_path):
    with new_pool(tmp_path) as made:
        yield made


def test_connections_at_once_are_spread_over_the_processes(here):
    session = here.session("tcp")
    with contextlib.ExitStack() as stack:
        for _ in range(4):
            stack.enter_context(here.downloading(session, kind="tcp"))
        assert [member.connections for member in here.members] == [2, 2]


def test_the_budget_is_one_for_all_processes(here):
    session = here.session("tcp", payload_bytes=50_000_000)
    with ThreadPoolExecutor(3) as threads:
        asked = [threads.submit(here.get, "/v1/download?seconds=3000", session.id, "tcp") for _ in range(3)]
        got = [len(one.result()[2]) for one in asked]
    wait_until(lambda: not session.live)
    assert sum(got) == session.used_bytes
    # What a part still holds when the others find nothing left stays with its connection, which uses it up; the last one ends exact.
    assert 49_000_000 < sum(got) <= 50_000_000
    assert {c["end"] for c in session.summaries} == {"budget"}


def test_ending_a_session_cuts_what_another_process_serves_and_refusals_come_through(here):
    session = here.session(payload_bytes=1000)
    assert here.get("/v1/download?bytes=1000", "0" * 32)[0] == 403
    assert here.get("/v1/download?bytes=1001", session.id)[0] == 429
    assert (session.live, session.used_bytes) == (0, 0)
    session = here.session()
    with here.downloading(session):
        here.sessions.end(session.id, "probe-1", wait_s=0.1)
        wait_until(lambda: session.summaries)
    assert [c["end"] for c in session.summaries] == ["stopped"]


def test_a_process_that_dies_takes_its_connections_and_no_session(here):
    session = here.session("tcp")
    with here.downloading(session, kind="tcp") as client:
        before = here.pids
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ConnectionResetError):
            while client.recv(1 << 20):
                pass
        wait_until(lambda: session.live == 0, "the connection counted as ended")
    assert session.summaries[0]["end"] == "process died"
    wait_until(lambda: len(here.pids) == 2 and not set(here.pids) & set(before), "both started again")
    assert len(here.get("/v1/download?bytes=5000", session.id, "tcp")[2]) == 5000


def test_a_process_without_descriptors_left_goes_on_with_the_connections_that_it_has(fresh):
    session = fresh.session("tcp")
    before = fresh.pids
    with fresh.downloading(session, kind="tcp") as client:
        limits = {pid: resource.prlimit(pid, resource.RLIMIT_NOFILE) for pid in before}
        for pid in before:
            # Room for one more, of the two that come with a connection.
            taken = {int(one.name) for one in Path(f"/proc/{pid}/fd").iterdir()}
            free = next(number for number in range(1000) if number not in taken)
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (free + 1, limits[pid][1]))
        for _ in range(2):
            with fresh.connect("tcp") as refused, contextlib.suppress(ConnectionError):
                refused.sendall(request("/v1/whoami"))
                assert refused.recv(100) == b""
        assert client.recv(1000)
    for pid in before:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, limits[pid])
    wait_until(lambda: session.live == 0, "the first connection's end")
    assert fresh.get("/v1/whoami")[0] == 200
    assert fresh.pids == before


def test_a_connection_goes_to_another_process_when_one_takes_none_and_stopping_ends_all(fresh):
    session = fresh.session("tcp")
    # The first in the order: it gets a connection whenever both are idle.
    fresh.members[0].channel.shutdown(socket.SHUT_WR)
    for _ in range(5):
        assert len(fresh.get("/v1/download?bytes=5000", session.id, "tcp")[2]) == 5000
    last = fresh.session()
    with fresh.downloading(last):
        pids = fresh.pids
        fresh.stop()
    assert last.summaries[0]["end"] == "stopped"
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_process_that_does_not_start_is_told():
    with pytest.raises(PoolError, match="did not start; hint: see its log"):
        Pool([sys.executable, "-c", "pass"], 1, None)
    with pytest.raises(PoolError, match="No such file"):
        Pool(["/nonexistent"], 1, None)
