"""The ledger over a real database and registry, told whole and as its running series: what is taken away is named, and nothing else."""

import contextlib
import random
import sqlite3
import time

import pytest

from support.probe_runs import Probe, S, file_of, ledger, receive
from tandem_server.derived.own_series import LedgerSeries
from tandem_server.ledger.records import RecordCounts
from tandem_server.ledger.running_totals import RunningTotals
from tandem_server.ledger.table import WIDTH, lines
from tandem_server.registry.ledger import LedgerSum
from tandem_server.store import Series


@pytest.fixture
def told(registry, store):
    """The ledger after a probe's report and all that it has to send."""

    def read(probe, **how):
        probe.tell_all(store)
        return ledger(registry, store, **how)

    return read


def put(registry, manifest):
    registry.runs.put(manifest["id"], manifest["probe"], manifest)


def row(found, run):
    (one,) = [r for r in found.runs if r.id == run]
    return one


def lacks(found, run):
    return [(lack.what, lack.name, lack.count, lack.why) for lack in row(found, run).missing]


def test_records_taken_away_are_named_by_run_and_by_number(registry, store):
    probe = Probe()
    for n in range(3):
        probe.polls(10)
        put(registry, probe.run(f"run-{n}"))
    probe.tell_all(store)
    store.query('DROP SERIES FROM "subflow", "connection" WHERE "run" = \'run-1\'')
    found = ledger(registry, store)
    assert [r.state for r in found.runs] == ["complete", "missing", "complete"]
    assert lacks(found, "run-1") == [("records", name, 5, "unexplained") for name in ("subflow", "connection")]
    (account,) = found.accounts
    assert (account.unexplained, account.missing) == (10, ((32, 41),))
    assert found.lacks
    # What nobody can explain is looked for again: here it comes back.
    again = Probe(seq=31, now_ns=row(found, "run-1").ended_utc_ns - 11 * S // 10)
    again.run("run-1")
    again.send(store)
    assert not ledger(registry, store).lacks


def test_what_was_found_complete_is_not_counted_again_unless_asked(registry, store, told):
    probe = Probe()
    manifest = probe.run("run-1")
    put(registry, manifest)
    assert not told(probe).lacks
    store.query('DROP SERIES FROM "subflow" WHERE "run" = \'run-1\'')
    assert not ledger(registry, store).lacks
    found = ledger(registry, store, recount=True)
    assert lacks(found, "run-1") == [("records", "subflow", 5, "unexplained")]
    # Another manifest is another promise: that run is counted again by itself.
    put(registry, {**manifest, "records": {"run": 1}})
    assert row(ledger(registry, store), "run-1").state == "complete"
    put(registry, manifest)
    assert row(ledger(registry, store), "run-1").state == "missing"


def test_files_are_known_by_their_hash(registry, store):
    probe = Probe()
    here, other, later = (file_of(f"captures/{n}.pcap", n.encode()) for n in ("here", "other", "later"))
    put(registry, probe.run("run-1", files=[here, other, later, {"name": 3}, "x"]))
    probe.tell_all(store)
    receive(registry, "probe-1", "captures/here.pcap", b"here", "run-1")
    receive(registry, "probe-1", "captures/other.pcap", b"changed", "run-1")
    receive(registry, "probe-1", "captures/stray.pcap", b"stray", "run-1")
    receive(registry, "probe-2", "captures/later.pcap", b"later", None)  # another probe's is no answer
    found = ledger(registry, store)
    assert lacks(found, "run-1") == [
        ("file", "captures/other.pcap", 1, "other_hash"),
        ("file", "captures/later.pcap", 1, "not_received"),
    ]
    assert [trace.name for trace in found.unpromised] == ["captures/stray.pcap"]
    registry.trace_tables.mark("probe-1", ["captures/here.pcap"], 1)
    registry.trace_tables.mark("probe-1", ["captures/other.pcap"], 1, "not a capture")
    (told,) = ledger(registry, store).to_dict()["runs"]
    assert (told["analysed"], told["analysis_failed"]) == (1, {"captures/other.pcap": "not a capture"})
    assert row(found, "run-1").state == "missing"
    assert row(ledger(registry, store, with_files=False), "run-1").state == "complete"
    # The same content under another name is the content.
    receive(registry, "probe-1", "captures/moved.pcap", b"later", None)
    assert lacks(ledger(registry, store), "run-1") == [("file", "captures/other.pcap", 1, "other_hash")]


def test_why_records_are_not_here(registry, store, told):
    probe = Probe()
    put(registry, probe.run("run-1"))
    probe.lines.clear()
    assert lacks(ledger(registry, store), "run-1")[0][3] == "not_heard"  # no report at all
    probe.tell_all(store, waiting=probe.seq)
    found = ledger(registry, store)
    assert {lack[3] for lack in lacks(found, "run-1")} == {"not_sent"}
    assert (row(found, "run-1").state, found.accounts[0].waiting, found.accounts[0].unexplained) == ("waiting", 11, 0)
    probe.gone["dropped"] = 11
    found = told(probe)
    assert {lack[3] for lack in lacks(found, "run-1")} == {"refused"}
    (account,) = found.accounts
    assert (account.dropped, account.waiting, account.unexplained, account.missing) == (11, 0, 0, ((1, 11),))
    put(registry, probe.run("run-2"))
    probe.lines.clear()
    assert lacks(ledger(registry, store), "run-2")[0][3] == "not_heard"  # the last report is older


def test_a_run_that_opened_a_session_and_never_came(registry, store, told):
    probe = Probe()
    session = registry.sessions.open("probe-1", "run-x", "tcp", 1000, 60.0)
    found = ledger(registry, store)
    assert (row(found, "run-x").state, found.lacks) == ("under_way", False)
    registry.sessions.end(session, 700, "closed")
    with registry._write() as connection:
        connection.execute(
            "UPDATE sessions SET opened_utc_ns = opened_utc_ns - ?1, ended_utc_ns = ended_utc_ns - ?1", (3600 * S,)
        )
    assert lacks(ledger(registry, store), "run-x") == [("manifest", "run-x", 1, "no_manifest")]
    probe.now_ns = time.time_ns() - 5 * S
    probe.tell_all(store, manifests=1)
    found = ledger(registry, store)
    assert (lacks(found, "run-x"), row(found, "run-x").state) == ([("manifest", "run-x", 1, "not_sent")], "waiting")
    found = told(probe)
    assert (lacks(found, "run-x"), row(found, "run-x").state) == ([("manifest", "run-x", 1, "cut_off")], "missing")
    assert "700 bytes sent" in row(found, "run-x").missing[0].detail
    put(registry, {**probe.run("run-x"), "records": {}})
    assert row(ledger(registry, store), "run-x").state == "complete"


def test_a_new_card_begins_at_1_again_and_both_add_up(store, told):
    old = Probe()
    old.polls(30)
    old.tell()
    old.polls(5)
    old.send(store)
    new = Probe(boot="b2", spool="bbbbbbbbbbbb", now_ns=old.now_ns + 60 * S)
    new.tell()
    new.polls(12)
    new.lost(4)
    new.polls(3)
    accounts = {
        a.spool: (a.made, a.arrived, a.waiting, a.unexplained, a.missing, a.current) for a in told(new).accounts
    }
    assert accounts == {"aaaaaaaaaaaa": (36, 36, 0, 0, (), False), "bbbbbbbbbbbb": (21, 17, 0, 4, ((14, 17),), True)}


def test_a_gap_and_a_double_do_not_hide_each_other(told):
    probe = Probe()
    probe.polls(10)
    probe.seq -= 1
    probe.polls(1)  # 10 twice
    probe.lost(1)  # and 11 not at all: the count is right
    found = told(probe)
    (account,) = found.accounts
    assert (account.twice, account.unexplained, account.missing, found.lacks) == (1, 1, ((11, 11),), True)


def test_what_retention_took_is_expired_not_missing(registry, store):
    probe = Probe(now_ns=time.time_ns() - 20 * 86_400 * S)
    manifest = probe.run("run-1")
    probe.lines.clear()  # the database has forgotten
    put(registry, manifest)
    probe.now_ns = time.time_ns() - 3600 * S
    probe.polls(10)
    probe.tell_all(store)
    with registry._write() as connection:
        connection.execute("UPDATE probes SET created_utc_ns = created_utc_ns - ?", (30 * 86_400 * S,))
    found = ledger(registry, store, retention_days=7)
    (account,) = found.accounts
    assert (account.expired, account.arrived, account.unexplained, account.missing) == (11, 11, 0, ())
    assert (row(found, "run-1").state, row(found, "run-1").missing, found.lacks) == ("expired", (), False)
    assert ledger(registry, store, retention_days=30, recount=True).lacks


def test_the_table_is_at_most_100_columns_and_tells_all(registry, store):
    probe = Probe()
    failed = {"result": None, "failure": {"reason": "no route " * 30, "retry": True}}
    put(registry, {**probe.run("run-0123456789ab"), **failed})
    probe.lines.clear()
    probe.lost(3)
    probe.gone["rejected"] = 1
    for _ in range(40):
        probe.polls(1)
        probe.lost(1)
    probe.tell_all(store)
    receive(registry, "probe-1", "captures/" + "x" * 120, b"stray", "run-0123456789ab")
    registry.sessions.open("probe-1", "run-x", "tcp", 1000, 60.0)
    found = ledger(registry, store)
    for incomplete in (False, True):
        text = list(lines(found, incomplete=incomplete))
        assert max(map(len, text)) <= WIDTH
        whole = " ".join(" ".join(text).split())
        words = ("run-0123456789ab", "5 subflow", "unexplained", "never promised", "numbers 1-14, 16", "more ranges")
        assert [word for word in words if word not in whole] == []
        assert text[-1].startswith("records of runs 0 of 11, files 0 of 0")


def of_the_server(session, content=None, why=None, run="run-1"):
    name = f"captures/server/{run}-{session}.pcap"
    told = {"bytes": None, "sha256": None, "packets": None} if content is None else file_of(name, content)
    more = {"packets_dropped": 0, "truncated": False, "why": why}
    return {"session": session, **told, "name": None if content is None else name, **more}


def test_the_servers_captures_are_known_made_kept_not_made_and_gone(registry, store, told):
    probe = Probe()
    captures = [
        of_the_server("one", b"abc"),
        of_the_server("two", why="the endpoint's captures fill their 9 bytes"),
        of_the_server("three", why="the server did not answer"),  # and kept it all the same
    ]
    put(registry, probe.run("run-1", server_captures=captures))
    put(registry, probe.run("run-2", server_captures=[of_the_server("four", b"lost", run="run-2"), "?", {}]))
    for session in ("one", "three"):
        receive(registry, "probe-1", f"captures/server/run-1-{session}.pcap", b"abc" + session[3:].encode(), "run-1")
    found = told(probe)
    expected = {
        "captures/server/run-1-one.pcap": "received",
        "captures/server/run-1-three.pcap": "received",
        "captures/server/run-1-two.pcap": "not made: the endpoint's captures fill their 9 bytes",
    }
    assert (row(found, "run-1").state, row(found, "run-1").files) == ("complete", expected)
    assert row(found, "run-1").counts[2:] == (2, 2)  # what nobody promised is not missing
    assert lacks(found, "run-2") == [("file", "captures/server/run-2-four.pcap", 1, "gone")]
    assert (row(found, "run-2").state, found.unpromised) == ("missing", [])
    again = ledger(registry, store)  # from what was written down as complete
    assert row(again, "run-1").files == expected
    table = "\n".join(lines(again))
    assert "no capture at the server: captures/server/run-1-two.pcap: the endpoint's" in " ".join(table.split())


def added(rows):
    """By probe and state, how many runs, and records and files promised and arrived."""
    found = {}
    for probe, state, *counts in rows:
        found[probe, state] = tuple(map(sum, zip(found.get((probe, state), (0,) * 5), counts, strict=True)))
    return found


def states(registry):
    """As the running sums have it."""
    return added(
        (s.probe, s.state, s.runs, s.records_promised, s.records_arrived, s.files_promised, s.files_received)
        for s in registry.ledger_runs.sums()
    )


def whole(registry, store):
    """The same by the ledger, which reads all."""
    return added((row.probe, row.state, 1, *row.counts) for row in ledger(registry, store).runs)


def by_hand(registry):
    """The running sums, counted anew."""
    with contextlib.closing(sqlite3.connect(registry.file)) as connection:
        rows = connection.execute(
            "SELECT probe, campaign, state, count(*), sum(failed), sum(records_promised), sum(records_arrived),"
            " sum(files_promised), sum(files_received) FROM ledger_runs GROUP BY probe, campaign, state ORDER BY 1, 2, 3"
        )
        return [LedgerSum(*row) for row in rows]


def make_due(registry):
    with contextlib.closing(sqlite3.connect(registry.file)) as connection, connection:
        connection.execute("UPDATE ledger_runs SET due_utc_ns = 0 WHERE due_utc_ns IS NOT NULL")


@pytest.mark.parametrize("seed", range(6))
def test_after_any_order_of_events_it_is_the_ledger_told_whole(registry, store, seed):
    dice, tally = random.Random(seed), RunningTotals(registry, RecordCounts(store), None)
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
            assert registry.ledger_runs.sums() == by_hand(registry)
            assert states(registry) == whole(registry, store), (step, event)


def test_what_happens_to_a_run_is_looked_at_at_once(registry, store):
    probe, tally = Probe(now_ns=time.time_ns() - 40 * 86_400 * S), RunningTotals(registry, RecordCounts(store), None)
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


def test_what_a_manifest_claims_breaks_nothing_for_others(registry, store):
    probe, tally = Probe(), RunningTotals(registry, RecordCounts(store), None)
    most = 2**63 - 1
    for number in range(3):
        manifest = probe.run(f"run-{number}", ended_utc_ns=most, started_utc_ns=0)
        put(registry, {**manifest, "records": {"subflow": most, "run": most}})
    put(registry, probe.run("run-early", started_utc_ns=0, ended_utc_ns=0, files=[file_of("captures/none", b"n")]))
    put(registry, probe.run("run-well"))
    probe.tell_all(store, waiting=1, oldest_s=1e15)
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
    probe.tell_all(store)
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


def test_what_is_settled_is_never_looked_at_again_until_something_comes(registry, store):
    probe, tally = Probe(), RunningTotals(registry, RecordCounts(store), None)
    for number in range(30):
        put(registry, probe.run(f"run-{number}"))
    probe.tell_all(store)
    assert tally.bring_up(time.time_ns(), 60) == 30
    assert states(registry) == {("probe-1", "complete"): (30, 330, 330, 0, 0)}
    assert tally.bring_up(time.time_ns() + 400 * 86_400 * S, 60) == 0
    put(registry, probe.run("run-new"))
    probe.send(store)
    assert tally.bring_up(time.time_ns(), 60) == 1


def test_a_run_that_lacks_something_is_looked_at_the_more_seldom_the_older_it_is(registry, store):
    probe, tally = Probe(now_ns=time.time_ns() - 40 * 86_400 * S), RunningTotals(registry, RecordCounts(store), None)
    put(registry, probe.run("run-old"))
    probe.lines.pop()
    probe.tell()
    probe.now_ns = time.time_ns() - 120 * S
    put(registry, probe.run("run-young"))
    probe.lines.pop()
    probe.tell_all(store)
    now = time.time_ns()
    assert tally.bring_up(now, 60) == 2
    assert states(registry) == {("probe-1", "missing"): (2, 22, 20, 0, 0)}
    assert tally.bring_up(now + 30 * S, 60) == 0
    assert tally.bring_up(now + 61 * S, 60) == 1
    assert tally.bring_up(now + 45 * 3600 * S, 60) == 1
    assert tally.bring_up(now + 3 * 86_400 * S, 60) == 2


def test_what_the_database_has_forgotten_is_expired(registry, store):
    old, young = Probe(now_ns=time.time_ns() - 20 * 86_400 * S), Probe("probe-2", "b2", "bbbbbbbbbbbb")
    for probe in (old, young):
        put(registry, probe.run(f"run-{probe.name}"))
        probe.tell_all(store)
    tally = RunningTotals(registry, RecordCounts(store), 30)
    now = time.time_ns()
    tally.bring_up(now, 60)
    assert states(registry).keys() == {("probe-1", "complete"), ("probe-2", "complete")}
    tally.bring_up(now + 15 * 86_400 * S, 60)
    assert states(registry).keys() == {("probe-1", "expired"), ("probe-2", "complete")}
    assert registry.ledger_runs.sums() == by_hand(registry)


def test_a_record_that_arrives_while_the_database_counts_is_counted_the_next_time():
    """InfluxDB reads for each function of a query by itself: a first record between two of them is in the later one alone."""

    class Arriving:
        def parts(self, *_):
            yield Series("radio", {"boot": "b1"}, ["time", "count", "sum"], [[0, 3, 6]])
            yield Series("spool", {"boot": "b1"}, ["time", "count", "sum"], [[0, None, 4]])

        def query(self, *_):
            whole = Series("radio", {"boot": "b1"}, ["time", "count", "min", "max"], [[0, 3, 1, 3]])
            return [whole, Series("spool", {"boot": "b1"}, whole.columns, [[0, None, 4, 4]])]

    records = RecordCounts(Arriving())
    assert records.between("probe-1", None, 0, None, None) == (3, 6)
    assert (records.of_boots("probe-1", None)["b1"].count, records.of_boots("probe-1", None)["b1"].high) == (3, 3)
