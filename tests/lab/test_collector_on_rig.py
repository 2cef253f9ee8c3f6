"""Collector and server meet the bench, whose server announces a second address: three paths, a path that goes black, a subflow that the
network resets; experiments, a person's own among them, under sysctls and shaping, with what they cost each path.

Those that are measured by hand alone, and numbers of subflows: test_campaigns_on_rig.py."""

from __future__ import annotations

import json
import os
import signal
from typing import Any

import pytest

from support.running_kit import RunningKit, awaited
from tandem_bench.run.configuration import MEASUREMENT_PORT
from tandem_bench.run.programs import READY_S

pytestmark = [pytest.mark.lab, pytest.mark.slow]

SACK = "net.ipv4.tcp_sack"
FIRST = "203.0.113.10"
PATHS = {"a": "A", "b": "B", "wifi": "wifi"}


def carried(manifest: dict[str, Any]) -> dict[str, int]:
    """Bytes by path of the run's subflows."""
    flows = manifest["result"]["subflows"]
    assert len({flow["path"] for flow in flows}) == len(flows), flows
    return {flow["path"]: flow["bytes"] for flow in flows}


def test_status_shows_both_modems_each_found_by_its_own_answers(kit: RunningKit) -> None:
    status = awaited("both were polled", lambda: (s := kit.status())["polls"].get("made", 0) >= 4 and s)
    assert {path: (m["operator"], m["driver"]) for path, m in status["modems"].items() if m["driver"]} == {
        "a": ("A", "quectel"),
        "b": ("B", "huawei"),
    }
    assert all(status["modems"][path]["rsrp_dbm"] < -40 for path in "ab")
    assert status["trouble"] is None
    assert status["mobile"] is False


def test_mptcp_takes_all_three_paths_and_its_records_arrive(kit: RunningKit) -> None:
    (run,) = kit.measured("--kind", "mptcp", "--path", "wifi", "--seconds", "4")
    assert run["failure"] is None
    assert run["result"]["fallback"] is False
    assert run["paths"][0] == "wifi"
    by_path = carried(run)
    assert set(by_path) == set(PATHS)
    assert min(by_path.values()) > 0
    # What every path brought is the payload, and what came twice.
    assert sum(by_path.values()) >= run["result"]["bytes"]
    assert {file["name"].rpartition("-")[2] for file in run["files"]} == {f"{path}.pcap" for path in PATHS}
    row = awaited(
        "the ledger calls it complete", lambda: (r := kit.ledger_by_run().get(run["id"])) and not r["missing"] and r
    )
    assert row["probe"] == "probe-1"
    stored = kit.query(
        'SELECT count("bytes_received") FROM "subflow" WHERE "run" = $run AND "end" = $end GROUP BY "path", "operator"',
        run=run["id"],
        end="probe",
    )
    assert {s["tags"]["path"]: s["tags"]["operator"] for s in stored} == PATHS
    assert all(s["rows"][0][1] >= 2 for s in stored)


def test_a_path_that_goes_black_in_a_run_stops_neither_run_nor_records(kit: RunningKit) -> None:
    # The path that records take now is the one to lose.
    black = awaited("records are sent", lambda: kit.status()["spool"].get("path"))
    running = kit.experiment("--kind", "mptcp", "--path", black, "--seconds", "3000")

    def flows() -> list[dict[str, Any]]:
        pair = kit.status()["run"]
        return pair["runs"][0]["subflows"] if pair and pair["runs"] else []

    awaited("all paths carry", lambda: {f["path"] for f in flows() if (f["bytes"] or 0) > 100_000} == set(PATHS))
    kit.rig.topology.links[black].set("both", "outage", "on")
    try:
        stored, seen = kit.polls_stored("b"), flows()

        def only_the_others_carry() -> bool:
            nonlocal seen
            before, seen = {f["path"]: f["bytes"] or 0 for f in seen}, flows()
            carry = {f["path"] for f in seen if (f["bytes"] or 0) > before.get(f["path"], 0)}
            return carry == set(PATHS) - {black}

        awaited("the others go on, and it does not", only_the_others_carry)
        awaited("records arrive by another path", lambda: kit.polls_stored("b") >= stored + 5)
        assert kit.stopped(running)["result"]["fallback"] is False
        assert kit.status()["spool"]["path"] != black
    finally:
        kit.rig.topology.links[black].clear("both", "outage")
    (again,) = kit.measured("--kind", "mptcp", "--path", black, "--seconds", "3")
    assert again["failure"] is None
    assert set(carried(again)) == set(PATHS)
    assert min(carried(again).values()) > 0


def test_a_subflow_that_the_network_reset_comes_back_and_the_run_says_so(kit: RunningKit) -> None:
    assert {path: shown["state"] for path, shown in kit.status()["paths"].items()} == dict.fromkeys(PATHS, "up")
    running = kit.experiment("--kind", "mptcp", "--path", "a", "--seconds", "3000")
    flows = lambda: ((kit.status()["run"] or {}).get("runs") or [{}])[0].get("subflows", [])  # noqa: E731
    awaited("all paths carry", lambda: {f["path"] for f in flows() if (f["bytes"] or 0) > 100_000} == set(PATHS))
    # To the server, whose sequence number fits: one to the probe would be late by what is in flight, and not be believed.
    one = f"tcp sport {MEASUREMENT_PORT} limit rate 1/hour burst 1 packets reject with tcp reset"
    restored = 'SELECT "took_ms" FROM "event" WHERE "kind" = $kind GROUP BY "path"'
    with kit.ruled("op-b", f"chain pass {{ type filter hook forward priority mangle; oifname ran0 {one}; }}"):
        stored = awaited("the event is in the database", lambda: kit.query(restored, kind="subflow_restored"))
        run = kit.stopped(running)
    (loss,) = run["result"]["subflow_losses"]
    assert loss["path"] == "b"
    assert loss["back_after_ms"] > 0
    assert run["started_monotonic_ns"] < loss["at_monotonic_ns"] < run["ended_monotonic_ns"]
    assert [(s["tags"]["path"], s["rows"][0][1]) for s in stored] == [("b", loss["back_after_ms"])]


# --- experiments: a person's own, under sysctls and shaping, over fewer paths than there are


def leftovers(kit: RunningKit) -> str:
    return kit.run("probe", "sh", "-c", "tc qdisc show | grep 7100: ; ip -br link | grep tshape; true")


def test_a_persons_own_experiment_is_measured_recorded_and_accounted(kit: RunningKit) -> None:
    (run,) = kit.measured("--set", "times=3", "--set", "pause_s=0.05", "--paths", "b,wifi", name="handshake")
    assert run["failure"] is None
    units = {"bytes_by_path": "B", "connect_ms": "ms", "median_ms": "ms"}
    assert run["experiment"] == {"name": "handshake", "version": 1, "units": units}
    assert (run["kind"], run["paths"]) == ("any", ["b", "wifi"])
    result = run["result"]
    assert sorted(result["order"]) == ["b", "b", "b", "wifi", "wifi", "wifi"]
    assert all(t > 1 for times in result["connect_ms"].values() for t in times)
    assert "result_faults" not in run["environment"]["further"]
    # Three handshakes each way are at least three segments of 40 bytes.
    for path in ("b", "wifi"):
        assert run["usage"]["paths"][path]["sent"] >= 120
        assert run["usage"]["paths"][path]["received"] >= 120
    row = awaited(
        "the ledger calls it complete", lambda: (r := kit.ledger_by_run().get(run["id"])) and not r["missing"] and r
    )
    assert row["records"]["phase"]["arrived"] == 3
    assert row["records"]["run_usage"]["arrived"] == 2


def test_a_download_under_conditions_is_slowed_on_its_path_and_nothing_stays(kit: RunningKit) -> None:
    before = kit.status()["run"]
    assert before is None
    shape = ("--shape", "wifi:down_bit_per_s=2e6", "--sysctl", f"{SACK}=0")
    (run,) = kit.measured("--kind", "tcp", "--path", "wifi", "--seconds", "4", *shape)
    assert run["failure"] is None
    conditions = run["conditions"]
    told = conditions["sysctl"][SACK]
    assert (told["before"], told["now"], told["at_end"]) == ("1", "0", "0")
    assert conditions["shape"]["wifi"]["held"] is True
    assert run["environment"]["experiment"]["sysctls"][SACK] == "0"
    assert 0 < run["result"]["goodput_bit_per_s"] < 2e6
    carried = run["usage"]["paths"]["wifi"]["received"]
    assert carried > run["result"]["bytes"]  # headers, and what was dropped behind the interface
    assert leftovers(kit) == ""
    (free,) = kit.measured("--kind", "tcp", "--path", "wifi", "--seconds", "2")
    assert "conditions" not in free
    told = free["environment"]["experiment"]
    kept = "tcp_no_metrics_save"  # at both ends: else a transfer would begin with what the one before learned
    assert (told["sysctls"][SACK], told["sysctls"][f"net.ipv4.{kept}"], told["server"][kept]) == ("1", "1", "1")


def test_bandwidth_over_paths_shaped_to_a_ratio_is_recorded_phase_by_phase(kit: RunningKit) -> None:
    shape = ("--shape", "a:up_bit_per_s=4e6", "--shape", "b:up_bit_per_s=1e6")
    setting = [word for one in ("mode=oneway", "seconds=1.5", "primary=a") for word in ("--set", one)]
    (run,) = kit.measured(*setting, "--paths", "a,b", *shape, name="bandwidth")
    assert run["failure"] is None
    (told,) = run["result"]["rounds"]
    assert told["bandwidth_ratio"] >= 1
    assert {p["name"] for p in told["phases"]} == {"tcp a", "tcp b", "tcp-all", "mptcp a"}
    assert told["benefits"][0]["benefit"] is not None
    assert "result_faults" not in run["environment"]["further"]
    row = awaited(
        "the ledger calls it complete", lambda: (r := kit.ledger_by_run().get(run["id"])) and not r["missing"] and r
    )
    assert row["records"]["phase"]["arrived"] == 4
    assert row["records"]["subflow"]["arrived"] == row["records"]["subflow"]["promised"] > 0
    assert row["records"]["run_begun"] == {"promised": 1, "arrived": 1}
    assert row["records"]["aggregation"] == {"promised": 1, "arrived": 1}


def test_what_the_kernel_lacks_is_refused_plainly(kit: RunningKit) -> None:
    running = kit.experiment("--sysctl", "net.ipv4.tcp_nosuch=1", name="handshake")
    _, errors = running.communicate(timeout=120)
    assert running.returncode == 3
    assert "sysctl net.ipv4.tcp_nosuch: this kernel has none, or hides it" in errors


def under_way(kit: RunningKit) -> bool:
    return bool((kit.status()["run"] or {}).get("runs"))


def test_another_shell_ends_what_is_measured(kit: RunningKit) -> None:
    running = kit.experiment("--kind", "tcp", "--path", "wifi", "--seconds", "3000")
    awaited("it measures", lambda: under_way(kit))
    told = json.loads(kit.tool("probe", "tandem", "experiment", "stop", "--json", *kit.probe_config))
    assert [r["failure"] for r in told["results"]] == ["stopped"]
    out, _ = running.communicate(timeout=120)
    assert running.returncode == 1
    assert json.loads(out)["runs"] == told["runs"]


def test_ctrl_c_ends_what_was_begun(kit: RunningKit) -> None:
    # A shell's background job ignores Ctrl-C, and hands that on to what it starts.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        running = kit.experiment("--kind", "tcp", "--path", "wifi", "--seconds", "3000")
    finally:
        signal.signal(signal.SIGINT, before)
    awaited("it measures", lambda: under_way(kit))
    running.send_signal(signal.SIGINT)
    out, errors = running.communicate(timeout=120)
    assert running.returncode == 130, errors
    assert "ending it" in errors
    assert [r["failure"] for r in json.loads(out)["results"]] == ["stopped"]
    awaited("the collector is free", lambda: kit.status()["run"] is None)


def places(run: dict[str, Any]) -> set[tuple[str, str]]:
    """Path and server's address of every subflow that was established."""
    return {(s["path"], s["server_address"]) for s in run["result"]["subflows"]}


def endpoints(kit: RunningKit) -> int:
    return len(kit.run("probe", "ip", "mptcp", "endpoint", "show").splitlines())


def test_a_pair_over_two_of_three_paths_leaves_the_third_alone(kit: RunningKit) -> None:
    runs = kit.measured("--pairing", "simultaneous", "--paths", "wifi,b", "--seconds", "2", "--subflows", "2")
    assert sorted((r["kind"], sorted(r["paths"])) for r in runs) == [
        ("mptcp", ["b", "wifi"]),
        ("tcp", ["b"]),
        ("tcp", ["wifi"]),
    ]
    assert [r["failure"] for r in runs] == [None] * 3
    (mptcp,) = [r for r in runs if r["kind"] == "mptcp"]
    assert places(mptcp) == {("wifi", FIRST), ("b", FIRST)}
    assert {"subflows" in r["parameters"] for r in runs if r["kind"] == "tcp"} == {False}
    # Not even the control channel may take the third.
    assert all({p["name"] for p in r["parameters"]["paths"]} == {"wifi", "b"} for r in runs)


def test_fewer_paths_hold_for_the_kernels_path_manager_too_and_for_this_pair_alone(kit: RunningKit) -> None:
    (run,) = kit.measured("--kind", "mptcp", "--path", "b", "--paths", "a,b", "--seconds", "2")
    assert run["failure"] is None
    assert run["result"]["subflows_asked"] is None
    assert {path for path, _ in places(run)} == {"a", "b"}
    awaited("all paths join again", lambda: endpoints(kit) == 3)
    (after,) = kit.measured("--kind", "mptcp", "--path", "b", "--seconds", "2")
    assert {path for path, _ in places(after)} == {"a", "b", "wifi"}


def test_what_a_killed_collector_left_of_its_conditions_the_next_one_undoes(kit: RunningKit) -> None:
    def sack() -> str:
        return kit.run("probe", "sysctl", "-n", SACK).strip()

    shape = ("--shape", "a:down_bit_per_s=1e6,up_bit_per_s=1e6", "--sysctl", f"{SACK}=0")
    running = kit.experiment("--set", "times=1000", "--set", "pause_s=60", *shape, name="handshake")
    awaited("the conditions are made", lambda: "tshape" in leftovers(kit) and sack() == "0")
    os.kill(kit.collector.pid, signal.SIGKILL)
    kit.programs.end(kit.collector)
    running.communicate(timeout=240)
    assert ("tshape" in leftovers(kit), sack()) == (True, "0")
    kit.collector = kit.programs.start("collector", kit.collector.argv, READY_S)
    awaited("all is as before", lambda: (leftovers(kit), sack()) == ("", "1"))
