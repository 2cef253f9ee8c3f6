"""The status socket: watchers, requests, nonsense, and watchers that do not read."""

import errno
import json
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tandem.app.daemon.status_server import StatusServer
from tandem.app.daemon.status_socket import LONGEST_REQUEST, NoCollectorError, ask, connect, listen


class FakeAnswers:
    def __init__(self) -> None:
        self.count = 0
        self.filler = ""
        self.ended: dict[str, dict[str, Any]] = {}
        self.wake: Callable[[], None] = lambda: None
        self.broken: Exception | None = None
        self.described = threading.Event()

    def status(self) -> dict[str, Any]:
        self.count += 1
        if self.broken is not None:
            raise self.broken
        return {"type": "status", "count": self.count, "run": None, "filler": self.filler}

    def request(self, experiment: str, _parameters: dict[str, Any]) -> str:
        if experiment == "slow":
            assert self.described.wait(60)
            return "pair-2"
        if experiment != "download":
            raise ValueError(f"unknown experiment {experiment!r}")
        return "pair-1"

    def cancel(self, pair: str | None) -> str:
        if pair not in (None, "pair-1"):
            raise ValueError(f"{pair} is not what is being measured: pair-1 is")
        self.ended["pair-1"] = {"runs": ["run-1"], "results": [], "ok": False}
        return "pair-1"

    def campaign(self, request: dict[str, Any]) -> dict[str, Any]:
        if request["action"] == "stop":
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), "campaigns/active.json")
        raise RuntimeError(f"no campaign is {request['action']}")

    def outcome(self, pair: str) -> dict[str, Any] | None:
        return self.ended.get(pair)


class Served:
    def __init__(self, path: Path) -> None:
        self.path, self.answers = path, FakeAnswers()
        self.server = StatusServer(listen(path), self.answers)
        self.server.start()


@pytest.fixture
def served(tmp_path):
    made = Served(tmp_path / "status.sock")
    yield made
    made.server.stop()


def test_watchers_hear_once_a_second_when_woken_and_at_the_end(served):
    watcher = ask(served.path, {"op": "watch"}, 60)
    first, second = next(watcher), next(watcher)
    assert second["count"] > first["count"]
    served.server.wake()
    assert next(watcher)["count"] > second["count"]
    answers = ask(served.path, {"op": "start", "experiment": "download", "parameters": {}}, 60)
    next(answers)
    served.server.stop()
    assert list(answers)[-1] == {"type": "done", "runs": [], "results": [], "ok": False}
    assert all(a["type"] == "status" for a in watcher)


@pytest.mark.parametrize("which", [{}, {"pair": "pair-1"}])
def test_who_cancels_is_told_the_end_and_so_is_who_began(served, which):
    begun = ask(served.path, {"op": "start", "experiment": "download", "parameters": {}}, 60)
    assert next(begun) == {"type": "accepted", "pair": "pair-1"}
    assert next(begun)["type"] == "progress"
    answers = list(ask(served.path, {"op": "cancel", **which}, 60))
    ended = {"type": "done", "runs": ["run-1"], "results": [], "ok": False}
    assert (answers[0], answers[-1]) == ({"type": "accepted", "pair": "pair-1"}, ended)
    assert list(begun)[-1] == ended


def test_what_cannot_be_is_refused(served):
    for request, why in (
        ({"op": "cancel", "pair": "pair-2"}, "pair-2 is not what is being"),
        ({"op": "cancel", "pair": 3}, "pair is no text"),
        ({"op": "start", "experiment": "teleport"}, "unknown experiment 'teleport'"),
        ({"op": "start", "experiment": "download", "parameters": []}, ""),
    ):
        (answer,) = ask(served.path, request, 60)
        assert answer["type"] == "refused"
        assert why in answer["reason"]


def test_a_card_that_takes_nothing_refuses_the_request_and_the_socket_lives(served):
    (answer,) = ask(served.path, {"op": "campaign", "action": "stop"}, 60)
    reason = "campaigns/active.json: Read-only file system; hint: a writable folder with room"
    assert answer == {"type": "refused", "reason": reason}
    (answer,) = ask(served.path, {"op": "campaign", "action": "idle"}, 60)
    assert answer["type"] == "error"
    served.answers.broken = ZeroDivisionError()
    watcher = ask(served.path, {"op": "watch"}, 60)
    assert list(watcher) == []
    served.answers.broken = None
    assert [a["type"] for a in ask(served.path, {"op": "status"}, 60)] == ["status"]


def test_while_an_experiment_is_asked_what_it_takes_others_are_answered(served):
    begun = ask(served.path, {"op": "start", "experiment": "slow"}, 60)
    told: list[dict[str, Any]] = []
    follower = threading.Thread(target=lambda: told.append(next(begun)))
    follower.start()
    assert [a["type"] for a in ask(served.path, {"op": "status"}, 60)] == ["status"]
    assert told == []
    served.answers.described.set()
    follower.join(60)
    assert told == [{"type": "accepted", "pair": "pair-2"}]


def test_it_leaves_no_descriptor_behind_and_may_be_woken_at_any_time(tmp_path):
    before = set(Path("/proc/self/fd").iterdir())
    for _ in range(3):
        served = Served(tmp_path / "status.sock")
        list(ask(served.path, {"op": "status"}, 60))
        served.server.stop()
        served.server.wake()
    assert len(set(Path("/proc/self/fd").iterdir()) - before) == 0


def converse(path: Path, content: bytes) -> list[dict[str, Any]]:
    """Send bytes, then a status request; every answer until the end."""
    with connect(path, 60) as connection:
        connection.sendall(content + b'\n{"op":"status"}\n')
        with connection.makefile("rb") as lines:
            return [json.loads(line) for line in lines]


def test_nonsense_is_answered_and_the_client_may_go_on(served):
    for nonsense in (b"hello", b"[]", b'{"op":"dance"}', b'{"op":["watch"]}', b"\xff\xfe", b'"' + b"[" * 5000):
        assert [a["type"] for a in converse(served.path, nonsense)] == ["error", "status"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200).filter(lambda b: b"\n" not in b))
def test_no_bytes_harm_the_server(served, content):
    answers = converse(served.path, content)
    assert answers[-1]["type"] == "status"


def test_an_endless_line_is_not_kept(served):
    with connect(served.path, 60) as connection:
        try:
            for _ in range(LONGEST_REQUEST // 65536 + 8):
                connection.sendall(b"x" * 65536)
        except (BrokenPipeError, ConnectionResetError):
            return
        with connection.makefile("rb") as lines:
            try:
                assert json.loads(next(lines))["type"] == "error"
                assert next(lines, b"") == b""
            except ConnectionResetError:
                return


def test_a_watcher_that_does_not_read_is_dropped_and_others_are_served(served):
    served.answers.filler = "x" * 300_000
    with connect(served.path, 60) as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.sendall(b'{"op":"watch"}\n')
        good = ask(served.path, {"op": "watch"}, 60)
        for _ in range(8):
            served.server.wake()
            next(good)
        slow.settimeout(60)
        received = 0
        while piece := slow.recv(1 << 20):  # what was under way, then the end
            received += len(piece)
        assert received < 4 * 300_000


def test_a_left_over_socket_is_replaced_and_a_living_one_is_not(tmp_path, monkeypatch):
    path = tmp_path / "status.sock"
    listen(path).close()  # as after kill -9: the name is still there
    assert path.is_socket()
    second = listen(path)
    with pytest.raises(OSError, match="in use"):
        listen(path)

    def busy(_path: Path, _timeout_s: float | None) -> socket.socket:
        raise NoCollectorError("timed out") from TimeoutError()

    with monkeypatch.context() as patched:
        patched.setattr("tandem.app.daemon.status_socket.connect", busy)
        with pytest.raises(OSError, match="in use"):
            listen(path)
    assert path.is_socket()
    second.close()
    with pytest.raises(NoCollectorError):
        list(ask(path, {"op": "status"}, 1))


def test_a_deep_folder_works_too(tmp_path):
    deep = tmp_path / ("d" * 100) / ("e" * 100)
    deep.mkdir(parents=True)
    assert len(os.fsencode(deep)) > 107
    served = Served(deep / "status.sock")
    assert [a["type"] for a in ask(served.path, {"op": "status"}, 60)] == ["status"]
    served.server.stop()
