"""Experiments other than the download, run by the collector: a person's own, under conditions, with phases and a cost per path."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import pytest
from doubles import Rehearsal, manifests, points
from good_config import GOOD, good

from support.https_gateway import Gateway
from tandem.app.config import parse
from tandem.app.daemon.status_socket import ask
from tandem.app.runs.conditions import Conditions, ConditionsError
from tandem.app.runs.registry import Registry
from tandem.app.runs.request import (
    SETUP_S,
    RunRequest,
    configured_request,
    deadline_of,
    parse_download,
    parse_request,
    plan,
)
from tandem.schema.manifest import Conditions as ConditionsTold
from tandem_server.ingest.documents import read_manifest

OWN = Path(__file__).parent / "own_experiments"


class Made:
    """Conditions as a double: what was wanted, and whether it was undone."""

    def __init__(self) -> None:
        self.wanted: list[Conditions] = []
        self.undone = 0
        self.lack: str | None = None

    def __call__(self, wanted: Conditions, _interfaces: Mapping[str, str | None], _spool: Path, _boot: str) -> Self:
        self.wanted.append(wanted)
        if self.lack is not None:
            raise ConditionsError(self.lack, retry=True)
        return self

    def state(self) -> ConditionsTold:
        return {"sysctl": {"net.ipv4.tcp_sack": {"asked": "0", "before": "1", "now": "0", "at_end": "0"}}, "shape": {}}

    def undo(self) -> list[str]:
        self.undone += 1
        return []


def rehearsal(folder: Path, gateway: Gateway, made: Made | None = None) -> Rehearsal:
    return Rehearsal(folder, gateway, own=OWN, hardware={} if made is None else {"conditions": made})


def measured(collector: Rehearsal, **given: Any) -> list[dict[str, Any]]:
    request = {"op": "start", "experiment": "steps", "parameters": given}
    return list(ask(collector.folder / "status.sock", request))


def test_a_run_of_any_experiment_leaves_manifest_records_and_its_cost(tmp_path, gateway):
    collector = rehearsal(tmp_path, gateway).start()
    done = measured(collector, paths=["b", "a"], seed=2**31 + 7, parameters={"how": "well"})[-1]
    assert (done["type"], done["ok"]) == ("done", True)
    (row,) = done["results"]
    assert (row["experiment"], row["kind"], row["bytes"]) == ("steps", "any", 5)
    assert collector.stop()
    (manifest,) = manifests(tmp_path)
    assert read_manifest(json.dumps(gateway.manifests[manifest["id"]]), manifest["id"], "probe-1") == manifest
    experiment, parameters, counts = manifest["experiment"], manifest["parameters"], manifest["records"]
    assert (experiment["name"], experiment["version"], experiment["units"]["bytes"]) == ("steps", 3, "B")
    assert (manifest["kind"], manifest["pairing"], manifest["paths"]) == ("any", "single", ["b", "a"])
    assert (manifest["seed"], parameters["seed"], parameters["how"]) == (2**31 + 7, 7, "well")
    assert [p["name"] for p in parameters["paths"]] == ["b", "a"]
    assert manifest["environment"]["further"]["result_faults"] == ["'colour' is not declared"]
    assert [counts[name] for name in ("phase", "broken", "verdict", "run_begun")] == [2, 2, 1, 1]
    assert "conditions" not in manifest
    usage = manifest["usage"]
    assert (set(usage["paths"]), usage["shared_by_pair"]) == ({"a", "b"}, False)
    assert usage["paths"]["b"] == {"received": 0, "sent": 0}  # there is no wwan1 here
    recorded = defaultdict(list)
    for point in points(gateway):
        recorded[point.measurement].append(point)
    assert [p.fields["number"] for p in recorded["phase"]] == [1, 2]
    ((connection,), (verdict,), (begun,), (run,)) = map(recorded.get, ("connection", "verdict", "run_begun", "run"))
    assert (connection.tags["kind"], connection.tags["path"]) == ("tcp", "b")
    told = [verdict.tags.get(tag) for tag in ("run", "path", "operator", "campaign")]
    assert told == [manifest["id"], "b", "B", None]
    assert (begun.fields["paths"], begun.fields["trigger"], dict(begun.tags)) == ("b,a", "request", dict(run.tags))
    assert 0 < (begun.utc_ns or 0) < (run.utc_ns or 0)
    assert (run.tags["experiment"], run.tags["kind"], run.fields["ok"]) == ("steps", "any", True)
    assert "connect_ms" not in run.fields  # an object in its result, a number in ours
    assert {p.tags["path"] for p in recorded["run_usage"]} == {"a", "b"}


def test_the_phase_under_way_is_in_the_status_what_is_cancelled_is_kept_and_the_next_may_begin(tmp_path, gateway):
    collector = rehearsal(tmp_path, gateway).start()
    answers = collector.supervisor.service
    with pytest.raises(ValueError, match="nothing is being measured"):
        answers.cancel(None)
    pair = answers.request("steps", {"parameters": {"how": "hang"}})

    def phases() -> list[Any]:
        return [run["phase"] for run in (answers.status()["run"] or {}).get("runs", [])]

    collector.until(lambda: phases() == [{"name": "step 2", "number": 2, "of": 2}])
    with pytest.raises(ValueError, match=f"{pair} is"):
        answers.cancel("pair-of-yesterday")
    assert answers.cancel(pair) == pair
    collector.until(lambda: not collector.supervisor.scheduler.running)
    done = answers.outcome(pair)
    assert [r["failure"] for r in done["results"]] == ["stopped"]
    assert measured(collector, parameters={"how": "well"})[-1]["ok"] is True
    collector.stop()
    assert [m["failure"] for m in manifests(tmp_path)].count(None) == 1


def test_the_experiment_is_told_its_deadline_and_without_one_its_own_counts(tmp_path):
    (tmp_path / "patient").mkdir()
    code = (OWN / "steps/__main__.py").read_text().replace('"steps"', '"patient"')
    own = 'Parameter("deadline_s", "float", "the whole", "s", default=9000.0, minimum=1, maximum=10000),'
    (tmp_path / "patient/__main__.py").write_text(code.replace("*COMMON,", f"*COMMON, {own}"))
    config = parse(GOOD, tmp_path / "config.toml")
    registry = Registry(tmp_path)

    def request(**given: Any) -> RunRequest:
        return parse_request(config, registry, "patient", given, "request")

    assert (request().deadline_s, request().parameters) == (9000.0, {})
    asked = request(deadline_s=60)
    assert (asked.deadline_s, asked.parameters) == (60.0, {"deadline_s": 60})
    assert deadline_of(plan(config, asked, 0)) == 60 + SETUP_S
    assert request(parameters={"deadline_s": 70}).deadline_s == 70.0


REFUSED = [
    ("leaps", {}, "unknown experiment 'leaps'; known: .*download.*steps"),
    ("steps", {"kind": "tcp"}, "unknown parameter 'kind'; known: paths, parameters"),
    ("steps", {"paths": ["z"]}, "'z' is no path"),
    ("download", {"paths": ["a"], "parameters": {"subflows": 4}}, "4 subflows take two paths, there is 1"),
    ("download", {"parameters": {"subflows": 3}}, "3 is not one of 1, 2, 4"),
    ("download", {"kind": "tcp", "path": "a", "parameters": {"subflows": 1}}, "is of MPTCP"),
    ("download", {"pairing": "both"}, "is none of"),
    ("download", {"kind": "tcp"}, "needs its path"),
    ("download", {"kind": "udp", "path": "a"}, "none of mptcp, tcp"),
    ("download", {"kind": ["tcp"]}, "none of mptcp, tcp"),
    ("download", {"kind": "tcp", "path": "z"}, "is no path"),
    ("download", {"path": "a"}, "belongs to a single run"),
    ("download", {"paths": ["a"], "kind": "tcp", "path": "b"}, "'b' is no path; known: a"),
    ("download", {"paths": ["a"], "primary": "b"}, "'b' is no path; known: a"),
    ("download", {"kind": "tcp", "path": "a", "pairing": "sequential"}, "a pair takes no 'kind'"),
    ("download", {"seconds": 1, "bytes": 1}, "not both"),
    ("download", {"seconds": "long"}, "not a number"),
    ("download", {"seconds": 1e9}, "above 3600"),
    ("download", {"speed": 1}, "unknown parameter"),
    ("steps", {"capture": "server"}, "capture 'server' is none of probe, both"),
    ("steps", {"paths": ["a", "a"]}, "no list of different names"),
    ("steps", {"parameters": {"run": "x"}}, "'run' is the collector's to give"),
    ("steps", {"parameters": {"how": "badly"}}, "'badly' is not one of well, fail, hang"),
    ("steps", {"parameters": {"sizes": [{}]}}, "'label' is missing"),
    ("steps", {"parameters": []}, "parameters is no object"),
    ("steps", {"seed": -1}, "seed -1 is no whole number"),
    ("steps", {"deadline_s": "long"}, "deadline_s 'long' is no number"),
    ("steps", {"steering": "left"}, "steering 'left' is none of off, drop, handover, learned"),
    ("steps", {"steering": "drop", "paths": ["a"]}, "steering takes two paths, there is 1"),
    ("download", {"steering": "drop", "pairing": "simultaneous"}, "steering takes runs one after the other"),
    ("download", {"steering": "drop", "kind": "tcp", "path": "a"}, "steering is of MPTCP"),
    ("steps", {"sysctl": {"kernel.panic": 1}}, "only network settings"),
    ("steps", {"sysctl": {"net.ipv4.tcp_sack": True}}, "neither text nor a whole number"),
    ("steps", {"shape": {"z": {"up_bit_per_s": 1e6}}}, "shape: 'z' is no path of the run"),
    ("steps", {"shape": {"a": {"up_bit_per_s": 1}}}, "shape.a.up_bit_per_s: 1 bit/s is not from"),
    ("steps", {"paths": ["a"], "shape": {"b": {"up_bit_per_s": 1e6}}}, "it has a"),
]


def test_a_request_that_cannot_be_is_refused_with_the_reason(tmp_path, gateway):
    collector = rehearsal(tmp_path, gateway).start()
    wrong = []
    try:
        for experiment, given, what in REFUSED:
            try:
                wrong.append((given, collector.supervisor.service.request(experiment, given)))
            except ValueError as error:
                if not re.search(what, str(error)):
                    wrong.append((given, str(error)))
    finally:
        collector.stop()
    assert wrong == []


def test_conditions_and_paths_that_cannot_be_are_recorded_failures(tmp_path, gateway):
    made = Made()
    made.lack = "delay and loss need netem, which this kernel has not"
    collector = rehearsal(tmp_path, gateway, made).start()
    assert measured(collector, shape={"a": {"up_delay_ms": 5}})[-1]["ok"] is False
    collector.paths.rests = False
    assert measured(collector, paths=["b"])[-1]["ok"] is False
    collector.stop()
    told = {manifest["failure"]["reason"]: manifest for manifest in manifests(tmp_path)}
    assert told.keys() == {f"conditions: {made.lack}", "paths: a could not be left out within 5 s"}
    for manifest in told.values():
        assert (manifest["failure"]["retry"], manifest["result"]) == (True, None)
        assert read_manifest(json.dumps(gateway.manifests[manifest["id"]]), manifest["id"], "probe-1") == manifest
    assert collector.paths.suspended[-1] == frozenset()


def test_conditions_are_made_once_for_a_pair_told_of_each_run_and_undone(tmp_path, gateway):
    made = Made()
    collector = rehearsal(tmp_path, gateway, made).start()
    conditions = {"sysctl": {"net.ipv4.tcp_sack": 0}, "shape": {"a": {"down_bit_per_s": 1e6}}}
    request = {"pairing": "simultaneous", **conditions, "parameters": {"stall_s": 3}}
    pair = collector.supervisor.service.request("download", request)
    collector.until(lambda: collector.supervisor.service.outcome(pair) is not None)
    collector.stop()
    found = manifests(tmp_path)
    assert len(found) == 3
    assert made.undone == 1
    (wanted,) = made.wanted
    assert (wanted.sysctl, wanted.shape["a"].down_bit_per_s) == ({"net.ipv4.tcp_sack": 0}, 1e6)
    assert all(m["conditions"]["sysctl"]["net.ipv4.tcp_sack"]["before"] == "1" for m in found)
    assert all(m["parameters"]["stall_s"] == 3 for m in found)
    assert all(m["usage"]["shared_by_pair"] for m in found)


# --- plans of paired runs

CONFIG = good()


def test_order_and_primary_are_spread_over_many_pairs_by_the_seed():
    request = configured_request(CONFIG, "sequential", "request")
    orders, primaries = Counter(), Counter()
    for number in range(600):
        one, again = plan(CONFIG, request, number), plan(CONFIG, request, number)
        runs = [(r.kind, r.paths) for r in one.runs]
        assert (one.seed, runs) == (again.seed, [(r.kind, r.paths) for r in again.runs])
        orders[tuple((r.kind, "-" if r.kind == "mptcp" else r.path) for r in one.runs)] += 1
        primaries[next(r.path for r in one.runs if r.kind == "mptcp")] += 1
    assert len(orders) == 6
    assert min(orders.values()) > 60
    assert min(primaries.values()) > 240


def test_what_is_asked_becomes_a_request_with_its_defaults():
    request = parse_download(CONFIG, {"kind": "tcp", "path": "b", "bytes": 1000})
    requested = (request.pairing, request.kind, request.path, request.bytes, request.seconds)
    assert requested == ("single", "tcp", "b", 1000, None)
    assert [(r.kind, r.paths) for r in plan(CONFIG, request, 3).runs] == [("tcp", ("b",))]
    request = parse_download(CONFIG, {"kind": "mptcp", "path": "b", "seconds": 3})
    assert plan(CONFIG, request, 3).runs[0].paths == ("b", "a")
    assert parse_download(CONFIG, {}).pairing == "sequential"
    assert parse_download(CONFIG, {"pairing": "simultaneous"}).seconds == 8.0


def test_a_pair_over_fewer_paths_than_there_are_has_no_run_over_the_others():
    request = parse_download(CONFIG, {"paths": ["b"]})
    runs = plan(CONFIG, request, 0).runs
    assert sorted((r.kind, r.paths) for r in runs) == [("mptcp", ("b",)), ("tcp", ("b",))]
    usual = replace(CONFIG, runs=replace(CONFIG.runs, primary="a"))
    assert parse_download(usual, {"paths": ["b"]}).primary == "b"
    assert parse_download(usual, {"paths": ["b", "a"]}).primary == "a"


def test_who_wants_quiet_is_said_by_the_experiment_itself():
    names, registry = ("latency", "steps", "download"), Registry(OWN)
    quiet = {name: parse_request(CONFIG, registry, name, {}, "request").quiet for name in names}
    assert quiet == {"latency": True, "steps": False, "download": False}
