"""What the registry keeps: runs, sessions, queues, late hours, offers; and what a registry of an earlier version becomes."""

import io
import re
import sqlite3
import subprocess
import sys
import time

import pytest

from support.offers import offer_of
from tandem.schema.campaign_queue import MOST_QUEUED
from tandem_server.registry import NOTED_AGAIN_S, Debounce, JudgedRun, QueueFull, Registry
from tandem_server.registry.database import _STEPS


def to_version(connection: sqlite3.Connection, version: int) -> None:
    """Take away what later versions added; ``version``: before 9, whose campaigns had a mark for what is a form since."""
    connection.execute("ALTER TABLE campaigns DROP COLUMN timezone")
    connection.execute("ALTER TABLE campaigns ADD COLUMN short INTEGER NOT NULL DEFAULT 0")
    connection.execute("ALTER TABLE campaigns DROP COLUMN form")
    for step in reversed(_STEPS[version:]):
        for kind, name in reversed(re.findall(r"CREATE (TABLE|INDEX|TRIGGER) (\w+)", step)):
            connection.execute(f"DROP {kind} IF EXISTS {name}")
    connection.execute(f"PRAGMA user_version = {version}")


def test_a_run_is_entered_once_and_its_last_manifest_holds(registry):
    registry.runs.put("run-1", "probe-1", {"result": None, "failure": {"reason": "no route", "retry": True}})
    first = registry.runs.get("run-1")
    assert first.status == "failed: no route"
    registry.runs.put("run-1", "probe-1", {"result": {"bytes": 5}, "failure": None})
    again = registry.runs.get("run-1")
    assert (again.status, again.manifest["result"]) == ("measured", {"bytes": 5})
    assert again.received_utc_ns == first.received_utc_ns
    assert [run.id for run in registry.runs.all()] == ["run-1"]


def test_sessions_are_accounted_per_probe_and_end_once(registry):
    before = time.time_ns()
    one = registry.sessions.open("probe-1", "run-1", "mptcp", 1000, 60.0)
    two = registry.sessions.open("probe-1", "run-2", "tcp", 1000, 60.0)
    registry.sessions.open("probe-2", "run-3", "tcp", 1000, 60.0)
    assert len(one) == 32
    assert one != two
    registry.sessions.end(one, 700, "closed")
    registry.sessions.end(one, 9999, "closed")
    registry.sessions.end(two, 30, "expired")
    assert registry.sessions.sent_since("probe-1", before) == 730
    assert registry.sessions.sent_since("probe-1", time.time_ns()) == 0
    assert registry.sessions.end_abandoned() == 1
    assert [row.ended_why for row in registry.sessions.all()] == ["closed", "expired", "endpoint died"]


def test_a_manifest_that_is_no_json_hides_no_other(registry):
    """As an older gateway kept it, and SQLite does not read it."""
    for run, kind, level in (("run-1", "tcp", float("inf")), ("run-2", "mptcp", 5.0)):
        registry.runs.put(run, "probe-1", {"kind": kind, "level": level})
        registry.counted.keep_runs([(run, {"run": 1}, {}, 4)])
    assert {(one.id, one.kind) for one in registry.counted.complete_runs()} == {("run-1", ""), ("run-2", "mptcp")}


HOW = {"form": "paper", "label": None, "paths": {}, "allow_substitutes": False}


def push(registry, *probes, name="own", priority=50, text="t"):
    return registry.campaigns.push(probes or ["probe-1"], name, f"{name}.toml", text, priority=priority, **HOW)


def test_a_full_queue_takes_no_more_for_anybody(registry):
    push(registry, *["probe-1"] * MOST_QUEUED)
    with pytest.raises(QueueFull, match="probe-1 has 100"):
        push(registry, "probe-2", "probe-1")
    assert registry.campaigns.of_probe("probe-2") == []


HOUR = 1_700_000_000 // 3600 * 3600


def keys(found):
    return [(one.probe, one.measurement, one.hour_utc_s) for one in found]


def test_what_is_noted_again_while_it_is_made_stays(registry):
    registry.late.note({("p1", "radio", HOUR), ("p2", "radio", HOUR)}, 1)
    under_way = registry.late.pending("rollups")
    registry.late.note({("p1", "radio", HOUR)}, 2)
    registry.late.done("rollups", under_way)
    assert keys(registry.late.pending("rollups")) == [("p1", "radio", HOUR)]
    old = registry.late.pending("rollups")  # one taken off and noted anew is another
    registry.late.done("rollups", old)
    registry.late.note({("p1", "radio", HOUR)}, 1)
    registry.late.done("rollups", old)  # by one that lost its lease and did not know
    assert len(registry.late.pending("rollups")) == 1


def test_a_note_is_ripe_when_it_has_stood_for_longer_than_it_may_be_left_unrepeated(registry):
    debounce = Debounce()
    registry.late.note({("p1", "radio", HOUR)}, 1)
    assert debounce.ready(registry.late.pending("rollups"), 100.0) == []
    registry.late.note({("p1", "radio", HOUR)}, 1)  # noted again: it begins anew
    assert debounce.ready(registry.late.pending("rollups"), 129.0) == []
    assert debounce.ready(registry.late.pending("rollups"), 131.0) == []
    assert keys(debounce.ready(registry.late.pending("rollups"), 129.0 + 30.0)) == [("p1", "radio", HOUR)]
    assert NOTED_AGAIN_S < 30.0


def offer():
    return offer_of(io.BytesIO(b"packets" * 5000), "captures/run-1-a.pcap", "run-1", "identity", 4096)


def test_one_that_was_touched_since_it_was_looked_at_is_not_given_up(registry):
    told = offer()
    one = registry.pending_uploads.offer("probe-1", told, 10)
    assert registry.pending_uploads.checked("probe-1", told.sha256, 4096, 4796) == 4796
    assert registry.pending_uploads.today_bytes("probe-1") == 4796
    assert not registry.pending_uploads.expire(one)
    (touched,) = registry.pending_uploads.unfinished()
    assert registry.pending_uploads.expire(touched)
    assert registry.pending_uploads.unfinished() == []


BEFORE = 5


def old(file):
    """Two runs, a session of one of them and one of a run that never came, and a trace, as the version before left them."""
    with Registry(file) as registry:
        registry.probes.add("probe-1")
        for number in (1, 2):
            registry.runs.put(f"run-{number}", "probe-1", {"kind": "mptcp", "result": {"bytes": 1}})
        registry.sessions.open("probe-1", "run-1", "mptcp", 1, 60)
        registry.sessions.open("probe-1", "run-lone", "mptcp", 1, 60)
    connection = sqlite3.connect(file)
    with connection:
        to_version(connection, BEFORE)
        connection.execute(
            "INSERT INTO traces VALUES ('probe-1', 'captures/x', 'run-1', 'aa', 7, 1, 'probe-1/captures/x', 'identity', 5)"
        )
    connection.close()


def test_a_registry_of_before_has_every_run_to_be_looked_at(tmp_path):
    old(tmp_path / "r.sqlite")
    with Registry(tmp_path / "r.sqlite") as registry:
        (one,) = registry.ledger_runs.sums()
        assert (one.probe, one.campaign, one.state, one.runs) == ("probe-1", "", "uncounted", 3)
        due = registry.ledger_runs.due(1, 10)
        assert {row.run for row in due} == {"run-1", "run-2", "run-lone"}
        assert registry.traces.sums() == {"probe-1": (1, 7, 5)}
        judged = ("c", "complete", False, 4, 4, 1, 1, False, False, 9, 0, None)
        registry.ledger_runs.keep([JudgedRun("probe-1", row.run, row.touched, *judged) for row in due])
        (one,) = registry.ledger_runs.sums()
        assert (one.campaign, one.state, one.runs) == ("c", "complete", 3)
        assert (one.records_arrived, one.files_received) == (12, 3)


def test_several_processes_open_an_old_one_at_once(tmp_path):
    old(tmp_path / "r.sqlite")
    program = "import sys; from pathlib import Path; from tandem_server.registry import Registry; Registry(Path(sys.argv[1])).close()"
    started = [subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "r.sqlite")]) for _ in range(3)]
    assert [one.wait(180) for one in started] == [0, 0, 0]
    with Registry(tmp_path / "r.sqlite") as registry:
        assert sum(one.runs for one in registry.ledger_runs.sums()) == 3


def test_what_happened_while_a_run_was_judged_is_not_lost(registry):
    registry.runs.put("run-1", "probe-1", {"kind": "mptcp"})
    (row,) = registry.ledger_runs.due(1, 10)
    registry.runs.put("run-1", "probe-1", {"kind": "tcp"})  # another promise, meanwhile
    judged = JudgedRun("probe-1", "run-1", row.touched, "", "complete", False, 1, 1, 0, 0, False, False, 9, 0, None)
    registry.ledger_runs.keep([judged])
    assert [one.state for one in registry.ledger_runs.sums()] == ["uncounted"]
    (again,) = registry.ledger_runs.due(1, 10)
    assert again.touched > row.touched


def test_sessions_of_the_hand_out_check_and_of_round_trips_are_no_runs(registry):
    for run in ("preflight", "round-trips", "run-1"):
        registry.sessions.open("probe-1", run, "any", 1, 60)
    assert [one.run for one in registry.sessions.lone()] == ["run-1"]
    assert [one.run for one in registry.ledger_runs.due(1, 10)] == ["run-1"]
    assert [one.run for one in registry.sessions.all()] == ["preflight", "round-trips", "run-1"]


def test_the_first_registry_gets_what_it_lacks(tmp_path):
    file = tmp_path / "r.sqlite"
    with Registry(file) as made:
        token = made.probes.add("probe-1")
        with made._write() as connection:
            to_version(connection, 1)
    with Registry(file) as opened:
        assert opened.probes.of_token(token) == "probe-1"
        assert opened.enrolments.invite("probe-2", 60, None).code
        assert push(opened)
        packets = offer()
        opened.pending_uploads.offer("probe-1", packets, 10)
        row = opened.pending_uploads.finish("probe-1", packets, "probe-1/a.pcap", "identity", packets.bytes)
        assert opened.traces.received() == [row]


def test_a_lock_is_one_blocks_and_ends_with_it(tmp_path):
    with Registry(tmp_path / "r.sqlite") as one, Registry(tmp_path / "r.sqlite") as other:
        with one.locked("a") as ours:
            with other.locked("a") as theirs, other.locked("b") as another:
                assert (ours, theirs, another) == (True, False, True)
            with pytest.raises(KeyError), one.locked("c"):
                raise KeyError
        with other.locked("a") as theirs, other.locked("c", wait=True) as waited:
            assert (theirs, waited) == (True, True)
