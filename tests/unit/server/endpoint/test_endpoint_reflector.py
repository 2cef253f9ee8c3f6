"""The reflector answers what an open session signed, byte for byte as much, and nothing else."""

import contextlib
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.experiment import reflector
from tandem_server.endpoint.reflector import Reflector, reflector_socket
from tandem_server.endpoint.sessions import Limits, SessionRequest, SessionTable
from tandem_server.registry import Registry


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
