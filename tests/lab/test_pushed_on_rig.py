"""Campaigns from the server's queue: the real server, the real collector, networks that go and come back."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.running_kit import PROBE, REPOSITORY, RunningKit, awaited, running_kit
from tandem_bench.run.programs import Owner, confined

pytestmark = [pytest.mark.lab, pytest.mark.slow]

S_RUNS = "s: run 1 of 5"
OWN = """\
format = "tandem-campaign-file/1"
name = "{name}"
title = "t"
roles = ["a", "b"]
[[step]]
name = "s"
experiment = "download"
repetitions = {repetitions}
[step.parameters]
kind = "mptcp"
path = "a"
{size}
"""


@pytest.fixture(scope="module")
def kit(influxd: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningKit]:
    more = "\n[campaigns]\nask_every_s = 1\n"
    with running_kit(tmp_path_factory.mktemp("rig"), influxd, more=more) as running:
        yield running


def server(kit: RunningKit, *args: str) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = json.loads(kit.server("campaign", *args, "--json"))
    return told


def push(kit: RunningKit, name: str, size: str, repetitions: int, *more: str) -> str:
    file = kit.folder / f"{name}.toml"
    file.write_text(OWN.format(name=name, size=size, repetitions=repetitions))
    (row,) = server(kit, "push", str(file), "--probes", PROBE, *more)
    return str(row["id"])


def reaches(kit: RunningKit, push: str, state: str) -> Callable[[], bool]:
    return lambda: bool(server(kit, "status", push)[0]["state"] == state)


def condition(kit: RunningKit, wait_s: int = 0, config: str | None = None) -> subprocess.CompletedProcess[str]:
    """The command of the systemd unit that the collector's page shows, on this probe."""
    text = (REPOSITORY / "docs/contributing/collector.md").read_text()
    (line,) = re.findall(r"^ExecCondition=/bin/sh -c '(.*)'$", text, re.MULTILINE)
    assert " --wait 3600;" in line
    tandem = f"{sys.executable} -m tandem"
    where = config or str(kit.probe / "config.toml")
    script = (
        line.replace("$$", "$")
        .replace("tandem ", f"{tandem} ", 1)
        .replace("--wait 3600", f"--wait {wait_s} --config {where}")
    )
    command = kit.rig.command("probe", confined(["/bin/sh", "-c", script], Owner.of_caller()))
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def of_push(kit: RunningKit, push: str) -> list[dict[str, Any]]:
    told = [json.loads(file.read_text()) for file in (kit.probe / "runs").glob("*.json")]
    return [m for m in told if m.get("campaign", {}).get("push") == push]


def test_pushed_taken_done_and_seen_at_the_server(kit: RunningKit) -> None:
    one = push(kit, "first", "bytes = 200_000", 2, "--path", "a=b", "--priority", "60")
    awaited("the campaign is done", reaches(kit, one, "done"))
    (row,) = server(kit, "status", one)
    assert (row["steps"], row["runs"]) == ({"s": {"made": 2, "of": 2}}, {"ok": 2})
    runs = of_push(kit, one)
    assert [m["campaign"]["roles"]["a"] for m in runs] == ["b", "b"]
    awaited("the ledger has its runs", lambda: {m["id"] for m in runs} <= set(kit.ledger_by_run()))


def test_a_papers_pilot_runs_on_this_kernel_and_its_progress_is_seen(kit: RunningKit) -> None:
    """The scenario stands still: of its steps only the one that looks at the operators' ways begins."""
    (row,) = server(kit, "push", "mohan-dual-lte", "--form", "pilot", "--probes", "all")
    one = str(row["id"])
    awaited("its first run is made", lambda: server(kit, "status", one)[0]["steps"].get("ways", {}).get("made") == 1)
    (run,) = of_push(kit, one)
    assert (run["campaign"]["form"], run["failure"]) == ("pilot", None)
    assert run["campaign"]["substituted"]["scheduler"]["used"] == "stock"
    title, _, told = kit.server("campaign", "status", "mohan-dual-lte").splitlines()[:3]
    assert title == "mohan-dual-lte (pilot form), 0 of 1 done"
    assert told.split()[:5] == [PROBE, "running", "1", "133", "0"]
    asked = """SELECT last("made") FROM "campaign" WHERE "campaign" = 'mohan-dual-lte' AND "made" = 1 AND "of" = 133"""
    awaited("the board has it", lambda: bool(kit.query(asked)))
    server(kit, "withdraw", one)
    awaited("the campaign is withdrawn", reaches(kit, one, "withdrawn"))


def test_off_the_network_it_waits_at_the_server_and_is_done_when_the_probe_is_back(kit: RunningKit) -> None:
    with kit.ruled("probe", "chain out { type filter hook output priority 0; tcp dport 8443 reject with tcp reset; }"):
        one = push(kit, "second", "bytes = 200_000", 1)

        def trouble() -> bool:
            told = json.loads(kit.tool("probe", "tandem", "campaign", "status", "--json", *kit.probe_config))
            return told["queue"]["trouble"] is not None

        awaited("the probe says that the server does not answer", trouble)
        assert reaches(kit, one, "queued")()
    awaited("the campaign is done", reaches(kit, one, "done"))


def test_withdrawn_its_run_is_ended_and_the_next_of_the_queue_begins(kit: RunningKit) -> None:
    one = push(kit, "endless", "seconds = 3000", 5)
    awaited("it runs", lambda: kit.status()["run"] is not None and reaches(kit, one, "running")())
    held = condition(kit)
    assert (held.returncode, held.stdout.splitlines()) == (1, [f"held: campaign endless: {S_RUNS}"])
    waits = push(kit, "third", "bytes = 200_000", 1)
    awaited("the next is taken", reaches(kit, waits, "taken"))
    server(kit, "withdraw", "endless")
    awaited("the campaign is withdrawn", reaches(kit, one, "withdrawn"))
    awaited("the next is done", reaches(kit, waits, "done"))
    (ended,) = of_push(kit, one)
    assert ended["failure"]["reason"] == "stopped"
    assert ended["result"]["bytes"] > 0


def test_a_power_cut_makes_no_run_twice(kit: RunningKit) -> None:
    one = push(kit, "cut", "seconds = 2", 3)
    lines = kit.probe / "campaigns" / one / "runs.jsonl"

    def held_in_a_run() -> bool:
        """One run is whole, and another is under way: an odd number of lines, while the collector stands still."""
        if not lines.exists() or len(lines.read_bytes().splitlines()) < 3:
            return False
        os.kill(kit.collector.pid, signal.SIGSTOP)
        if len(lines.read_bytes().splitlines()) % 2 == 0:
            os.kill(kit.collector.pid, signal.SIGCONT)
            return False
        return True

    awaited("another run begins", held_in_a_run)
    kit.collector_cut()
    awaited("the campaign is done", reaches(kit, one, "done"))
    (row,) = server(kit, "status", one)
    assert row["steps"] == {"s": {"made": 3, "of": 3}}
    entries = {(e["number"], e["attempt"]): e for e in map(json.loads, lines.read_text().splitlines())}
    whole = [number for (number, _), entry in entries.items() if entry["ended"] is not None]
    assert sorted(whole) == [0, 1, 2]
    assert len([entry for entry in entries.values() if entry["ended"] is None]) == 1


def test_maintenance_goes_on_when_nothing_is_measured_and_when_nobody_can_tell(kit: RunningKit) -> None:
    """The scenario stands still: nothing is measured now."""
    assert condition(kit, wait_s=60).stdout == "idle\n"
    broken = condition(kit, config="/nowhere/config.toml")
    assert (broken.returncode, broken.stdout) == (0, "")
    assert "/nowhere/config.toml" in broken.stderr
