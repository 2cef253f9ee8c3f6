"""The ledger's series: the same as the ledger told whole, at the cost of what is not settled."""

import contextlib
import random
import sqlite3
import time

import pytest
from told import Probe, S, file_of, ledger, queries_of, receive

from tandem_server.ingest.ledger_series import LedgerSeries
from tandem_server.ledger.records import RecordCounts
from tandem_server.ledger.tally import Tally


def states(registry):
    """By probe and state, how many runs, and records and files promised and arrived, as the running sums have it."""
    found = {}
    for one in registry.ledger_runs.sums():
        was = found.get((one.probe, one.state), (0, 0, 0, 0, 0))
        now = (one.runs, one.records_promised, one.records_arrived, one.files_promised, one.files_received)
        found[one.probe, one.state] = tuple(a + b for a, b in zip(was, now, strict=True))
    return found


def whole(registry, store):
    """The same by the ledger, which reads all."""
    found = {}
    for row in ledger(registry, store).runs:
        was = found.get((row.probe, row.state), (0, 0, 0, 0, 0))
        found[row.probe, row.state] = tuple(a + b for a, b in zip(was, (1, *row.counts), strict=True))
    return found


def by_hand(registry):
    """The sums, added up anew."""
    with contextlib.closing(sqlite3.connect(registry.file)) as connection:
        return connection.execute(
            "SELECT probe, campaign, state, count(*), sum(failed), sum(records_promised), sum(records_arrived),"
            " sum(files_promised), sum(files_received) FROM ledger_runs GROUP BY probe, campaign, state ORDER BY 1, 2, 3"
        ).fetchall()


def kept(registry):
    return [
        (s.probe, s.campaign, s.state, s.runs, s.failed, s.records_promised, s.records_arrived, s.files_promised, s.files_received)
        for s in registry.ledger_runs.sums()
    ]  # fmt: skip


def put(registry, manifest):
    registry.runs.put(manifest["id"], manifest["probe"], manifest)


def make_due(registry):
    with contextlib.closing(sqlite3.connect(registry.file)) as connection, connection:
        connection.execute("UPDATE ledger_runs SET due_utc_ns = 0 WHERE due_utc_ns IS NOT NULL")


@pytest.mark.parametrize("seed", range(6))
def test_after_any_order_of_events_it_is_the_ledger_told_whole(registry, store, seed):
    dice, tally = random.Random(seed), Tally(registry, RecordCounts(store), None)
    probes = [Probe(f"probe-{n}", f"b{n}", f"{n:012x}") for n in (1, 2)]
    files, manifests = {}, {}
    for step in range(40):
        probe = dice.choice(probes)
        event = dice.choice(("run", "run", "lost", "late", "trace", "again", "lone", "recount", "tell"))
        name = f"run-{seed}-{step}"
        if event in ("run", "lost"):
            content = name.encode()
            more = {"files": [file_of(f"captures/{name}", content)]} if dice.random() < 0.5 else {}
            if dice.random() < 0.3:
                more["campaign"] = {"name": dice.choice(("chen", "sizes"))}
            if dice.random() < 0.2:
                more["failure"] = {"reason": "no network", "retry": True}
            manifest = probe.run(name, **more)
            if event == "lost":
                gone = dice.randrange(1, 4)
                del probe.lines[-gone:]
            if more.get("files"):
                files[name] = (probe.name, f"captures/{name}", content)
            manifests[name] = manifest
            put(registry, manifest)
        elif event == "late":  # sent now, told later
            probe.send(store)
        elif event == "trace" and files:
            of = dice.choice(sorted(files))
            receive(registry, *files.pop(of), of)
        elif event == "again" and manifests:
            manifest = manifests[dice.choice(sorted(manifests))]
            manifest["records"] = {**manifest["records"], "run": dice.choice((1, 2))}
            put(registry, manifest)
        elif event == "lone":
            session = registry.sessions.open(probe.name, name, "mptcp", 100, 60)
            if dice.random() < 0.5:
                registry.sessions.end(session, 50, "closed")
        elif event == "recount":
            registry.counted.forget(dice.choice((None, probe.name)))
        elif event == "tell":
            probe.send(store)
            probe.tell(waiting=dice.choice((0, 0, min(3, probe.seq))))
            probe.send(store)
        if step % 5 == 4:
            make_due(registry)  # those that lack something: nothing has to have happened to them
            tally.bring_up(time.time_ns(), 60)
            assert kept(registry) == by_hand(registry)
            assert states(registry) == whole(registry, store), (step, event)


def test_what_is_settled_is_never_asked_for_again(registry, store, monkeypatch):
    probe, tally = Probe(), Tally(registry, RecordCounts(store), None)
    for number in range(30):
        put(registry, probe.run(f"run-{number}"))
    probe.tell()
    probe.send(store)
    assert tally.bring_up(time.time_ns(), 60) == 30
    assert states(registry) == {("probe-1", "complete"): (30, 330, 330, 0, 0)}
    queries = queries_of(store, monkeypatch)
    assert tally.bring_up(time.time_ns() + 400 * 86_400 * S, 60) == 0
    assert [q for q in queries if "count(" in q] == []
    put(registry, probe.run("run-new"))
    probe.send(store)
    assert tally.bring_up(time.time_ns(), 60) == 1
    counting = [q for q in queries if "count(" in q]
    assert len(counting) == 1
    assert '"run" = $run0)' in counting[0]  # of this run alone


def test_a_run_that_lacks_something_is_looked_at_the_more_seldom_the_older_it_is(registry, store):
    probe, tally = Probe(now_ns=time.time_ns() - 40 * 86_400 * S), Tally(registry, RecordCounts(store), None)
    put(registry, probe.run("run-old"))
    probe.lines.pop()
    probe.tell()
    probe.now_ns = time.time_ns() - 120 * S
    put(registry, probe.run("run-young"))
    probe.lines.pop()
    probe.tell()
    probe.send(store)
    now = time.time_ns()
    assert tally.bring_up(now, 60) == 2
    assert states(registry) == {("probe-1", "missing"): (2, 22, 20, 0, 0)}
    assert tally.bring_up(now + 30 * S, 60) == 0
    assert tally.bring_up(now + 61 * S, 60) == 1
    assert tally.bring_up(now + 45 * 3600 * S, 60) == 1
    assert tally.bring_up(now + 3 * 86_400 * S, 60) == 2


def test_what_happens_to_a_run_is_looked_at_at_once(registry, store):
    probe, tally = Probe(now_ns=time.time_ns() - 40 * 86_400 * S), Tally(registry, RecordCounts(store), None)
    manifest = probe.run("run-1", files=[file_of("captures/a", b"content")])
    put(registry, manifest)
    late, probe.lines = probe.lines[-2:], probe.lines[:-2]
    probe.tell(waiting=3)  # it holds them still
    probe.send(store)
    now = time.time_ns()
    tally.bring_up(now, 60)
    assert states(registry) == {("probe-1", "waiting"): (1, 11, 9, 1, 0)}
    assert registry.ledger_runs.open_since() == {("probe-1", ""): (manifest["ended_utc_ns"],) * 2}
    receive(registry, "probe-1", "captures/a", b"content", "run-1")
    tally.bring_up(now + S, 60)
    assert states(registry) == {("probe-1", "waiting"): (1, 11, 9, 1, 1)}
    assert registry.ledger_runs.open_since() == {("probe-1", ""): (manifest["ended_utc_ns"], None)}
    probe.lines += late
    probe.now_ns = now - 5 * S
    probe.tell()  # and now it has none that is as old as the run
    probe.send(store)
    tally.bring_up(now + 2 * S, 60)
    assert states(registry) == {("probe-1", "complete"): (1, 11, 11, 1, 1)}
    registry.counted.forget("probe-1")
    store.query('DROP SERIES FROM "connection"')
    tally.bring_up(now + 3 * S, 60)
    assert states(registry) == {("probe-1", "missing"): (1, 11, 6, 1, 1)}


def test_a_budget_of_time_leaves_the_rest_for_the_next_pass(registry, store):
    probe, tally = Probe(), Tally(registry, RecordCounts(store), None)
    for number in range(250):
        put(registry, probe.run(f"run-{number}", 1))
    probe.tell()
    probe.send(store)
    counted = []
    while looked := tally.bring_up(time.time_ns(), 0):
        counted.append(looked)
    assert counted == [100, 100, 50]
    assert states(registry)["probe-1", "complete"][0] == 250


def test_what_a_manifest_claims_breaks_nothing_for_others(registry, store):
    probe, tally = Probe(), Tally(registry, RecordCounts(store), None)
    most = 2**63 - 1
    for number in range(3):
        manifest = probe.run(f"run-{number}", ended_utc_ns=most, started_utc_ns=0)
        put(registry, {**manifest, "records": {"subflow": most, "run": most}})
    put(registry, probe.run("run-early", started_utc_ns=0, ended_utc_ns=0, files=[file_of("captures/none", b"n")]))
    put(registry, probe.run("run-well"))
    probe.tell(waiting=1, oldest_s=1e15)
    probe.send(store)
    now = time.time_ns()
    assert tally.bring_up(now, 60) == 5
    told = states(registry)
    assert told["probe-1", "complete"] == (1, 11, 11, 0, 0)
    assert sum(found[0] for found in told.values()) == 5
    LedgerSeries(registry, store, None).once(now)
    (series,) = store.query('SELECT last("records_promised") FROM "ledger" GROUP BY "probe"')
    assert series.rows[0][1] == 3 * 10**12 + 22
    assert tally.bring_up(now + 8 * 86_400 * S, 60) == 4  # also the one that claims to be of 1970


def test_the_series_tell_campaigns_records_and_traces(registry, store):
    probe = Probe()
    put(registry, probe.run("run-1", campaign={"name": "chen"}))
    put(registry, probe.run("run-2", campaign={"name": "chen"}, failure={"reason": "x", "retry": False}))
    put(registry, probe.run("run-3", campaign={"name": 'no"tag'}, files=[file_of("captures/c", b"c")]))
    short = probe.run("run-4")
    put(registry, short)
    probe.lines.pop()
    probe.tell()
    probe.send(store)
    receive(registry, "probe-1", "captures/c", b"c", "run-3")
    now = time.time_ns()
    LedgerSeries(registry, store, None).once(now)
    told = {
        (s.tags["probe"], s.tags["campaign"]): dict(zip(s.columns, s.rows[0], strict=True))
        for s in store.query('SELECT * FROM "ledger" GROUP BY "probe", "campaign"')
    }
    chen, none = told["probe-1", "chen"], told["probe-1", ""]
    assert [chen.get(f"runs_{name}") for name in ("complete", "failed", "missing")] == [2, 1, 0]
    assert [none[f"runs_{name}"] for name in ("complete", "missing")] == [1, 1]
    assert (none["records_promised"] - none["records_arrived"], chen.get("incomplete_s")) == (1, None)
    assert none["incomplete_s"] == pytest.approx((now - short["ended_utc_ns"]) / S)
    assert (none["files_promised"], none["files_received"], none.get("files_incomplete_s")) == (1, 1, None)
    records = store.query('SELECT * FROM "ledger_records" GROUP BY "probe"')
    told = {s.tags["probe"]: dict(zip(s.columns, s.rows[0], strict=True)) for s in records}
    assert set(told) == {"probe-1"}
    found = told["probe-1"]
    assert (found["unexplained"], found["made"] - found["arrived"]) == (1, 1)
    traces = store.query('SELECT "received", "received_bytes", "unfinished" FROM "server_traces" GROUP BY "probe"')
    assert [(s.tags["probe"], *s.rows[0][1:]) for s in traces] == [("probe-1", 1, 1, 0)]
