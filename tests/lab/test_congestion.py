"""LIA, OLIA and BALIA in this kernel: chosen by a session, on every subflow, their windows step by step as published, and removed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import coupled_model as model
import pytest

from support.emulated_links import RadioPair, no_link, served_pair
from support.experiment_process import Run, parameters
from support.loaded_controllers import OBJECT, command, held
from support.standalone_endpoint import MEASUREMENT_PORT
from support.two_paths import REPOSITORY, await_true, lab_with
from tandem.mptcp_abi import COUPLED, LOADED
from tandem_server import congestion

pytestmark = lab_with(lack=no_link() or congestion.refusal(OBJECT))
MBIT, RTT_MS, LOSS = {"a": 8.0, "b": 8.0}, {"a": 10.0, "b": 100.0}, {"a": 0.01, "b": 0.008}
"""So that b's window is the greater and a's rate: each case of each equation comes up."""
Rig = tuple[RadioPair, dict[str, Any]]


def kit(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*words), capture_output=True, text=True, timeout=60, check=False)


def available() -> set[str]:
    return set(Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split())


def maps() -> list[dict[str, Any]]:
    """The object's, as long as anything holds them."""
    told = subprocess.run(["bpftool", "-j", "map", "show"], capture_output=True, check=True).stdout
    return [one for one in json.loads(told) if str(one.get("name", "")).startswith("tandem_")]


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    if congestion.registered():
        pytest.skip("the controllers are loaded already, by another; hint: tandem-server congestion unload")
    yield
    congestion.unload()


@pytest.fixture
def loaded(nothing_left: None) -> str:  # noqa: ARG001  (what is loaded by another is seen first)
    return congestion.load(OBJECT)


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    with served_pair(MBIT, RTT_MS) as (pair, server):
        for name, loss in LOSS.items():
            pair.tell(name, f"down loss {loss}")
        yield pair, server


def start(rig: Rig, name: str, **own: Any) -> Run:
    pair, server = rig
    return Run(name, parameters(server, **own), pair.probe.enter)


def subflows(rig: Rig, controller: str) -> int:
    """Of the sender's subflows, those that have it."""
    told = rig[0].server.run(f"ss -tinH state established 'sport = :{MEASUREMENT_PORT}'")
    return len(re.findall(rf"^\s.*\b{controller} ", told, re.MULTILINE))


def test_loaded_they_are_listed_everywhere_and_removed_nothing_is_left(rig):
    assert kit("status").returncode == 1
    done = kit("load", "--object", str(OBJECT))
    assert (done.returncode, done.stderr) == (0, "")
    for text in (
        kit("status", "--json").stdout,
        rig[0].server.run("cat /proc/sys/net/ipv4/tcp_available_congestion_control"),
    ):
        assert all(re.search(rf"\b{name}\b", text) for name in COUPLED)
    again = kit("load", "--object", str(OBJECT))
    assert again.returncode == 3
    assert "loaded already; hint: tandem-server congestion unload" in again.stderr
    assert kit("unload").stdout == "removed: lia, olia, balia\n"
    assert kit("unload").stdout == "removed: none was loaded\n"
    assert not available() & set(COUPLED)
    assert not LOADED.exists()
    await_true(lambda: not maps(), 60, "the kernel has freed the maps")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_holder_that_ends_or_is_killed_leaves_nothing(number):
    with held() as holder:
        assert set(COUPLED) <= available()
        holder.send_signal(number)
        assert holder.wait(60) == (0 if number == signal.SIGTERM else -number)
    await_true(lambda: not available() & set(COUPLED) and not congestion.registered(), 60, "nothing is loaded")
    assert not LOADED.exists()


def test_what_another_has_loaded_is_not_removed(tmp_path):
    source = (REPOSITORY / "server/congestion/coupled.bpf.c").read_text()
    (tmp_path / "other.bpf.c").write_text(
        source.replace("tandem_##word = ", "foreign_##word = ").replace(".name = #word", '.name = "t" #word')
    )
    flags = f"-target bpf -mcpu=v3 -O2 -g -I/usr/include/{os.uname().machine}-linux-gnu".split()
    built = ["clang", *flags, "-c", str(tmp_path / "other.bpf.c"), "-o", str(tmp_path / "o")]
    subprocess.run(built, check=True)
    subprocess.run(["bpftool", "struct_ops", "register", str(tmp_path / "o")], check=True, capture_output=True)
    try:
        assert kit("unload").stdout == "removed: none was loaded\n"
        assert "tlia" in available()
    finally:
        for name in COUPLED:
            subprocess.run(
                ["bpftool", "struct_ops", "unregister", "name", f"foreign_{name}"], check=True, capture_output=True
            )


def test_a_session_gets_it_on_both_subflows_and_the_run_says_so_also_when_it_is_removed_meanwhile(rig, loaded):
    running = start(rig, "download", seconds=60, kind="mptcp", path="a", congestion_control="lia")
    await_true(lambda: subflows(rig, "lia") == 2, 60, "both subflows have lia")
    congestion.unload()
    assert subflows(rig, "lia") == 2
    running.process.send_signal(signal.SIGTERM)
    told = running.end()
    (connection,) = told["result"]["sender"]["connections"]
    assert connection["congestion_control"] == "lia"
    assert connection["controller"] == {"name": "lia", "kind": "bpf", "object_sha256": loaded}
    refused = start(rig, "download", bytes=1000, kind="mptcp", path="a", congestion_control="lia").end()["failure"]
    assert not refused["retry"]
    assert "hint: on the server, tandem-server congestion load" in refused["reason"]


def test_an_upload_has_it_at_the_probe(rig, loaded):
    told = start(rig, "delay", mode="oneway", min_bytes=200_000, max_bytes=200_000, congestion_control="olia").end()
    transfers = [t for one in told["result"]["rounds"] for t in one["transfers"]]
    assert transfers
    assert {t["congestion_control"] for t in transfers} == {"olia"}
    assert all(t["controller"] == {"name": "olia", "kind": "bpf", "object_sha256": loaded} for t in transfers)


def newest(name: str) -> list[str]:
    """For bpftool. Of one removed before, the kernel may not have freed the maps yet."""
    return ["id", str(max(one["id"] for one in maps() if one["name"] == name))]


def switched(on: bool) -> None:
    value = ["1" if on else "0", "0", "0", "0"]
    subprocess.run(
        ["bpftool", "map", "update", *newest("tandem_switch"), "key", "0", "0", "0", "0", "value", *value], check=True
    )


def recorded() -> list[model.Step]:
    """The steps so far, in their order."""
    command = ["bpftool", "-j", "map", "dump", *newest("tandem_steps")]
    rows = [one["formatted"] for one in json.loads(subprocess.run(command, capture_output=True, check=True).stdout)]
    return [row["value"] for row in sorted(rows, key=lambda row: row["key"])]


@pytest.fixture(scope="module")
def steps(rig: Rig) -> list[model.Step]:
    """Of one download with each over two links with loss; the first subflow begins alone."""
    if congestion.registered():
        pytest.skip("the controllers are loaded already, by another; hint: tandem-server congestion unload")
    with held():
        switched(True)
        for name in COUPLED:
            told = start(rig, "download", bytes=8_000_000, kind="mptcp", path="a", congestion_control=name).end()
            assert told["failure"] is None
        switched(False)
        return recorded()


def test_every_step_is_what_the_published_equations_give(steps):
    faults = [(one, why) for one in steps if (why := model.wrong(one)) is not None]
    assert not faults, f"{len(faults)} of {len(steps)}, the first: {faults[0]}"
    seen = Counter(
        (one["algorithm"], one["event"], one["count"], one["acked"] > one["ssthresh"] - one["cwnd"]) for one in steps
    )
    for algorithm in (model.LIA, model.OLIA, model.BALIA):
        for event, count in ((model.ACK, 2), (model.LOSS, 2)):
            assert any(key[:3] == (algorithm, event, count) for key in seen), seen
    assert any(one["cwnd"] < one["ssthresh"] and one["event"] == model.ACK for one in steps), "no slow start was seen"
    print(f"{len(steps)} steps, {sum(one['event'] for one in steps)} losses")


def test_what_a_step_knows_of_its_sibling_is_what_the_sibling_was(steps):
    """The window read over there is what the sibling's own last step left or, after a loss, less; the bytes without a loss only grow."""
    unlost: dict[int, int] = {}
    others: dict[int, set[int]] = {}
    for one in steps:
        mine = one["paths"][one["self"]]
        if one["event"] == model.ACK and mine["cwnd"]:
            assert mine["unlost"] >= unlost.get(one["subflow"], 0)
            assert mine["cwnd"] == one["cwnd"]
            unlost[one["subflow"]] = mine["unlost"]
        elif one["event"] == model.LOSS:
            unlost.pop(one["subflow"], None)
        if one["count"] == 2:
            others.setdefault(one["algorithm"], set()).add(one["subflow"])
    assert all(len(there) == 2 for there in others.values()), others


def test_a_subflow_that_goes_leaves_reno_and_one_that_comes_is_coupled_again(rig):
    probe = rig[0].probe

    def counts() -> list[int]:
        """How many paths each step was coupled with, changes only; of congestion avoidance."""
        there = [one["count"] for one in recorded() if one["count"]]
        return [one for before, one in zip([0, *there], there, strict=False) if one != before]

    with held():
        running = start(rig, "download", seconds=240, kind="mptcp", path="a", congestion_control="balia")
        await_true(lambda: subflows(rig, "balia") == 2, 60, "both subflows")
        switched(True)
        await_true(lambda: counts()[-1:] == [2], 60, "coupled")
        probe.run("ip mptcp endpoint delete id 102")
        await_true(lambda: counts()[-1:] == [1], 60, "alone")
        probe.run("ip mptcp endpoint add 10.71.2.1 dev tmp5-b id 102 subflow")
        await_true(lambda: counts()[-1:] == [2], 60, "coupled again")
        switched(False)
        running.process.send_signal(signal.SIGTERM)
        running.end()
        assert not [why for one in recorded() if (why := model.wrong(one)) is not None]
