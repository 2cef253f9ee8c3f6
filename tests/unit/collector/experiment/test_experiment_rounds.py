"""The processes of ``bandwidth`` and ``delay`` against a scripted endpoint on loopback: two paths that are both lo."""

import io
import json
import math
import signal
from collections import Counter
from types import SimpleNamespace
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from support.experiment_process import Run, parameters, server_of
from tandem.experiment import base, results
from tandem.experiment.bandwidth import EXPERIMENT as BANDWIDTH
from tandem.experiment.bandwidth import _goodput
from tandem.experiment.delay import EXPERIMENT as DELAY
from tandem.experiment.delay import size_class
from tandem.experiment.rounds import log_uniform, rounds, steps
from tandem.mptcp import kernels
from tandem.schema.aggregation import delay_benefit
from tandem.schema.record import Record

LOOPBACK = [{"name": "a", "interface": "lo"}, {"name": "b", "interface": "lo"}]


class Process(Run):
    """Nothing is said on stderr, and the result is as declared."""

    def end(self, seconds: float = 240) -> dict[str, Any]:
        line = super().end(seconds)
        assert line["said"] == ""
        assert "result_faults" not in line
        return line


def sender(**connection: object) -> dict[str, object]:
    """The server's answer to a session's end."""
    return {"connections": [{"end": "complete", **connection}]}


@pytest.fixture
def given(endpoint, tmp_path):
    endpoint.behaviour.sender = sender()
    return parameters(server_of(tmp_path, endpoint, "127.0.0.1"), paths=LOOPBACK, control_timeout_s=30)


@pytest.fixture
def start(given):
    return lambda name, **own: Process(name, {**given, **own})


@pytest.mark.parametrize(
    ("mode", "method", "target", "rounds"), [("oneway", "POST", "/v1/upload", 2), ("reqresp", "GET", "/v1/download", 1)]
)
def test_bandwidth(start, endpoint, mode, method, target, rounds):
    endpoint.behaviour.rate = 4e5 if mode == "reqresp" else 60e6  # loopback's buffers hold MB of an upload
    process = start("bandwidth", mode=mode, seconds=0.5, repetitions=rounds, seed=5)
    line = process.end()
    result = line["result"]
    assert (process.process.returncode, line["failure"]) == (0, None)
    orders = [r["order"] for r in result["sequence"]]
    assert [r["order"] for r in result["rounds"]] == orders
    assert [p["name"] for p in process.of("phase")] == [name for order in orders for name in order]
    assert [(p["number"], p["of"]) for p in process.of("phase")] == [(n + 1, 5 * rounds) for n in range(5 * rounds)]
    transfers = [call for call in endpoint.calls if not call[1].startswith(("/v1/sessions", "/v1/whoami"))]
    assert transfers == [(method, f"{target}?seconds=0.500")] * (6 * rounds)  # a phase of both paths at once has two
    closed = {one for how, one in endpoint.calls if how == "DELETE"}
    assert len(endpoint.opened) == len(closed) == 6 * rounds
    assert [(o["kind"], o["path"]) for o in endpoint.opened][:6] == kinds(orders[0])
    for told in result["rounds"]:
        rate = [told["c_i_bit_per_s"][p] for p in "ab"]
        assert told["c_max_bit_per_s"] == max(rate)
        assert told["tdi"] == pytest.approx(told["c_total_bit_per_s"] / sum(rate))
        both = next(p for p in told["phases"] if p["name"] == "tcp-all")["connections"]
        assert [c["path"] for c in both] == ["a", "b"]
        assert [b["primary"] for b in told["benefits"]] == [s[6:] for s in told["order"] if s.startswith("mptcp")]
        assert all(b["fallback"] for b in told["benefits"])  # the scripted server is plain TCP
        assert all(-1 <= b["benefit"] <= 1 for b in told["benefits"] if b["benefit"] is not None)
    found = process.of("record")
    benefits = [(told, benefit) for told in result["rounds"] for benefit in told["benefits"]]
    for f, (told, benefit) in zip(found, benefits, strict=True):
        kept = Record.make(f["measurement"], f["tags"], f["fields"], f["monotonic_ns"])
        assert (kept.measurement, kept.tags) == ("aggregation", {"path": benefit["primary"], "mode": mode})
        assert (kept.monotonic_ns, kept.fields["round"]) == (told["begun_monotonic_ns"], told["number"])
        assert (kept.fields["tdi"], kept.fields.get("benefit")) == (told["tdi"], benefit["benefit"])
        assert kept.fields["c_sum_bit_per_s"] == pytest.approx(sum(told["c_i_bit_per_s"].values()))
        assert kept.fields["fallback"] is True
    assert {s["primary"] for s in result["summary"]} == {"a", "b"}
    assert all(s["rounds"] == rounds for s in result["summary"])
    samples = process.of("sample")
    assert {(s["connection"]["kind"], s["connection"]["path"]) for s in samples} == {
        (k, p) for k in ("tcp", "mptcp") for p in "ab"
    }
    assert all(s["subflows"] for s in samples)


def test_the_rate_of_a_phase_is_that_of_all_its_connections_together():
    connections = [SimpleNamespace(moved=(1000, 0.5)), SimpleNamespace(moved=(3000, 1.5))]
    assert _goodput(SimpleNamespace(connections=connections)) == 32_000
    assert _goodput(SimpleNamespace(connections=[*connections, SimpleNamespace(moved=None)])) is None


def kinds(order: list[str]) -> list[tuple[str, str]]:
    told = []
    for name in order:
        kind, _, path = name.partition(" ")
        told += [("tcp", "a"), ("tcp", "b")] if kind == "tcp-all" else [(kind, path)]
    return told


def test_delay_oneway_is_timed_at_the_agent(start, endpoint):
    asked = {"min_bytes": 100, "max_bytes": 10**6, "primary": "b", "congestion_control": "reno"}
    process = start("delay", mode="oneway", repetitions=3, seed=2, **asked)
    line = process.end()
    result = line["result"]
    assert (process.process.returncode, line["failure"], result["timed_at"]) == (0, None, "agent")
    assert [r["bytes"] for r in result["rounds"]] == [r["bytes"] for r in result["sequence"]]
    for told in result["rounds"]:
        assert sorted(told["order"]) == ["mptcp b", "tcp a", "tcp b"]
        for transfer in told["transfers"]:
            assert transfer["congestion_control"] == "reno"
            assert transfer["bytes"] == told["bytes"]
            assert transfer["agent_s"] > 0
            assert 0 <= transfer["agent_resolution_s"] <= transfer["agent_s"]
            assert transfer["server_s"] > 0
            assert transfer["connect_ms"] > 0
        (benefit,) = told["benefits"]
        assert benefit["delay_s"] == next(t["agent_s"] for t in told["transfers"] if t["kind"] == "mptcp")
        assert benefit["benefit"] == benefit["agent"]["benefit"]
        assert -1 <= benefit["benefit"] <= 1
    assert [f["tags"] for f in process.of("record")] == [{"path": "b", "mode": "oneway"}] * 3
    for f, told in zip(process.of("record"), result["rounds"], strict=True):
        kept = Record.make(f["measurement"], f["tags"], f["fields"], f["monotonic_ns"]).fields
        alone = [t["agent_s"] * 1000 for t in told["transfers"] if t["kind"] == "tcp"]
        assert kept["benefit"] == told["benefits"][0]["benefit"]
        assert kept["fastest_ms"] == pytest.approx(min(alone))
        assert kept["ideal_ms"] == pytest.approx(1 / sum(1 / d for d in alone))
        assert (kept["round"], kept["bytes"]) == (told["number"], told["bytes"])
    assert sum(s["rounds"] for s in result["summary"]) == 3
    assert len(process.of("sample")) == 9
    assert result["bytes"] == sum(3 * r["bytes"] for r in result["rounds"])
    # the wanted sizes are negotiated, and the head says how long the body is
    assert {o["bytes"] for o in endpoint.opened} == {r["bytes"] for r in result["rounds"]}


def test_delay_reqresp_is_timed_at_the_server_or_where_that_tells_no_time_by_the_agent(start, endpoint):
    endpoint.behaviour.sender = sender(request_to_last_ack_s=0.25, congestion_control="reno")
    line = start("delay", mode="reqresp", min_bytes=5000, max_bytes=5000, congestion_control="reno").end()
    (told,) = line["result"]["rounds"]
    assert all(one["options"] == {"congestion_control": "reno"} for one in endpoint.opened), "the sender's controller"
    assert {transfer["congestion_control"] for transfer in told["transfers"]} == {"reno"}
    assert line["result"]["timed_at"] == "server"
    assert told["bytes"] == 5000
    for benefit in told["benefits"]:
        assert benefit["delay_s"] == 0.25
        assert benefit["benefit"] == benefit["server"]["benefit"] == 0  # as fast as the fastest
        own = [t["agent_s"] for t in told["transfers"] if (t["kind"], t["path"]) == ("mptcp", benefit["primary"])]
        assert [benefit["agent"]["delay_s"]] == own
        assert benefit["agent"]["benefit"] is not None
    assert line["failure"] is None
    endpoint.behaviour.sender = sender(request_to_last_ack_s="soon")
    line = start("delay", mode="reqresp", min_bytes=5000, max_bytes=5000).end()
    (told,) = line["result"]["rounds"]
    assert line["failure"]["reason"] == "the server reported no time from request to last acknowledgement"
    assert [b["benefit"] for b in told["benefits"]] == [None, None]
    assert all(b["agent"]["benefit"] is not None for b in told["benefits"])


def test_parameters_that_make_no_sense_and_a_controller_that_is_not_there(given, monkeypatch, capsys):
    monkeypatch.setattr(base.Stop, "install", lambda _stop: None)  # this process keeps its signals
    cases = [
        (experiment, own, 2, mend)
        for experiment in (BANDWIDTH, DELAY)
        for own, mend in (
            ({"paths": [{"name": "a", "interface": "lo"}]}, "two or more are compared"),
            ({"primary": "c"}, "is none of the paths a, b"),
            ({"mode": "both"}, "not one of oneway, reqresp"),
            ({"seed": -1}, "below 0"),
        )
    ]
    cases += [
        (DELAY, {"min_bytes": 10, "max_bytes": 9}, 2, "above 'max_bytes'"),
        (DELAY, {"mode": "oneway", "congestion_control": "nosuch"}, 3, "congestion control 'nosuch'"),
    ]
    wrong = []
    for experiment, own, status, mend in cases:
        monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps({**given, **own})))
        ended, errors = base.main(experiment, []), capsys.readouterr().err
        if (ended, errors.count("\n")) != (status, 1) or mend not in errors:
            wrong.append((experiment.name, own, ended, errors))
    assert wrong == []


def test_what_the_kernels_counters_of_multipath_rose_by_stands_beside_what_kernel_it_is(monkeypatch):
    kernel = {"kernel": "v0.94", "protocol": 0}
    rows = [
        ({}, {"MPCapableSYNTX": 5}),
        ({"MPCapableSYNTX": 4, "MPTCPRetrans": 2}, {"MPCapableSYNTX": 5, "MPTCPRetrans": 2}),
    ]
    for before, now in rows:
        monkeypatch.setattr(kernels, "here", lambda now=now: SimpleNamespace(counters=lambda: now))
        found = results.with_counters({"python": "3", "multipath": kernel}, before)
        risen = {"MPCapableSYNTX": 5 - before.get("MPCapableSYNTX", 0)}
        assert found == {"python": "3", "multipath": {**kernel, "counters": risen}}
    assert results.with_counters({"python": "3"}, {}) == {"python": "3"}
    monkeypatch.setattr(kernels, "here", lambda: SimpleNamespace(counters=dict))
    assert results.with_counters({"multipath": kernel}, {}) == {"multipath": kernel}


def test_three_paths(start):
    paths = [{"name": n, "interface": "lo"} for n in "abc"]
    line = start("bandwidth", paths=paths, seconds=0.5, primary="c", whoami=False).end()
    (told,) = line["result"]["rounds"]
    assert sorted(told["order"]) == ["mptcp c", "tcp a", "tcp b", "tcp c", "tcp-all"]
    rates = told["c_i_bit_per_s"].values()
    assert (len(rates), told["c_max_bit_per_s"]) == (3, max(rates))
    together = next(p for p in told["phases"] if p["name"] == "tcp-all")
    assert {c["path"] for c in together["connections"]} == {"a", "b", "c"}
    assert told["tdi"] == pytest.approx(told["c_total_bit_per_s"] / sum(rates))
    line = start("delay", paths=paths, mode="oneway", min_bytes=9000, max_bytes=9000).end()
    (told,) = line["result"]["rounds"]
    assert [b["primary"] for b in told["benefits"]] == [s[6:] for s in told["order"] if s.startswith("mptcp")]
    alone = [t["agent_s"] for t in told["transfers"] if t["kind"] == "tcp"]
    for benefit in told["benefits"]:
        assert benefit["benefit"] == delay_benefit(alone, benefit["delay_s"]).clipped


def test_a_failing_transfer_leaves_its_round_without_a_benefit(start, endpoint):
    endpoint.behaviour.upload, endpoint.behaviour.after = "close", 50_000
    process = start("delay", mode="oneway", repetitions=4, seed=1, min_bytes=100, max_bytes=10**7)
    line = process.end()
    result = line["result"]
    small = [r for r in result["rounds"] if r["bytes"] < 40_000]
    large = [r for r in result["rounds"] if r["bytes"] > 100_000]
    assert small
    assert large, "the seed draws both"
    assert all(b["benefit"] is not None for r in small for b in r["benefits"])
    assert all(b["benefit"] is None for r in large for b in r["benefits"])
    assert line["failure"] is None
    assert line["failed_phases"] >= 4 * len(large)
    assert all(t["failure"] for r in large for t in r["transfers"])


def test_a_wrong_token_ends_the_run_at_once(start, endpoint):
    endpoint.behaviour.session_status = 401
    line = start("bandwidth", seconds=1, repetitions=100).end()
    assert line["failure"] == {"reason": "control channel: HTTP 401: as told", "retry": False}
    assert len(endpoint.opened) == 1


def test_told_to_stop_between_rounds(start):
    process = start("delay", mode="oneway", repetitions=2, interval_s=600, min_bytes=100, max_bytes=100)
    process.until(lambda phase: phase["number"] == 4, "phase")
    process.process.send_signal(signal.SIGTERM)
    line = process.end()
    assert line["failure"] == {"reason": "stopped", "retry": False}
    assert len(line["result"]["rounds"]) == 1
    assert process.process.returncode == 1


WAYS = steps(["a", "b"], ["a", "b"], together=True)


def test_steps_spacing_and_sizes_are_as_asked_and_every_order_comes_about_equally_often():
    assert [w.name for w in WAYS] == ["tcp a", "tcp b", "tcp-all", "mptcp a", "mptcp b"]
    assert [w.name for w in steps(["a", "b", "c"], ["b"], together=False)] == ["tcp a", "tcp b", "tcp c", "mptcp b"]
    seen = Counter(r.order for r in rounds(WAYS[:3], 6000, 1, "periodic", 0))
    assert len(seen) == 6
    assert all(850 < count < 1150 for count in seen.values())
    assert {r.gap_s for r in rounds(WAYS, 5, 1, "periodic", 300)[1:]} == {300}
    gaps = [r.gap_s for r in rounds(WAYS, 4001, 1, "poisson", 100)]
    assert gaps[0] == 0
    mean = sum(gaps) / 4000
    assert mean == pytest.approx(100, rel=0.05)
    assert math.sqrt(sum((g - mean) ** 2 for g in gaps[1:]) / 4000) == pytest.approx(100, rel=0.1)
    sizes = [r.bytes for r in rounds(WAYS, 8000, 3, "periodic", 0, (100, 10**6))]
    decades = Counter(int(math.log10(s)) for s in sizes if s < 10**6)
    assert set(decades) == {2, 3, 4, 5}
    assert all(1800 < n < 2200 for n in decades.values())


def test_a_seed_gives_one_sequence():
    """Written down: a campaign that is repeated years later must draw the same."""
    drawn = rounds(WAYS[:3], 3, 7, "poisson", 300, (100, 10**6))
    assert drawn == rounds(WAYS[:3], 3, 7, "poisson", 300, (100, 10**6))
    assert drawn != rounds(WAYS[:3], 3, 8, "poisson", 300, (100, 10**6))
    assert [r.to_dict() for r in drawn] == [
        {"bytes": 36025, "gap_s": 0.0, "order": ["tcp-all", "tcp b", "tcp a"]},
        {"bytes": 2921, "gap_s": 832.4761774116806, "order": ["tcp b", "tcp a", "tcp-all"]},
        {"bytes": 276570, "gap_s": 506.6391145115439, "order": ["tcp a", "tcp-all", "tcp b"]},
    ]


@hypothesis.given(st.floats(0, 1), st.integers(1, 10**9), st.integers(1, 10**9))
def test_a_size_is_never_outside_nor_out_of_its_class(at, one, other):
    least, greatest = sorted((one, other))
    assert least <= log_uniform(at, least, greatest) <= greatest
    least, below = size_class(one)
    assert least <= one < below
    assert str(least)[0] in "125"
