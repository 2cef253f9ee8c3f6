"""Any experiment by the running collector on the bench: a person's own, under sysctls and shaping, with what it cost each path."""

from __future__ import annotations

import json
import signal
import subprocess

import pytest
from kit_on_rig import KitOnRig, awaited

pytestmark = [pytest.mark.lab, pytest.mark.slow]

SACK = "net.ipv4.tcp_sack"


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
