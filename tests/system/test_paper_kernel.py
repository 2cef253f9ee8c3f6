"""The kit on another kernel, in a virtual machine: the distribution's own, which tries the rig itself, and with
``TANDEM_KERNEL_V094=FILE`` a user's image of Multipath TCP v0.94. Emulated: nothing here is held by a rate."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from vm import machine

from tandem_bench.cli import kernel as command

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(3600), machine.NEEDED]
PAPERS = os.environ.get("TANDEM_KERNEL_V094")
WITHOUT = pytest.mark.skipif(PAPERS is None, reason="no image of that kernel; TANDEM_KERNEL_V094=FILE names one")
IMAGES = ["stock", pytest.param(PAPERS or "none", id="v0.94", marks=WITHOUT)]
Played = Callable[..., dict[str, Any]]


@pytest.fixture
def played(tmp_path: Path) -> Played:
    """``kernel.json`` of one machine."""

    def play(name: str, *words: str) -> dict[str, Any]:
        argv = [sys.executable, "-m", "tandem_bench", "kernel", "--image", name, "--out", str(tmp_path / "out"), *words]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=3500, check=False)
        print(done.stdout)
        assert done.returncode == 0, done.stdout + done.stderr
        told: dict[str, Any] = json.loads((tmp_path / "out" / command.MANIFEST).read_text())
        return told

    return play


@pytest.mark.parametrize("name", IMAGES)
def test_the_kernel_does_what_the_collector_takes_for_granted(played: Played, name: str) -> None:
    told = played(name, "--self-test")
    rows = told["self_test"]["rows"]
    assert [row for row in rows if not row["ok"]] == []
    assert {"connection", "bytes", "controller", "endpoint made anew", "address lost and back"} <= {
        r["name"] for r in rows
    }
    assert told["self_test"]["protocol"] == (1 if name == "stock" else 0)
    assert told["release"] == told["self_test"]["linux"]


@pytest.mark.parametrize("name", IMAGES)
def test_three_downloads_by_the_collectors_and_the_servers_own_programs(
    played: Played, name: str, tmp_path: Path
) -> None:
    told = played(name)
    runs = told["runs"]
    lines = [line.split(":")[0].strip() for line in command.text(told, tmp_path).splitlines()]
    assert lines[1:4] == ["download mptcp a", "download mptcp b", "download tcp a"]
    assert [(run["kind"], run["failure"]) for run in runs] == [("mptcp", None), ("mptcp", None), ("tcp", None)]
    for run, first in zip(runs[:2], ("a", "b"), strict=True):
        result = run["result"]
        assert (result["fallback"], result["subflows_reached"]) == (False, 2)
        assert run["parameters"]["path"] == first
        assert sum(moved["received"] for moved in result["bytes_by_path"].values()) >= result["bytes"] == 1_000_000
    assert set(runs[2]["result"]["bytes_by_path"]) == {"a"}
    environment = runs[0]["environment"]["experiment"]
    assert (
        environment["multipath"]["protocol"]
        == int(environment["server"]["mptcp_protocol"])
        == (1 if name == "stock" else 0)
    )
    assert told["machine"]["emulator_resident_bytes"] > 0
