"""Round trips over two rated links to the real endpoint's reflector: the same instants, loss, outage, a server that forgets."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.round_trip_paths import AskedPaths, asked_paths
from support.two_paths import lab, why_not

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(why_not() is not None, reason=str(why_not())),
    pytest.mark.skipif(shutil.which("nft") is None, reason="nft is not installed"),
]


@pytest.fixture
def paths(tmp_path: Path) -> Iterator[AskedPaths]:
    with lab() as made, asked_paths(made, tmp_path) as asked:
        yield asked


def test_both_paths_are_asked_at_the_same_instants_and_the_kernel_stamps_the_answers(paths):
    seen: dict[int, dict[str, float]] = {}
    while sum(len(rtts) == 2 for rtts in seen.values()) < 10:
        record = paths.records.get(timeout=60)
        if record.fields["outcome"] == "answered":
            seen.setdefault(record.monotonic_ns, {})[record.tags["path"]] = record.fields["rtt_ms"]
            assert record.monotonic_ns == record.fields["sequence"] * 200_000_000
    assert all(0 < rtt_ms < 10_000 for rtts in seen.values() for rtt_ms in rtts.values())


def test_a_path_that_goes_down_is_told_as_down_and_answers_again(paths):
    paths.outcome("b", "answered")
    paths.lab.probe.run("ip link set tmp5-b down")
    paths.check()
    down = [paths.outcome("b", "down").fields["sequence"] for _ in range(3)]
    assert down == sorted(set(down))
    paths.outcome("a", "answered")
    paths.lab.probe.run("ip link set tmp5-b up")
    while paths.states["b"]["state"] != "up":
        paths.check()
    paths.outcome("b", "answered")


def test_a_server_that_forgot_its_sessions_is_no_loss(paths):
    """As after a restart of the endpoint: its reflector is silent until there is a new session."""
    for path in "ab":
        paths.outcome(path, "answered")
    paths.endpoint.sessions.end_all()
    told: dict[str, list[str]] = {"a": [], "b": []}
    while not all("unserved" in mine and mine[-1] == "answered" for mine in told.values()):
        record = paths.records.get(timeout=60)
        told[record.tags["path"]].append(record.fields["outcome"])
    assert {outcome for mine in told.values() for outcome in mine} == {"answered", "unserved"}
