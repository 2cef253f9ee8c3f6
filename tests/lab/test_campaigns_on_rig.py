"""Campaigns by the real collector over two operators and a Wi-Fi: the papers' in their short forms, to the end; from the server's queue."""

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

from support.running_kit import PROBE, REPOSITORY, SITES, RunningKit, awaited, running_kit
from tandem_bench.run.programs import COLLECTOR, Owner, confined

pytestmark = [pytest.mark.lab, pytest.mark.slow]

CAMPAIGNS = ("adarsh-survey", "chen-sizes", "cordero-delay", "cordero-remote", "mohan-dash")
"""Each with experiments of its own. The last test plays adarsh-field; tests/system/test_example_campaign.py the others' kinds."""


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


def campaign(kit: RunningKit, *args: str, seconds: float = 600) -> subprocess.CompletedProcess[str]:
    """``tandem campaign`` as a person on the probe types it."""
    argv = [sys.executable, "-m", "tandem", "campaign", *args, *kit.probe_config]
    command = kit.rig.command("probe", confined(argv, Owner.of_caller()))
    return subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)


def manifests(kit: RunningKit, name: str) -> list[dict[str, Any]]:
    told = [json.loads(file.read_text()) for file in (kit.probe / "runs").glob("*.json")]
    return [m for m in told if m.get("campaign", {}).get("name") == name]


def strays(told: object) -> list[dict[str, Any]]:
    """Subflows that carried something over a path that the run was not asked for: their path has no name in it."""
    if isinstance(told, list):
        return [row for one in told for row in strays(one)]
    if not isinstance(told, dict):
        return []
    mine = [told] if "subflow" in told and told.get("path") is None and told.get("bytes") else []
    return mine + [row for one in told.values() for row in strays(one)]


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_a_short_form_runs_to_its_end(kit: RunningKit, name: str) -> None:
    if name == "mohan-dash":
        kit.server("dash", "build", "--seconds", "30")
    if name == "adarsh-survey":
        (kit.probe / "names.csv").write_text("".join(f"{n},{site}\n" for n, site in enumerate(SITES, 1)))
    done = campaign(kit, "run", name, "--form", "short", "--allow-substitutes", "--wait", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert told["state"] == "done"
    assert all(step["made"] == step["of"] > 0 for step in told["steps"].values())
    assert told["runs"] == {"ok": sum(step["of"] for step in told["steps"].values())}
    if name == "adarsh-survey":  # it is no matter of schedulers
        assert (kit.probe / "survey").is_dir()
    else:
        assert told["substitutes"]["scheduler"] == {"asked": "minsrtt", "used": "stock"}
    made = manifests(kit, name)
    assert all(m["campaign"]["form"] == "short" for m in made)
    if name != "adarsh-survey":
        assert all(m["campaign"]["substituted"]["scheduler"]["used"] == "stock" for m in made)
    assert {m["campaign"]["step"] for m in made} == set(told["steps"])
    assert all(m["failure"] is None for m in made)
    assert strays([m["result"] for m in made]) == []
    # Of its roles' paths and no others, with the subflows that were asked for where a transfer lasted long enough for them.
    roles = set(made[0]["campaign"]["roles"].values())
    assert all({p["name"] for p in m["parameters"]["paths"]} <= roles for m in made)
    wanted = [m["result"] for m in made if m["parameters"].get("subflows")]
    assert {r["subflows_asked"] for r in wanted} == ({2, 4} if name == "chen-sizes" else set())
    assert {r["subflows_reached"] for r in wanted if r["bytes"] >= 500_000} == {r["subflows_asked"] for r in wanted}
    if name == "cordero-remote":
        assert len(roles) == 3
        for m in made:
            (measured,) = m["result"]["rounds"]
            (benefit,) = measured["benefits"]
            assert benefit["benefit"] is not None
            assert set(m["result"]["bytes_by_path"]) == roles
            names = {step["name"] for step in measured.get("phases") or measured["transfers"]}
            assert names >= {f"mptcp {benefit['primary']}", *(f"tcp {path}" for path in roles)}
    used = {role: plan["used_bytes"] for role, plan in told["budget"].items()}
    assert min(used.values()) > 1000, used


def test_the_result_tables_are_there(kit: RunningKit) -> None:
    """Of every campaign's experiments above, and of others that are measured by hand, a person's own among them."""
    others: dict[str, tuple[str, ...]] = {
        "handshake": ("times=2",),
        "latency": ("seconds=1", "load=none"),
        "bandwidth": ("seconds=1",),
        "traceroute": ("protocol=tcp", "tries=1"),
    }
    for name, settings in others.items():
        kit.measured(*(word for one in settings for word in ("--set", one)), "--paths", "a,b", name=name)
    argv = [sys.executable, "-m", "tandem_server", "report", str(kit.folder), "--print-tables"]
    command = kit.rig.command("server", confined(argv, Owner.of_caller()))
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 1, done.stderr  # a rig writes no campaign.json, which the report misses
    assert {line.partition("missing: ")[2] for line in done.stderr.splitlines()} >= {"campaign.json is not there"}
    told = json.loads((kit.folder / "summary.json").read_text())
    assert {c["name"] for c in told["campaigns"]} == {*CAMPAIGNS, ""}
    for one in told["campaigns"]:
        for step in one["steps"]:
            assert not one["name"] or step["planned"] == step["measured"], step
            assert step["failed"] == {}
    rows = {
        name: [dict(zip((c["key"] for c in t["columns"]), row, strict=True)) for row in t["rows"]]
        for name, t in told["tables"].items()
    }
    measured = {
        m["experiment"]["name"] for m in (json.loads(f.read_text()) for f in (kit.probe / "runs").glob("*.json"))
    }
    assert {t["experiment"] for t in told["tables"].values()} == measured
    assert measured >= {"download", "bandwidth", "delay", "dash", "reachability", "traceroute", "latency", "handshake"}
    assert {r["campaign"] for r in rows["download"]} == {"chen-sizes"}
    assert {r["segment_s"] for r in rows["dash"]} == {1, 6, 15}
    assert all(r["bitrate_bit_per_s"] > 0 and r["startup_delay_ms"] > 0 for r in rows["dash"])
    assert all(r["c_max_bit_per_s"] > 0 and r["benefit"] is not None for r in rows["bandwidth"])
    assert {r["timed_at"] for r in rows["delay"]} == {"agent", "server"}
    page = (kit.folder / "report.html").read_text()
    for table in told["tables"].values():
        assert table["title"] in page
    for name in rows:
        assert len((kit.folder / "tables" / f"{name}.csv").read_text().splitlines()) == 1 + len(rows[name])
        assert (kit.folder / "tables" / f"{name}-values.csv").is_file()


# --- from the server's queue


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


def test_off_the_network_it_waits_at_the_server_and_is_done_when_the_probe_is_back(kit: RunningKit) -> None:
    reset = "type filter hook output priority 0; tcp dport 8443 reject with tcp reset;"
    with kit.ruled("probe", f"chain off {{ {reset} }}"):
        one = push(kit, "second", "bytes = 200_000", 1)

        def trouble() -> bool:
            status = json.loads(kit.tool("probe", "tandem", "campaign", "status", "--json", *kit.probe_config))
            return status["queue"]["trouble"] is not None

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


def test_without_a_collector_the_command_line_takes_its_place(kit: RunningKit) -> None:
    """The last of this module: it ends the collector."""
    kit.programs.end(kit.collector, 90)
    argv = [sys.executable, "-m", "tandem", "campaign", "run", "adarsh-field", "--form", "short", "--allow-substitutes"]
    argv += ["--json", "--anew", *kit.probe_config]
    command = kit.rig.command("probe", confined(argv, Owner.of_caller(), COLLECTOR))
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert (told["state"], told["runs"]) == ("done", {"ok": 6})
