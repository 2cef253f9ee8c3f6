"""Collector and server meet the bench: three paths, a path that goes black, a modem that goes away, a subflow that the network resets."""

from __future__ import annotations

from typing import Any

import pytest

from support.running_kit import RunningKit, awaited
from tandem_bench.run.configuration import MEASUREMENT_PORT

pytestmark = [pytest.mark.lab, pytest.mark.slow]

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
