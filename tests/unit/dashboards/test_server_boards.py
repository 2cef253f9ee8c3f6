"""Fleet, Server and Campaign over what the server itself wrote: every query has rows, as the read-only account, at every resolution."""

import io
import json
import time
import uuid

import pytest

from support.offers import offer_of
from tandem.schema.line_protocol import encode
from tandem.schema.record import Record
from tandem_dashboards import boards
from tandem_dashboards.grafana.macros import Range
from tandem_dashboards.influx import Influx as Reading
from tandem_dashboards.query_runner import run_board
from tandem_server.derived.own_series import ExpectedSeries, LedgerSeries, MachineSeries
from tandem_server.derived.rollups import HOUR_S, Rollups, Span
from tandem_server.ingest.meter import GatewaySeries, Meter
from tandem_server.ledger.states import Tolerances
from tandem_server.registry import Registry
from tandem_server.store import Influx
from tandem_server.store.preparing import READER, Kept, prepare
from tandem_server.store.private import account_password

S = 10**9
NAMES = ("fleet", "server", "campaign")
RUN = {"kind": "mptcp", "path": "a", "pairing": "single", "experiment": "download", "campaign": "chen"}
NOBODY_IS = {"not uploading"}
"""States that none of these probes is in."""


class Probe:
    """Records of one probe, as its gateway would store them."""

    def __init__(self, name, now_ns):
        self.name, self.now_ns, self.seq, self.lines = name, now_ns, 0, []

    def record(self, measurement, tags, fields, ago_s=20):
        self.seq += 1
        utc_ns = self.now_ns - int(ago_s * S)
        record = Record.make(measurement, tags, fields, utc_ns)
        self.lines.append(encode(record, {"probe": self.name, "boot": "b1"}, self.seq, utc_ns))


def manifest(run, probe, now_ns, records, **more):
    return {
        "id": run, "probe": probe, "kind": "mptcp", "boot": "b1", "records": records, "files": [], "result": {"bytes": 1},
        "failure": None, "started_utc_ns": now_ns - 90 * S, "ended_utc_ns": now_ns - 30 * S, **more,
    }  # fmt: skip


def of_probes(registry, now_ns):
    """p1 measures, p2 is online and polls no modem, p3 fell silent, p4 was never seen."""
    one, two, three = (Probe(f"p{n}", now_ns) for n in (1, 2, 3))
    for name in ("p1", "p2", "p3", "p4", "p5"):
        registry.probes.add(name)
    registry.seen.note(
        {"p1": now_ns - 400 * S, "p2": now_ns - 400 * S, "p3": now_ns - 9000 * S, "p5": now_ns - 400 * S}
    )
    registry.seen.note({"p1": now_ns - S, "p2": now_ns - S, "p5": now_ns - S})
    told = {"spool": "aaaaaaaaaaaa", "first": 1, "sent": 4, "rejected": 0, "dropped": 0, "manifests": 0}
    sim = {"used_bytes": 5, "used_today_bytes": 2, "plan_bytes": 10, "expected_bytes": 12}
    sim |= {"reset_in_s": 9.0, "used_up_in_s": 5.0}
    idle = Probe("p5", now_ns)
    for probe in (one, idle):
        probe.record("radio", {"path": "a", "operator": "A"}, {"state": "idle"})
    one.record("position", {"mode": "coarse"}, {"latitude_deg": 48.1, "longitude_deg": 11.5, "fix": "3d"})
    one.record("run", {"run": "run-0", **RUN}, {"ok": True, "bytes": 5}, 1000)
    one.record("run_begun", {"run": "run-1", **RUN}, {"of": 1, "number": 1}, 200)
    one.record("run", {"run": "run-1", **RUN}, {"ok": True, "bytes": 5}, 100)
    one.record("run_begun", {"run": "run-2", **RUN}, {"of": 1, "number": 1}, 30)
    for probe in (one, two):
        probe.record("software", {}, {"tandem": "0.1.0"}, 4000)
        probe.record("sim_usage", {"path": "a", "operator": "A"}, sim)
        probe.record("modem_health", {"path": "a", "operator": "A", "driver": "generic"}, {"state": "usable"})
    of = {"state": "running", "state_code": 0, "step": "s", "said": "runs"}
    of |= {"made": 1, "of": 4, "ok": 1, "failed": 0, "cut_off": 0}
    data = {"used_bytes": 5, "used_today_bytes": 2, "budget_bytes": 9, "day_budget_bytes": 3, "left_bytes": 4}
    for ago_s in (20, 80, 4000):
        one.record("campaign", {"campaign": "chen"}, of, ago_s)
        one.record("campaign_step", {"campaign": "chen", "step": "s"}, {"made": 1, "of": 4}, ago_s)
        one.record("campaign_data", {"campaign": "chen", "role": "left", "path": "a", "operator": "A"}, data, ago_s)
    for probe in (one, two, idle):
        probe.seq += 1  # one that never came
        probe.record(
            "spool", {}, {**told, "made": probe.seq + 1, "settled": max(0, probe.seq - 3), "oldest_s": 30.0}, 10
        )
    three.record("radio", {"path": "a", "operator": "A"}, {"state": "idle"}, 9000)
    return [one, two, three, idle]


@pytest.fixture(scope="module")
def reading(private_influx, tmp_path_factory):
    folder, now_ns = tmp_path_factory.mktemp("boards"), time.time_ns()
    password, reader = (account_password(private_influx.folder, user) for user in ("admin", READER))
    name = f"boards-{uuid.uuid4().hex[:8]}"
    with Influx(private_influx.url, name, "admin", password) as store, Registry(folder / "registry.sqlite") as registry:
        prepare(store, Kept())
        store.query(f'GRANT READ ON "{name}" TO {READER}')
        for probe in of_probes(registry, now_ns):
            assert store.write(probe.lines) == []
        campaign = {"campaign": {"name": "chen"}}
        registry.runs.put("run-0", "p1", manifest("run-0", "p1", now_ns - 900 * S, {"run": 1}, **campaign))
        registry.runs.put("run-1", "p1", manifest("run-1", "p1", now_ns, {"run": 2}, **campaign))  # it lacks one
        digest = "a" * 64
        files = [{"name": "captures/x", "bytes": 9, "sha256": digest, "packets": None}]
        registry.runs.put("run-9", "p1", manifest("run-9", "p1", now_ns, {}, files=files, **campaign))
        for file, whole in (("captures/y", True), ("captures/z", False)):
            offer = offer_of(io.BytesIO(file.encode()), file, "run-9", "identity")
            registry.pending_uploads.offer("p1", offer, 8)
            if whole:
                registry.pending_uploads.finish("p1", offer, f"p1/{file}", "identity", 10)
        meter = Meter()
        gateway = GatewaySeries(store, meter, 1)
        expected, ledger = ExpectedSeries(registry, store, Tolerances()), LedgerSeries(registry, store, None)
        machine = MachineSeries(registry, store, {"registry": folder / "registry.sqlite"})
        for minute in (70, 1, 0):
            meter.answered("p1", 200, 100)
            meter.answered("p2", 429, 0)
            meter.lines("p1", 20, 1, "radio: unknown field 'x'", 0.012)
            meter.wrote(20, 0.01)
            meter.at_once(2, 300)
            gateway._at_utc_ns = (now_ns // (60 * S) - minute) * 60 * S
            gateway.turn()
            for series in (expected, ledger, machine):
                series.once(now_ns - minute * 60 * S)
        rollups = Rollups(registry, store, Kept())
        end_s = (int(now_ns / S) // HOUR_S + 1) * HOUR_S
        for measurement in rollups._only:
            rollups.make(Span(measurement, end_s - 4 * HOUR_S, end_s), now_ns / S)
        try:
            with Reading(private_influx.url, name, READER, reader) as database:
                yield database, now_ns // 10**6
        finally:
            store.query(f'DROP DATABASE "{name}"')


@pytest.mark.parametrize("since_s", [2 * HOUR_S, 2 * 86_400, 180 * 86_400], ids=["raw", "minutes", "hours"])
@pytest.mark.parametrize("name", NAMES)
def test_every_query_has_rows(reading, name, since_s):
    database, now_ms = reading
    text = json.loads(boards.load(name).to_text())
    picked, answers = run_board(text, database, Range(now_ms - since_s * 1000, now_ms + 1000), now_ms=now_ms)
    assert picked["resolution"].values == ({2 * HOUR_S: "kept", 2 * 86_400: "minute"}.get(since_s, "hour"),)
    assert [(a.query.name, a.error) for a in answers if a.error] == []
    silent = [
        (a.query.name, a.query.ref, a.query.alias)
        for a in answers
        if not a.rows and not NOBODY_IS & {a.query.alias, a.query.name}
    ]
    assert silent == []


def rows(reading, board, panel, ref="A"):
    """The rows of one query over the last day, each with its tags."""
    database, now_ms = reading
    text = json.loads(boards.load(board).to_text())
    _, answers = run_board(text, database, Range(now_ms - 86_400_000, now_ms + 1000), now_ms=now_ms)
    (found,) = [a for a in answers if a.query.name == panel and a.query.ref == ref]
    return [
        {**one.get("tags", {}), **dict(zip(one["columns"], row, strict=True))}
        for one in found.series
        for row in one["values"]
    ]


def test_fleet_has_every_probe_and_those_that_do_not_work_stand_out(reading):
    told = {row["probe"]: row for row in rows(reading, "fleet", "Probes")}
    assert {name: row["state"] for name, row in told.items()} == {
        "p1": "measuring", "p2": "online_not_measuring", "p3": "silent", "p4": "never_seen", "p5": "idle",
    }  # fmt: skip
    assert (told["p1"]["run"], told["p1"]["experiment"], told["p1"]["campaign"]) == ("run-2", "download", "chen")
    assert told["p5"]["run"] is None
    assert [row["probe"] for row in rows(reading, "fleet", "Online, and not measuring or not uploading")] == ["p2"]
    assert [(row["probe"], row["plan"]) for row in rows(reading, "fleet", "Probes", "B")] == [("p1", 1.2), ("p2", 1.2)]


def test_server_says_who_has_lines_rejected_and_why(reading):
    panel = "Rejected lines, and the newest reason"
    assert [(row["probe"], row["rejected"]) for row in rows(reading, "server", panel)] == [("p1", 3)]
    (why,) = rows(reading, "server", panel, "B")
    assert (why["probe"], why["reason"]) == ("p1", "radio: unknown field 'x'")


def test_campaign_has_its_progress_its_gaps_and_its_data(reading):
    (one,) = rows(reading, "campaign", "Campaigns")
    told = [one[name] for name in ("probe", "campaign", "state", "part", "step")]
    assert told == ["p1", "chen", "running", 0.25, "s"]
    (ledger,) = rows(reading, "campaign", "Completeness, from the ledger")
    # run-0 whole; run-1 lacks a record and run-9 a file, and the probe may still have them
    assert (ledger["runs_complete"], ledger["runs_waiting"] + ledger["runs_missing"]) == (1, 2)
    assert (ledger["records"], ledger["files"]) == (pytest.approx(2 / 3), 0)
    (data,) = rows(reading, "campaign", "Data against the budget")
    assert (data["role"], data["part"]) == ("left", pytest.approx(5 / 9))
