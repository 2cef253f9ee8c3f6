"""The papers' campaigns in their short forms, by the real collector over two operators and a Wi-Fi, to the end."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from kit_on_rig import KitOnRig

from tandem_bench.rig.rights import Owner, confined

pytestmark = [pytest.mark.lab, pytest.mark.slow]

CAMPAIGNS = (
    "adarsh-controlled",
    "adarsh-field",
    "chen-sizes",
    "cordero-bandwidth",
    "cordero-delay",
    "mohan-congestion",
    "mohan-dual-lte",
)


def campaign(kit: KitOnRig, *args: str, seconds: float = 240) -> subprocess.CompletedProcess[str]:
    """``tandem campaign`` as a person on the probe types it."""
    argv = [sys.executable, "-m", "tandem", "campaign", *args, "--config", str(kit.probe / "config.toml")]
    command = kit.rig.command("probe", confined(argv, Owner.of_caller()))
    return subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)


def manifests(kit: KitOnRig, name: str) -> list[dict[str, Any]]:
    """Of the campaign's runs."""
    told = [json.loads(file.read_text()) for file in (kit.probe / "runs").glob("*.json")]
    return [m for m in told if m.get("campaign", {}).get("name") == name]


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_a_short_form_runs_to_its_end(kit: KitOnRig, name: str) -> None:
    done = campaign(kit, "run", name, "--short", "--allow-substitutes", "--wait", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert told["state"] == "done"
    assert all(step["made"] == step["of"] > 0 for step in told["steps"].values())
    assert told["runs"] == {"ok": sum(step["of"] for step in told["steps"].values())}
    assert told["substitutes"]["scheduler"] == {"asked": "minsrtt", "used": "stock"}
    made = manifests(kit, name)
    assert all(m["campaign"]["short"] and m["campaign"]["substituted"]["scheduler"]["used"] == "stock" for m in made)
    assert {m["campaign"]["step"] for m in made} == set(told["steps"])
    assert all(m["failure"] is None for m in made)
    used = {role: plan["used_bytes"] for role, plan in told["budget"].items()}
    assert min(used.values()) > 1000, used


def test_what_the_kernel_lacks_is_refused_plainly(kit: KitOnRig) -> None:
    done = campaign(kit, "run", "chen-sizes", "--short")
    assert done.returncode == 2
    assert "chen-sizes.toml:" in done.stderr
    assert "requires scheduler minsrtt (this kernel has stock; minsrtt takes the v0.94 kernel)" in done.stderr
    assert "--allow-substitutes" in done.stderr
