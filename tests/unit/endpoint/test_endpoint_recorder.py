"""The recorder: never blocks, bounded, counts what it drops, and writes what waited when the database is back."""

import threading
import time

from tandem.schema.line_protocol import Point
from tandem_server.endpoint.recorder import Recorder
from tandem_server.store import StoreDown

NOW = time.time_ns()


def point(number, **fields):
    tags = {"probe": "p", "boot": "b", "run": "r", "kind": "tcp", "end": "server"}
    return Point("connection", tags, {"bytes": number, "monotonic_ns": number, **fields}, NOW + number)


class Flaky:
    """Down until told otherwise."""

    def __init__(self):
        self.up, self.lines, self.tried = threading.Event(), [], threading.Event()

    def write(self, lines):
        self.tried.set()
        if not self.up.is_set():
            raise StoreDown("away")
        self.lines += lines
        return []


def test_what_waits_for_the_database_is_bounded_and_the_loss_counted():
    store = Flaky()
    recorder = Recorder(lambda: store, room=100)
    recorder.put(point(i) for i in range(50))
    assert store.tried.wait(60)
    recorder.put(point(i) for i in range(50, 300))
    store.up.set()
    account = recorder.close(timeout_s=60)
    assert account.made == 300
    assert account.stored == len(store.lines)
    assert account.stored + account.dropped == 300
    assert 100 <= account.stored <= 150
    assert f"bytes={299}i" in store.lines[-1]


def test_closing_does_not_wait_for_ever_for_a_database_that_is_away():
    recorder = Recorder(Flaky)
    recorder.put([point(1)])
    account = recorder.close(timeout_s=0.3)
    assert (account.stored, account.dropped) == (0, 1)


def test_a_record_that_breaks_the_schema_is_counted_and_the_others_pass():
    store = Flaky()
    store.up.set()
    recorder = Recorder(lambda: store)
    recorder.put([point(1), point(2, colour="red"), point(3)])
    account = recorder.close()
    assert (account.stored, account.rejected, len(store.lines)) == (2, 1, 2)
