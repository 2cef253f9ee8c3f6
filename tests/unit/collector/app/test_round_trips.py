"""Round trips over real sockets of loopback: what becomes a record, at which instant, and what is said where nothing was asked."""

import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from doubles import FakePaths
from good_config import good

from tandem.app import round_trips as module
from tandem.app.config_schema import PathConfig
from tandem.app.round_trips import RoundTrips
from tandem.app.runs.request import configured_request
from tandem.experiment.control import Session
from tandem.experiment.reflector import Reflector
from tandem.schema.record import Record

OWNER, KEY = bytes(range(16)), bytes(32)
PATIENCE_S = 60
ON = "[round_trip]\nenabled = true\nperiod_s = 0.2"


class Reflecting:
    """A reflector on loopback; ``drop``, ``twice``: which streams' questions are not answered, or two times."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.drop: set[int] = set()
        self.twice: set[int] = set()
        self.asked: list[int] = []
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        from tandem.experiment import reflector

        while (raw := (received := self.socket.recvfrom(2048))[0]) != b"end":
            fields = list(reflector._HEADER.unpack(raw))
            stream = fields[2]
            self.asked.append(stream)
            if stream in self.drop:
                continue
            fields[1], fields[8], fields[9], fields[10] = 2, 5_000, 6_000, bytes(16)
            unsigned = reflector._HEADER.pack(*fields)
            answer = unsigned[:56] + reflector._signature(KEY, unsigned)
            for _ in range(2 if stream in self.twice else 1):
                self.socket.sendto(answer, received[1])

    def close(self) -> None:
        if self._thread.is_alive():
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
                one.sendto(b"end", ("127.0.0.1", self.port))
            self._thread.join(PATIENCE_S)
        self.socket.close()


class FakeServing:
    """A session that is there; ``lacking``: none is."""

    made: "FakeServing"

    def __init__(self, *_: object) -> None:
        self.served = SimpleNamespace(
            session=Session(OWNER.hex(), KEY, "a"), reflector=Reflector(Rig.port, OWNER, None), opened_ns=0, idle_ns=0
        )
        self.earlier, self.lacking, self.forgotten, self.looked = None, False, None, 0
        FakeServing.made = self

    def usable(self, _now_ns: int) -> Any:
        return None if self.lacking else self.served

    def server(self, _path: str) -> tuple[str, int]:
        return "127.0.0.1", Rig.port

    def sent(self, _now_ns: int) -> None: ...

    def heard(self, _now_ns: int) -> None: ...

    def forgotten_ns(self) -> int | None:
        was, self.forgotten = self.forgotten, None
        return was

    def look(self, *_: object) -> None:
        self.looked += 1

    def close(self, _leaving: object) -> None: ...


class Rig:
    """Two paths, both on loopback."""

    port = 0

    def __init__(self) -> None:
        self.reflecting = Reflecting()
        Rig.port = self.reflecting.port
        self.paths = FakePaths()
        self.paths.interfaces["b"] = "lo"
        self.left: dict[str, int | None] = {"a": None, "b": None}
        self.records: queue.Queue[Record] = queue.Queue()
        self.instants = threading.Semaphore(0)
        account: Any = SimpleNamespace(left_today=self._left_today)
        self.round_trips = RoundTrips(
            good(ON), self.paths, account, lambda them: [*map(self.records.put, them)] and None
        )
        self.round_trips.start()

    def _left_today(self, path: PathConfig) -> int | None:
        if path.name == "a":
            self.instants.release()
        return self.left[path.name]

    def await_instants(self, count: int) -> None:
        """So many from now on, the last one just beginning."""
        while self.instants.acquire(blocking=False):
            pass
        for _ in range(count):
            assert self.instants.acquire(timeout=PATIENCE_S)

    def until(self, path: str, wanted: Callable[[Record], bool]) -> Record:
        """The next record of ``path`` that is as wanted."""
        while True:
            record = self.records.get(timeout=PATIENCE_S)
            if record.tags["path"] == path and wanted(record):
                return record

    def outcome(self, path: str, outcome: str) -> Record:
        return self.until(path, lambda record: record.fields["outcome"] == outcome)

    def close(self) -> None:
        self.round_trips.stop(PATIENCE_S)
        self.reflecting.close()


@pytest.fixture
def rig(monkeypatch) -> Iterator[Rig]:
    monkeypatch.setattr(module, "Serving", FakeServing)
    made = Rig()
    yield made
    made.close()


def test_both_paths_are_asked_at_the_same_instants_of_a_grid(rig):
    seen: dict[int, set[str]] = {}
    while sum(len(paths) == 2 for paths in seen.values()) < 3:
        record = rig.records.get(timeout=PATIENCE_S)
        assert record.measurement == "round_trip"
        assert record.fields["outcome"] == "answered"
        assert record.monotonic_ns == record.fields["sequence"] * 200_000_000
        assert record.tags["operator"] == record.tags["path"].upper()
        assert record.fields["beside_run"] is False
        assert record.fields["unanswered"] == 0
        seen.setdefault(record.monotonic_ns, set()).add(record.tags["path"])
    assert rig.round_trips.status()["a"]["outcome"] == "answered"


def test_a_second_answer_is_counted_not_recorded(rig):
    rig.reflecting.twice.add(1)
    told = rig.until("b", lambda record: "duplicates" in record.fields)
    assert told.fields["outcome"] == "answered"
    numbers = [told.fields["sequence"], *(rig.outcome("b", "answered").fields["sequence"] for _ in range(3))]
    assert numbers == sorted(set(numbers))


def test_what_one_path_loses_the_other_does_not(rig, monkeypatch):
    monkeypatch.setattr("tandem.app.round_trips.LOST_NS", 1)
    rig.reflecting.drop.add(1)
    lost = rig.outcome("b", "lost")
    assert "rtt_ms" not in lost.fields
    assert lost.fields["unanswered"] == 1


def test_a_path_that_is_down_is_no_loss_and_comes_back(rig):
    rig.outcome("b", "answered")
    rig.paths.states["b"]["state"] = "down"
    down = [rig.outcome("b", "down").fields["sequence"] for _ in range(3)]
    assert down == [down[0], down[0] + 1, down[0] + 2]
    rig.paths.states["b"]["state"] = "up"
    rig.outcome("b", "answered")
    rig.paths.interfaces["b"] = "tandem-none"  # gone between two looks
    rig.outcome("b", "down")


def test_a_run_that_wants_quiet_has_it_and_one_that_does_not_is_told_of(rig):
    config = good()
    rig.round_trips.group_started(SimpleNamespace(request=configured_request(config, "sequential", "request")))
    assert rig.until("a", lambda record: record.fields["beside_run"]).fields["outcome"] == "answered"
    rig.round_trips.group_started(SimpleNamespace(request=SimpleNamespace(quiet=True)))
    for path in "ab":
        paused = rig.outcome(path, "paused").fields
        assert paused["beside_run"] is True
        assert "unanswered" not in paused  # it says nothing of the path
    asked, looked = len(rig.reflecting.asked), FakeServing.made.looked
    rig.await_instants(4)
    assert rig.records.empty()  # nothing more is said, asked or opened
    assert (len(rig.reflecting.asked), FakeServing.made.looked) == (asked, looked)
    rig.round_trips.group_ended(SimpleNamespace())
    assert rig.outcome("a", "answered").fields["beside_run"] is False


def test_a_sim_with_nothing_left_is_not_asked_over_and_the_other_is(rig):
    rig.left["a"] = 0
    rig.outcome("a", "budget")
    asked = rig.reflecting.asked.count(0)
    for _ in range(3):
        rig.outcome("b", "answered")
    assert rig.reflecting.asked.count(0) == asked
    rig.left["a"] = 1
    rig.outcome("a", "answered")


def test_a_server_without_a_session_is_no_loss(rig):
    rig.reflecting.drop |= {0, 1}
    FakeServing.made.forgotten = time.monotonic_ns() + 10**9
    sequence = rig.outcome("a", "unserved").fields["sequence"]
    assert sequence
    FakeServing.made.lacking = True
    rig.until("a", lambda record: record.fields["outcome"] == "unserved" and record.fields["sequence"] > sequence)


def test_a_host_where_nobody_listens_is_no_loss(rig):
    rig.outcome("a", "answered")
    rig.reflecting.close()
    rig.outcome("a", "unserved")


def test_a_step_of_the_clock_is_in_no_round_trip(rig, monkeypatch):
    rig.outcome("a", "answered")
    real = time.time_ns
    for step_s in (3600, -3600):
        monkeypatch.setattr(time, "time_ns", lambda step_s=step_s: real() + step_s * 10**9)
        for _ in range(2):
            assert rig.outcome("a", "answered").fields["rtt_ms"] < 10_000
