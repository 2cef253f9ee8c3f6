"""The session that questions are asked in: opened in time, opened anew when the server forgot it, and known to be forgotten."""

import time
from types import SimpleNamespace

import pytest

from tandem.app.round_trip import round_trips as module
from tandem.app.round_trip.round_trips import SILENT_NS, Serving
from tandem.experiment.control import ControlError, Session

LEAVING = {"a": ("lo", "127.0.0.1"), "b": ("wwan1", None)}
ASKED = SimpleNamespace(measurement=SimpleNamespace(host="127.0.0.1", port=8480))
S = 10**9


class FakeServer:
    """The control channel; ``known``: sessions that it has."""

    def __init__(self) -> None:
        self.opened: list[dict] = []
        self.known: set[str] = set()
        self.failure: ControlError | None = None
        self.reflector: object = {"port": 8480, "clock": None}

    def open(self, kind: str, addresses: dict, **wanted: object) -> Session:
        assert (kind, addresses) == ("any", {})
        if self.failure is not None:
            raise self.failure
        self.opened.append(wanted)
        name = f"{len(self.opened):032x}"
        self.known.add(name)
        return Session(name, bytes(32), "a", {"expires_s": 120.0, "reflector": self.reflector})

    def end(self, session: Session, timeout_s: float) -> tuple[int, object]:
        assert timeout_s > 0
        if session.id not in self.known:
            return 404, None
        self.known.remove(session.id)
        return 200, {}


@pytest.fixture
def server(monkeypatch):
    made = FakeServer()
    monkeypatch.setattr(module, "Control", lambda _asked: made)
    return made


@pytest.fixture
def serving(server):  # noqa: ARG001  (in its place)
    return Serving(lambda _leaving: ASKED, 1_000_000)


def look(serving: Serving, now_ns: int, oldest_ns: int | None = None, leaving=LEAVING) -> None:
    """To the end of what it has done."""
    serving.look(now_ns, leaving, oldest_ns)
    if serving._worker is not None:
        serving._worker.join(60)


def opened(serving: Serving) -> int:
    """A session, and when it was opened."""
    look(serving, time.monotonic_ns())
    assert serving.served is not None
    return serving.served.opened_ns


def test_a_session_is_opened_where_a_path_is_up_and_every_path_knows_the_server(server, serving):
    look(serving, 0, leaving={})
    assert (server.opened, serving.usable(0)) == ([], None)
    now = opened(serving)
    assert server.opened == [{"budget_bytes": 1_000_000}]
    assert serving.usable(now) is serving.served
    assert serving.server("a") == serving.server("b") == ("127.0.0.1", 8480)
    assert serving.server("c") is None
    look(serving, now + S)
    assert len(server.opened) == 1


def test_a_session_is_kept_while_a_path_answers_and_followed_within_its_hour(server, serving):
    now = opened(serving)
    serving.heard(now + 9 * S)
    look(serving, now + 9 * S, oldest_ns=now + S)
    assert len(server.opened) == 1
    serving.asked(now + 2990 * S)
    look(serving, now + 2991 * S)
    assert len(server.opened) == 1
    before = serving.served
    serving.asked(now + 3001 * S)
    look(serving, now + 3002 * S)
    assert (len(server.opened), serving.earlier) == (2, before)
    assert before.session.id in server.known  # what is under way is still answered
    serving.asked(now + 3600 * S)
    assert serving.usable(serving.served.opened_ns + 3600 * S) is None


def test_after_a_pause_in_which_the_server_may_have_forgotten_it_nothing_is_asked_in_it(server, serving):
    now = opened(serving)
    serving.asked(now + 5 * S)
    assert serving.usable(now + 65 * S) is serving.served
    assert serving.usable(now + 66 * S) is None
    look(serving, now + 66 * S)
    assert len(server.opened) == 2


def test_a_session_that_the_server_forgot_is_told_and_one_that_it_knew_is_not(server, serving):
    for forgets in (True, False):
        now = opened(serving)
        serving.heard(now + S)
        if forgets:
            server.known.clear()
        look(serving, now + 2 * S + SILENT_NS, oldest_ns=now + 2 * S)  # not yet
        assert serving.forgotten_ns() is None
        count = len(server.opened)
        look(serving, now + 2 * S + SILENT_NS + 1, oldest_ns=now + 2 * S)
        assert len(server.opened) == count + 1
        assert serving.forgotten_ns() == (serving.served.opened_ns if forgets else None)
        assert serving.forgotten_ns() is None  # once
    # It answers nobody's questions although it knows them: no further session for a minute.
    later = serving.served.opened_ns + 30 * S
    look(serving, later, oldest_ns=later - 5 * S)
    assert len(server.opened) == count + 1


def test_a_server_that_refuses_is_asked_again_after_a_pause_and_told_once(server, serving, caplog):
    server.failure = ControlError("control channel: a: timeout", retry=True)
    for _ in range(3):
        look(serving, time.monotonic_ns())
        look(serving, serving._not_before_ns - 1)
        look(serving, serving._not_before_ns)
    assert serving.usable(time.monotonic_ns()) is None
    assert [r.message for r in caplog.records] == ["round trips: control channel: a: timeout"]
    server.failure, server.reflector = None, None
    look(serving, serving._not_before_ns)
    assert caplog.records[-1].message == "round trips: the server has no reflector"
    assert serving._not_before_ns - time.monotonic_ns() > 50 * S  # that does not pass by itself


def test_a_path_whose_names_fail_holds_up_no_other(serving, monkeypatch):
    def resolve(host: str, port: int, interface: str) -> tuple[str, int]:
        if interface == "lo":
            raise OSError("no answer")
        return host, port

    monkeypatch.setattr(module.sockets, "resolve", resolve)
    now = opened(serving)
    assert (serving.server("a"), serving.server("b")) == (None, ("127.0.0.1", 8480))
    assert serving.usable(now) is not None
