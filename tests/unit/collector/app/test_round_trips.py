"""Round trips: what becomes of a path's questions, the session that they are asked in, and what becomes a record over loopback."""

import queue
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
from doubles import FakePaths
from good_config import good

from support.real_endpoint import RealEndpoint
from support.waiting import until
from tandem.app import round_trips as module
from tandem.app.round_trips import AGAIN_NS, LATE_NS, LOST_NS, SILENT_NS, Questions, RoundTrips, Serving
from tandem.app.runs.request import configured_request
from tandem.experiment.control import ControlError, Session

PATIENCE_S = 60


class Rig:
    """Two paths, both on loopback, to the server's own endpoint. ``drop``: streams whose questions it does not answer; ``asked``: the
    stream of each question that came."""

    def __init__(self, folder):
        self.endpoint, self.drop, self.asked = RealEndpoint(folder, "127.0.0.1"), set(), []
        until(lambda: self.endpoint.server.started)
        self._answer, self.endpoint.reflector.answer = self.endpoint.reflector.answer, self._answered
        (folder / "token").write_text(self.endpoint.token)
        config = good("[round_trip]\nenabled = true\nperiod_s = 0.2", folder / "config.toml")
        control, measurement = self.endpoint.control_port, self.endpoint.measurement_port
        server = replace(
            config.server, control=f"http://127.0.0.1:{control}", measurement=f"http://127.0.0.1:{measurement}"
        )
        self.paths, self.left = FakePaths(), {"a": None, "b": None}
        self.paths.interfaces["b"] = "lo"
        self.records, self.instants = queue.Queue(), threading.Semaphore(0)
        account = SimpleNamespace(left_today=self._left_today)
        self.round_trips = RoundTrips(
            replace(config, server=replace(server, ca_file=None)), self.paths, account, self._emit
        )
        self.round_trips.start()

    def _answered(self, raw, received_ns):
        self.asked.append(raw[5])
        return None if raw[5] in self.drop else self._answer(raw, received_ns)

    def _emit(self, records):
        for record in records:
            self.records.put(record)

    def _left_today(self, path):
        if path.name == "a":
            self.instants.release()
        return self.left[path.name]

    def await_instants(self, count):
        """So many from now on, the last one just beginning."""
        while self.instants.acquire(blocking=False):
            pass
        for _ in range(count):
            assert self.instants.acquire(timeout=PATIENCE_S)

    def until(self, path, wanted):
        """The next record of ``path`` that is as wanted."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            record = self.records.get(timeout=PATIENCE_S)
            if record.tags["path"] == path and wanted(record):
                return record
        raise AssertionError("no such record, though others come")

    def outcome(self, path, outcome):
        return self.until(path, lambda record: record.fields["outcome"] == outcome)

    def close(self):
        self.round_trips.stop(PATIENCE_S)
        self.endpoint.close()


@pytest.fixture
def rig(tmp_path):
    made = Rig(tmp_path)
    yield made
    made.close()


def test_both_paths_are_asked_at_the_same_instants_of_a_grid(rig):
    seen = {}
    while sum(len(paths) == 2 for paths in seen.values()) < 3:
        record = rig.records.get(timeout=PATIENCE_S)
        if record.fields["outcome"] == "unserved" and not seen:  # before there is a session
            continue
        assert (record.measurement, record.fields["outcome"]) == ("round_trip", "answered")
        assert record.monotonic_ns == record.fields["sequence"] * 200_000_000
        assert record.tags["operator"] == record.tags["path"].upper()
        assert (record.fields["beside_run"], record.fields["unanswered"]) == (False, 0)
        seen.setdefault(record.monotonic_ns, set()).add(record.tags["path"])
    assert rig.round_trips.status()["a"]["outcome"] == "answered"


def test_a_second_answer_is_counted_not_recorded(rig, monkeypatch):
    send = module.Asking.send
    monkeypatch.setattr(module.Asking, "send", lambda *words: send(*words) and send(*words))
    reported = rig.until("b", lambda record: "duplicates" in record.fields)
    assert reported.fields["outcome"] == "answered"
    numbers = [reported.fields["sequence"], *(rig.outcome("b", "answered").fields["sequence"] for _ in range(3))]
    assert numbers == sorted(set(numbers))


def test_what_one_path_loses_the_other_does_not(rig, monkeypatch):
    rig.outcome("b", "answered")
    rig.drop.add(1)
    monkeypatch.setattr(module, "LOST_NS", 10**9)
    lost = rig.outcome("b", "lost").fields
    assert ("rtt_ms" in lost, lost["unanswered"]) == (False, 1)
    rig.outcome("a", "answered")


def test_a_path_that_is_down_is_no_loss_and_comes_back(rig):
    rig.outcome("b", "answered")
    rig.paths.states["b"]["state"] = "down"
    down = [rig.outcome("b", "down").fields["sequence"] for _ in range(3)]
    assert down == [down[0], down[0] + 1, down[0] + 2]
    rig.paths.states["b"]["state"] = "up"
    rig.outcome("b", "answered")
    rig.paths.interfaces["b"] = "tandem-none"  # gone between two looks
    rig.outcome("b", "down")


def test_a_run_that_wants_quiet_has_it_and_one_that_does_not_is_told_of(rig, monkeypatch):
    rig.outcome("a", "answered")
    rig.round_trips.group_started(SimpleNamespace(request=configured_request(good(), "sequential", "request")))
    assert rig.until("a", lambda record: record.fields["beside_run"]).fields["outcome"] == "answered"
    rig.round_trips.group_started(SimpleNamespace(request=SimpleNamespace(quiet=True)))
    for path in "ab":
        paused = rig.outcome(path, "paused").fields
        assert paused["beside_run"] is True
        assert "unanswered" not in paused  # it says nothing of the path
    looks, look = [], Serving.look
    monkeypatch.setattr(Serving, "look", lambda *words: looks.append(words) or look(*words))
    rig.await_instants(2)
    while not rig.records.empty():
        assert rig.records.get().fields["outcome"] in ("answered", "late")  # to what was asked before
    asked = len(rig.asked)
    rig.await_instants(4)
    assert rig.records.empty()  # nothing more is said, asked or opened
    assert (len(rig.asked), looks) == (asked, [])
    rig.round_trips.group_ended(SimpleNamespace())
    assert rig.outcome("a", "answered").fields["beside_run"] is False


def test_a_sim_with_nothing_left_is_not_asked_over_and_the_other_is(rig):
    rig.left["a"] = 0
    rig.outcome("a", "budget")
    asked = rig.asked.count(0)
    for _ in range(3):
        rig.outcome("b", "answered")
    assert rig.asked.count(0) == asked
    rig.left["a"] = 1
    rig.outcome("a", "answered")


def test_a_server_that_forgot_its_sessions_is_no_loss_nor_is_a_host_where_nobody_listens(rig, monkeypatch):
    first = rig.outcome("a", "unserved").fields  # there is no session yet
    assert "unanswered" not in first
    rig.outcome("a", "answered")
    rig.endpoint.sessions.end_all()
    monkeypatch.setattr(module, "SILENT_NS", 1)
    rig.outcome("a", "unserved")
    rig.outcome("a", "answered")
    rig.endpoint.reflector.stop()
    rig.outcome("a", "unserved")


def test_a_step_of_the_clock_is_in_no_round_trip(rig, monkeypatch):
    rig.outcome("a", "answered")
    real = time.time_ns
    for step_s in (3600, -3600):
        monkeypatch.setattr(time, "time_ns", lambda step_s=step_s: real() + step_s * 10**9)
        for _ in range(2):
            assert rig.outcome("a", "answered").fields["rtt_ms"] < 10_000


# --- what becomes of a path's questions, whatever comes back and when


S = 10**9
MS = 10**6


def asked(questions: Questions, *sequences: int) -> None:
    """Each at its whole second, 1 ms after it."""
    for n in sequences:
        questions.sent(n, n * S, n * S + MS, beside_run=False)


def test_the_time_is_the_networks_own_without_the_servers_and_one_that_went_out_late_says_so():
    questions = Questions()
    asked(questions, 7)
    told = questions.heard(7, 7 * S + 41 * MS, server_ns=3 * MS)
    assert (told.outcome, told.rtt_ms, told.instant_ns, told.sequence) == ("answered", 37.0, 7 * S, 7)
    assert (told.sent_after_ms, told.duplicates, told.too_late) == (None, None, None)
    assert questions.oldest_ns is None
    questions.sent(8, 8 * S, 8 * S + 250 * MS, beside_run=True)
    told = questions.heard(8, 8 * S + 300 * MS, 0)
    assert (told.sent_after_ms, told.rtt_ms, told.beside_run) == (250.0, 50.0, True)


def test_answers_in_another_order_belong_to_their_own_questions():
    questions = Questions()
    asked(questions, 1, 2, 3)
    told = [questions.heard(n, 4 * S + MS, 0) for n in (3, 1, 2)]
    assert [(t.sequence, t.rtt_ms, t.outcome) for t in told] == [
        (3, 1000.0, "answered"),
        (1, 3000.0, "late"),
        (2, 2000.0, "answered"),
    ]


def test_late_and_lost_begin_after_their_times():
    for took_ns, told in (
        (LATE_NS, ("answered", 2000.0, None)),
        (LATE_NS + MS, ("late", 2001.0, None)),
        (LOST_NS, ("late", 10_000.0, None)),
        (LOST_NS + 1, ("lost", None, 1)),
    ):
        questions = Questions()
        asked(questions, 1)
        outcome = questions.heard(1, S + MS + took_ns, 0)
        assert (outcome.outcome, outcome.rtt_ms, outcome.too_late) == told
    asked(questions, 1, 2)
    assert questions.overdue(S + MS + LOST_NS) == []
    assert [t.sequence for t in questions.overdue(S + MS + LOST_NS + 1)] == [1]
    assert questions.oldest_ns == 2 * S + MS


def test_a_second_answer_is_a_duplicate_and_one_to_a_lost_question_too_late():
    questions = Questions()
    asked(questions, 1, 2, 3)
    questions.heard(2, 2 * S + 2 * MS, 0)
    assert questions.heard(2, 2 * S + 3 * MS, 0) is None
    (lost,) = questions.overdue(S + MS + LOST_NS + 1)
    assert (lost.sequence, lost.duplicates, lost.too_late) == (1, 1, None)
    assert questions.heard(1, 30 * S, 0) is None
    assert questions.heard(99, 30 * S, 0) is None  # never asked
    told = questions.heard(3, 3 * S + 5 * MS, 0)
    assert (told.duplicates, told.too_late) == (None, 1)  # the duplicate was told


def test_questions_that_the_server_had_nobody_for_are_not_lost():
    questions = Questions()
    asked(questions, 1, 2, 3)
    assert [(t.sequence, t.outcome) for t in questions.unserved(before_ns=3 * S)] == [(1, "unserved"), (2, "unserved")]
    assert questions.heard(3, 3 * S + 2 * MS, 0).outcome == "answered"
    assert questions.overdue(60 * S) == []


def test_a_pause_is_told_when_it_begins_once_a_minute_and_when_its_reason_changes():
    questions = Questions()
    told = [questions.not_sent(n, n * S, "paused", beside_run=True) for n in range(1, 131)]
    assert [t.sequence for t in told if t is not None] == [1, 1 + AGAIN_NS // S, 1 + 2 * AGAIN_NS // S]
    assert questions.not_sent(131, 131 * S, "budget", beside_run=False).outcome == "budget"
    asked(questions, 132)
    assert questions.not_sent(133, 133 * S, "budget", beside_run=False) is not None
    down = [questions.down(n, n * S, beside_run=False).outcome for n in range(134, 139)]
    assert down == ["down"] * 5, "at every instant"


# --- the session that questions are asked in: opened in time, opened anew when the server forgot it, and known to be forgotten


LEAVING = {"a": ("lo", "127.0.0.1"), "b": ("wwan1", None)}
ASKED = SimpleNamespace(measurement=SimpleNamespace(host="127.0.0.1", port=8480))


class FakeServer:
    """The control channel; ``known``: sessions that it has."""

    def __init__(self) -> None:
        self.opened: list[dict] = []
        self.known: set[str] = set()
        self.failure: ControlError | None = None
        self.reflector: object = {"port": 8480, "clock": None}

    def open(self, kind: str, addresses: dict, **wanted: object) -> Session:
        assert (kind, addresses) == ("tcp", {}), "any other would bar controllers of runs on the v0.94 kernel"
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


def test_a_session_is_followed_within_its_hour_and_not_used_beyond_it(server, serving):
    now = opened(serving)
    serving.sent(now + 2990 * S)
    look(serving, now + 2991 * S)
    assert len(server.opened) == 1
    before = serving.served
    serving.sent(now + 3001 * S)
    look(serving, now + 3002 * S)
    assert (len(server.opened), serving.earlier) == (2, before)
    assert before.session.id in server.known  # what is under way is still answered
    serving.sent(now + 3600 * S)
    assert serving.usable(serving.served.opened_ns + 3600 * S) is None


def test_after_a_pause_in_which_the_server_may_have_forgotten_it_nothing_is_asked_in_it(server, serving):
    now = opened(serving)
    serving.sent(now + 5 * S)
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


def test_a_path_that_still_answers_keeps_the_session(server, serving):
    now = opened(serving)
    serving.heard(now + 9 * S)
    look(serving, now + 9 * S, oldest_ns=now + S)
    assert len(server.opened) == 1


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
