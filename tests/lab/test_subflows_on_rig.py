"""A number of subflows, and pairs over fewer paths than there are, by the running collector on the bench, whose server announces a
second address."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest
from kit_on_rig import KitOnRig, awaited

pytestmark = [pytest.mark.lab, pytest.mark.slow]

FIRST, SECOND = "203.0.113.10", "203.0.113.11"


def places(run: dict[str, Any]) -> set[tuple[str, str]]:
    """Path and server's address of every subflow that was established."""
    return {(s["path"], s["server_address"]) for s in run["result"]["subflows"]}


def endpoints(kit: KitOnRig) -> int:
    shown = kit.rig.command("probe", ["ip", "mptcp", "endpoint", "show"])
    return len(subprocess.run(shown, capture_output=True, text=True, check=True, timeout=20).stdout.splitlines())


def test_four_subflows_over_two_of_three_paths(kit: KitOnRig) -> None:
    asked = ("--kind", "mptcp", "--path", "wifi", "--paths", "wifi,b", "--subflows", "4", "--seconds", "5")
    (run,) = kit.measured(*asked)
    assert run["failure"] is None
    result = run["result"]
    assert (run["paths"], run["parameters"]["subflows"]) == (["wifi", "b"], 4)
    assert (result["subflows_asked"], result["subflows_reached"]) == (4, 4)
    assert places(run) == {(path, address) for path in ("wifi", "b") for address in (FIRST, SECOND)}
    assert all(o["established_ms"] > o["ordered_ms"] > 0 for o in result["subflow_orders"])
    assert all(s["join_delay_ms"] > 0 for s in result["subflows"][1:])
    assert result["subflow_losses"] == []
    # Both ends told of each, and the records of the subflows carry their paths.
    stored = awaited(
        "its records are in the database",
        lambda: (
            len(
                found := kit.query(
                    'SELECT max("bytes_sent") FROM "subflow" WHERE "run" = $run AND "end" = $end GROUP BY "path", "subflow"',
                    run=run["id"],
                    end="server",
                )
            )
            == 4
            and found
        ),
    )
    assert sorted(s["tags"]["path"] for s in stored) == ["b", "b", "wifi", "wifi"]


def test_a_pair_over_two_of_three_paths_leaves_the_third_alone(kit: KitOnRig) -> None:
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


def test_fewer_paths_hold_for_the_kernels_path_manager_too_and_for_this_pair_alone(kit: KitOnRig) -> None:
    (run,) = kit.measured("--kind", "mptcp", "--path", "b", "--paths", "a,b", "--seconds", "2")
    assert run["failure"] is None
    assert run["result"]["subflows_asked"] is None
    assert {path for path, _ in places(run)} == {"a", "b"}
    awaited("all paths join again", lambda: endpoints(kit) == 3)
    (after,) = kit.measured("--kind", "mptcp", "--path", "b", "--seconds", "2")
    assert {path for path, _ in places(after)} == {"a", "b", "wifi"}
