"""Experiments by the running collector on the bench, whose server announces a second address: a person's own, under sysctls and shaping,
with what it cost each path; a number of subflows, and pairs over fewer paths than there are; the survey's over the operators' NATs."""

from __future__ import annotations

import json
import signal
import subprocess
from typing import Any

import pytest
from kit_on_rig import KitOnRig, awaited

pytestmark = [pytest.mark.lab, pytest.mark.slow]

SACK = "net.ipv4.tcp_sack"
FIRST, SECOND = "203.0.113.10", "203.0.113.11"


def leftovers(kit: KitOnRig) -> str:
    shown = kit.rig.command("probe", ["sh", "-c", "tc qdisc show | grep 7100: ; ip -br link | grep tshape; true"])
    return subprocess.run(shown, capture_output=True, text=True, check=True, timeout=20).stdout


def test_a_persons_own_experiment_is_measured_recorded_and_accounted(kit: KitOnRig) -> None:
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
    row = awaited("the ledger calls it complete", lambda: (r := kit.ledger().get(run["id"])) and not r["missing"] and r)
    assert row["records"]["phase"]["arrived"] == 3
    assert row["records"]["run_usage"]["arrived"] == 2


def test_a_download_under_conditions_is_slowed_on_its_path_and_nothing_stays(kit: KitOnRig) -> None:
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
    assert free["environment"]["experiment"]["sysctls"][SACK] == "1"


def under_way(kit: KitOnRig) -> bool:
    return bool((kit.status()["run"] or {}).get("runs"))


def test_another_shell_ends_what_is_measured(kit: KitOnRig) -> None:
    running = kit.experiment("--kind", "tcp", "--path", "wifi", "--seconds", "60")
    awaited("it measures", lambda: under_way(kit))
    told = json.loads(
        kit.tool("probe", "tandem", "experiment", "stop", "--json", "--config", str(kit.probe / "config.toml"))
    )
    assert [r["failure"] for r in told["results"]] == ["stopped"]
    out, _ = running.communicate(timeout=120)
    assert running.returncode == 1
    assert json.loads(out)["runs"] == told["runs"]


def test_ctrl_c_ends_what_was_begun(kit: KitOnRig) -> None:
    # A shell's background job ignores Ctrl-C, and hands that on to what it starts.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        running = kit.experiment("--kind", "tcp", "--path", "wifi", "--seconds", "60")
    finally:
        signal.signal(signal.SIGINT, before)
    awaited("it measures", lambda: under_way(kit))
    running.send_signal(signal.SIGINT)
    out, errors = running.communicate(timeout=120)
    assert running.returncode == 130, errors
    assert "ending it" in errors
    assert [r["failure"] for r in json.loads(out)["results"]] == ["stopped"]
    awaited("the collector is free", lambda: kit.status()["run"] is None)


def test_what_the_kernel_lacks_is_refused_plainly(kit: KitOnRig) -> None:
    running = kit.experiment("--sysctl", "net.ipv4.tcp_nosuch=1", name="handshake")
    _, errors = running.communicate(timeout=120)
    assert running.returncode == 3
    assert "sysctl net.ipv4.tcp_nosuch: this kernel has none, or hides it" in errors


def test_the_account_of_each_path_is_kept(kit: KitOnRig) -> None:
    def spent() -> dict[str, int]:
        file = kit.probe / "account.json"
        told = json.loads(file.read_text())["paths"] if file.exists() else {}
        return {path: sum(row["received"] for row in days.values()) for path, days in told.items()}

    before = spent()
    (run,) = kit.measured("--kind", "tcp", "--path", "a", "--seconds", "2")
    carried = run["usage"]["paths"]["a"]["received"]
    assert carried > run["result"]["bytes"] > 0
    awaited("the account has the download", lambda: spent().get("a", 0) - before.get("a", 0) >= carried)
    grown = {path: received - before.get(path, 0) for path, received in spent().items()}
    assert grown["b"] < carried, "and only the path that carried it"


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


def test_both_operators_carry_multipath_tcp_in_both_roles(kit: KitOnRig) -> None:
    (run,) = kit.measured("--set", "bytes=100000", "--paths", "a,b", name="verdict")
    assert run["failure"] is None
    for path in "ab":
        found = run["result"]["paths"][path]
        assert (found["primary"]["verdict"], found["join"]["verdict"]) == ("native", "native")
        assert found["tcp"]["something_between"] is not True


def test_latency_through_the_nats(kit: KitOnRig) -> None:
    setting = [word for pair in ("seconds=3", "load=none") for word in ("--set", pair)]
    (run,) = kit.measured(*setting, "--paths", "a,b", name="latency")
    assert run["failure"] is None
    assert {s["path"] for s in run["result"]["streams"]} == {"a", "b"}
    for stream in run["result"]["streams"]:
        assert stream["received"] > 0
        assert stream["rtt_ms"]["p50"] > 10  # the emulated links' own


def test_the_operators_ways_to_the_server(kit: KitOnRig) -> None:
    setting = [word for pair in ("protocol=tcp", "tries=3") for word in ("--set", pair)]
    (run,) = kit.measured(*setting, "--paths", "a,b", name="traceroute")
    assert run["failure"] is None
    assert {t["ended"] for t in run["result"]["traces"]} == {"reached"}
    assert all(len(t["hops"]) > 1 for t in run["result"]["traces"])
