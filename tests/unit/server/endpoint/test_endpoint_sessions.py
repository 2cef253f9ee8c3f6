"""Budgets and limits: nobody gets more than the session allows; the reflector, which answers what a session signed."""

import contextlib
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from endpoint_on_loopback import PATIENCE_S, full_disk, request, wait_until
from hypothesis import given
from hypothesis import strategies as st

from tandem.experiment import reflector
from tandem.experiment.control import Session
from tandem_server.endpoint.flows import PathPeer, name_subflows
from tandem_server.endpoint.http1 import BadRequest, Transfer, read_claim, read_head
from tandem_server.endpoint.reflector import Reflector, reflector_socket
from tandem_server.endpoint.sessions import Limits, Refused, SessionRequest, SessionTable, Share
from tandem_server.registry import Registry


@pytest.fixture
def table(registry):
    registry.probes.add("probe-1")
    registry.probes.add("probe-2")

    def make(shares=None, **limits):
        return SessionTable(registry, Limits(**limits), shares)

    return make


def opened(table, probe="probe-1", payload_bytes=None, seconds=None):
    return table.open(probe, SessionRequest("run-1", "mptcp", "a", {}, payload_bytes, seconds))


def claimed(session, number, key=None, target="/v1/download?bytes=5"):
    """As the endpoint reads what a probe wrote."""
    probe = Session(session.id, key or session.key, "a", {}, iter([number]))
    return read_claim(read_head(request(target, probe.claim(target))))


def test_a_connection_is_admitted_by_its_own_mac_once(table):
    sessions, ask = table(connections_per_session=10_000), Transfer(None, None)
    session, another = opened(sessions), opened(sessions)
    for number in (1, 3, 2, 5000, 3977):
        assert sessions.admit(claimed(session, number), ask, False) is session
    good = claimed(session, 6000)
    for wrong in (
        claimed(session, 3),  # shown before
        claimed(session, 3976),  # so old that nobody remembers
        claimed(session, 6000, another.key),
        replace(good, session=another.id),
        replace(good, number=6001),
        replace(good, line=good.line.replace("bytes=5", "bytes=6")),
        replace(good, mac="0" * 32),
    ):
        with pytest.raises(BadRequest, match="no open session") as refused:
            sessions.admit(wrong, ask, False)
        assert refused.value.status == 403
    assert sessions.admit(good, ask, False) is session
    for number in range(6001, 9200):
        sessions.admit(claimed(session, number), ask, False)
    for shown in (6000, 9199, 9199 - 1023):  # also when old ones were let go
        with pytest.raises(BadRequest, match="no open session"):
            sessions.admit(claimed(session, shown), ask, False)


def test_threads_never_get_more_than_the_budget_together(table):
    session = opened(table(session_bytes=100_000))

    def taken(_):
        total = 0
        while (count := session.take(7)) == 7:
            session.give_back(2)
            total += count - 2
        return total + count

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(taken, range(4))) == session.used_bytes <= 100_000


def test_what_is_too_much_is_refused_with_the_reason(table):
    small = table(session_bytes=1000, session_s=10.0, sessions_per_probe=2, probe_bytes_per_day=3000)
    with pytest.raises(Refused, match="1001 bytes asked for"):
        opened(small, payload_bytes=1001)
    with pytest.raises(Refused, match="11 s asked for"):
        opened(small, seconds=11.0)
    first, second = opened(small, payload_bytes=1000), opened(small)
    with pytest.raises(Refused, match="2 open sessions"):
        opened(small)
    opened(small, "probe-2")
    assert first.take(1000) == second.take(1000) == 1000
    assert small.end(first.id, "probe-1") is first
    third = opened(small)
    assert third.budget_bytes == 1000
    third.take(1000)
    small.end(third.id, "probe-1")
    with pytest.raises(Refused, match="of 24 hours"):
        opened(small)


def test_open_sessions_together_never_have_more_than_the_day(table):
    sessions = table(session_bytes=2000, probe_bytes_per_day=3000)
    first, second = opened(sessions), opened(sessions)
    assert (first.take(10_000), second.take(10_000)) == (2000, 1000)
    second.give_back(400)
    third = opened(sessions)
    assert third.budget_bytes == 400
    assert (third.take(300), second.take(10_000), third.take(1)) == (300, 100, 0)
    for session in (first, second, third):
        sessions.end(session.id, "probe-1")
    with pytest.raises(Refused, match="used 3000 of its 3000 bytes"):
        opened(sessions)
    assert opened(sessions, "probe-2").take(10_000) == 2000


def test_a_probes_own_share_holds_in_place_of_everybodys(table):
    shares = {"probe-2": Share(bytes_per_day=500, sessions_at_once=1), "probe-1": Share(sessions_at_once=3)}
    sessions = table(shares, sessions_per_probe=2, probe_bytes_per_day=3000, session_bytes=1000)
    with pytest.raises(Refused, match="has used 0 of its 500 bytes"):
        opened(sessions, "probe-2", payload_bytes=501)
    small = opened(sessions, "probe-2")
    assert small.budget_bytes == 500
    with pytest.raises(Refused, match="1 open sessions"):
        opened(sessions, "probe-2")
    assert {opened(sessions).budget_bytes for _ in range(3)} == {1000}
    with pytest.raises(Refused, match="3 open sessions"):
        opened(sessions)


def test_a_session_is_its_probes_only_and_ends_once(table, registry):
    sessions = table()
    session = opened(sessions)
    session.take(5)
    assert sessions.get(session.id) is session
    assert sessions.end(session.id, "probe-2") is None
    assert sessions.end(session.id, "probe-1") is session
    assert sessions.end(session.id, "probe-1") is None
    assert sessions.get(session.id) is None
    (row,) = registry.sessions.all()
    assert (row.sent_bytes, row.ended_why) == (5, "closed")


def test_a_revoked_probes_session_ends_with_the_next_look(table, registry):
    sessions = table()
    session, others = opened(sessions), opened(sessions, "probe-2")
    registry.probes.revoke("probe-1")
    sessions.sweep()
    assert (sessions.get(session.id), session.over()) == (None, True)
    assert sessions.get(others.id) is others
    assert [row.ended_why for row in registry.sessions.all()] == ["revoked", None]


def test_a_connection_is_admitted_while_the_registry_does_not_answer(table, registry, monkeypatch):
    sessions = table()
    session = opened(sessions)
    waiting, go_on = threading.Event(), threading.Event()

    def stuck(*_):
        waiting.set()
        assert go_on.wait(PATIENCE_S)
        raise sqlite3.OperationalError("disk I/O error")

    for each, name in ((registry.sessions, "open"), (registry.sessions, "end"), (registry.probes, "active")):
        monkeypatch.setattr(each, name, stuck)
    with ThreadPoolExecutor(2) as threads:
        opening = threads.submit(opened, sessions, "probe-2")
        waiting.wait(PATIENCE_S)
        try:
            admitting = threads.submit(sessions.admit, claimed(session, 1), Transfer(None, None), False)
            assert admitting.result(PATIENCE_S) is session
        finally:
            go_on.set()
        with pytest.raises(sqlite3.Error):
            opening.result()
    assert session.live == 1


def test_opening_waits_for_nobody_elses_capture(table):
    class Slow:
        """A tcpdump that does not stop."""

        def finish(self, _peers):
            assert go_on.wait(PATIENCE_S)

    go_on, sessions = threading.Event(), table(sessions_per_probe=1)
    lapsed = opened(sessions)
    lapsed.capture, lapsed.deadline_s = Slow(), 0.0
    with ThreadPoolExecutor(1) as threads:
        try:
            assert threads.submit(opened, sessions).result(PATIENCE_S).probe == "probe-1"
        finally:
            go_on.set()


def test_sessions_lapse_when_unused_or_over(table, registry):
    sessions = table(session_idle_s=0.001, sessions_per_probe=1)
    unused = opened(sessions)
    wait_until(lambda: sessions.get(unused.id) is None)
    busy = opened(sessions)
    sessions.sweep()
    assert [row.ended_why for row in registry.sessions.all()] == ["expired", None]
    busy.enter()
    assert not busy.lapsed(time.monotonic() + 60)
    assert busy.lapsed(time.monotonic() + 4000)


def test_ending_waits_for_the_last_connection_and_then_cuts_it(table):
    sessions = table()
    session = opened(sessions)
    session.enter()
    cut = threading.Thread(target=lambda: (session.ended.wait(60), session.leave({"bytes_sent": 3})))
    cut.start()
    assert sessions.end(session.id, "probe-1", wait_s=0.05).summaries == [{"bytes_sent": 3}]
    cut.join()


def test_connections_of_one_session_are_bounded(table):
    session = opened(table(connections_per_session=2))
    session.enter()
    session.enter()
    with pytest.raises(Refused):
        session.enter()
    session.leave(None)
    session.enter()


def test_an_end_that_a_full_disk_refuses_is_written_later(table, registry):
    sessions = table(probe_bytes_per_day=1000)
    session = opened(sessions, payload_bytes=800)
    session.take(700)
    with full_disk(registry):
        assert sessions.end(session.id, "probe-1") is session  # the probe gets its answer
        with pytest.raises(sqlite3.Error, match="full"):
            opened(sessions, payload_bytes=300)
        assert registry.sessions.all()[0].ended_utc_ns is None
    with pytest.raises(Refused, match="700 of its 1000"):
        opened(sessions, payload_bytes=301)
    sessions.sweep()
    assert (registry.sessions.all()[0].ended_why, registry.sessions.all()[0].sent_bytes) == ("closed", 700)
    opened(sessions, payload_bytes=300)


# --- subflows get their path's name by address, by being first, or as the one that is left


def named(addresses, primary, *remotes):
    paths = {name: PathPeer(name.upper(), address) for name, address in addresses.items()}
    return list(name_subflows(paths, primary, [(str(i), r) for i, r in enumerate(remotes, 1)]).values())


def test_by_its_address_else_by_being_the_first_or_as_the_one_that_is_left():
    two = {"a": "1.1.1.1", "b": "2.2.2.2"}
    for addresses, primary, remotes, names in [
        (two, "a", ["2.2.2.2", "1.1.1.1"], ["b", "a"]),
        ({}, "a", ["1.1.1.1"], ["a"]),
        ({"a": None, "b": None}, "b", ["9.9.9.9"], ["b"]),
        (two, "a", ["1.1.1.1", "3.3.3.3"], ["a", "b"]),
        ({"a": None, "b": None}, "a", ["3.3.3.3", "4.4.4.4"], ["a", "b"]),
        (two, "a", ["1.1.1.1", "3.3.3.3", "3.3.3.3"], ["a", "b", "b"]),
        # What cannot be told stays unnamed; paths behind one address are told apart by order only.
        (two | {"c": "3.3.3.3"}, "a", ["1.1.1.1", "9.9.9.9"], ["a", None]),
        (two, "a", ["1.1.1.1", "8.8.8.8", "9.9.9.9"], ["a", None, None]),
        ({}, None, ["1.1.1.1"], [None]),
        ({"a": "1.1.1.1", "b": "1.1.1.1"}, "b", ["1.1.1.1", "1.1.1.1"], ["b", "a"]),
    ]:
        assert named(addresses, primary, *remotes) == names, (addresses, primary, remotes)


ADDRESS = st.sampled_from(["1.1.1.1", "2.2.2.2", "3.3.3.3", None])


@given(
    st.dictionaries(st.sampled_from("abc"), ADDRESS), st.sampled_from([None, "a", "b"]), st.lists(ADDRESS, max_size=5)
)
def test_an_address_that_is_one_paths_never_gets_another_name(addresses, primary, remotes):
    owners = [[n for n, a in addresses.items() if a == r] if r else [] for r in remotes]
    for own, name in zip(owners, named(addresses, primary, *remotes), strict=True):
        if len(own) == 1:
            assert name == own[0]
        assert name is None or name in addresses or name == primary


# --- the reflector answers what an open session signed, byte for byte as much, and nothing else


class Open:
    """A reflector with one session, and what its opener was told."""

    def __init__(self, folder, host="127.0.0.1", budget=1_000_000):
        self.registry = Registry(folder / "registry.sqlite")
        self.registry.probes.add("probe-1")
        self.sessions = SessionTable(self.registry, Limits())
        self.session = self.sessions.open("probe-1", SessionRequest("run-1", "tcp", "a", {}, budget))
        self.reflector = Reflector(reflector_socket(host, 0), self.sessions)
        self.told = self.reflector.to_dict()
        self.key, self.id = self.session.key, bytes.fromhex(self.session.id)

    def question(self, sequence=0, size=100, stream=3, key=None):
        return reflector.question(key or self.key, self.id, stream, sequence, 5, size)

    def close(self):
        self.reflector.stop()
        self.registry.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with contextlib.closing(Open(tmp_path_factory.mktemp("reflector"))) as made:
        yield made


def test_never_more_bytes_out_than_in_and_an_answer_is_no_question(shared):
    for size in (reflector.SHORTEST, 100, reflector.LONGEST):
        assert len(shared.reflector.answer(shared.question(size=size), 1)) == size
    assert shared.reflector.answer(shared.reflector.answer(shared.question(), 1), 1) is None
    assert shared.reflector.answer(shared.question(key=bytes(32)), 1) is None


@given(st.binary(max_size=200))
def test_nothing_answers_to_nonsense_nor_takes_it_for_an_answer(shared, raw):
    assert shared.reflector.answer(raw, 1) is None
    assert reflector.read_answer(b"k" * 32, bytes(16), raw) is None


@given(st.integers(0, 99), st.integers(1, 255))
def test_no_bit_may_be_changed(shared, at, change):
    raw = bytearray(shared.question())
    raw[at] ^= change
    assert shared.reflector.answer(bytes(raw), 1) is None


def test_a_session_is_kept_from_lapsing_its_streams_counted_apart_and_its_end_and_budget_hold(tmp_path):
    def counted(stream):
        raw = opened.reflector.answer(opened.question(stream=stream), 1)
        return None if raw is None else reflector.read_answer(opened.key, opened.id, raw).count

    with contextlib.closing(Open(tmp_path, budget=550)) as opened:
        opened.session.idle_since_s -= 100
        assert [counted(stream) for stream in (1, 1, 2, 1)] == [1, 2, 1, 3]
        assert not opened.session.lapsed(time.monotonic() + 100)
        assert [counted(1) is None for _ in range(3)] == [False, True, True], "100 bytes each"
        opened.session.give_back(500)
        assert counted(1) is not None
        opened.sessions.end(opened.session.id, "probe-1")
        assert counted(1) is None
