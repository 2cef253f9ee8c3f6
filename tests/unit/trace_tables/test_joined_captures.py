"""A run's captures of one path each, read together: the data-level queue over all paths."""

from __future__ import annotations

import ipaddress

import numpy as np
import pytest
import scenes
from captures import CLIENT2, EPOCH, pcap, token
from folders import plain, run

from tandem_server import tandem_trace_core
from tandem_server.analysis.clock import Clock
from tandem_server.analysis.folder import Capture
from tandem_server.analysis.papers.folder_bins import bins_of_folder

pytest.importorskip("pyarrow", reason="no pyarrow; pip install -r requirements/dev.txt")
CLOCK = Clock(EPOCH - 10 * 10**9)


def manifest(name: str = "run-1", **more) -> dict:
    of_opener = f"{token(scenes.CLIENT_KEY, 1):08x}"
    return {
        "id": name,
        "kind": "mptcp",
        "pair": None,
        "started_utc_ns": EPOCH,
        "ended_utc_ns": EPOCH + 10**9,
        "environment": {"further": {"connection": of_opener}},
        "result": {"fallback": False},
        **more,
    }


@pytest.fixture
def folder(tmp_path):
    """Captures of path a and of path b of one connection, analysed."""
    packets = scenes.two_subflows().wire.packets
    second = ipaddress.ip_address(CLIENT2).packed
    on_b = [second in (packet.content[12:16], packet.content[16:20]) for packet in packets]
    caps = tmp_path / "probe" / "captures"
    caps.mkdir(parents=True)
    for path, wanted in (("a", False), ("b", True)):
        own = [packet for packet, other in zip(packets, on_b, strict=True) if other is wanted]
        (caps / f"run-1-{path}.pcap").write_bytes(pcap(own))
    run(tmp_path / "probe", "--out", tmp_path / "traces")
    return tmp_path


def listed(run_name: str | None = "run-1", pair: str | None = None) -> list[Capture]:
    return [Capture(f"captures/run-1-{path}.pcap", 0, None, run_name, path, False, pair) for path in "ab"]


def queues(folder, captures, *manifests):
    remarks: list[str] = []
    made = bins_of_folder(folder, captures, CLOCK, manifests, remarks)
    return [bins for bins in made if bins.path is None], remarks


@pytest.mark.parametrize(("run_name", "pair"), [("run-1", None), (None, "pair-1")])
def test_the_queue_of_both_paths_is_what_came_before_the_gap_was_filled(folder, run_name, pair):
    made, remarks = queues(folder, listed(run_name, pair), manifest(pair=pair))
    (queue,) = made
    assert (queue.run, remarks) == ("run-1", [])
    assert np.nanmax(queue.reorder_queue_bytes) == 2000
    assert queue.t_s[0] == pytest.approx(10.0)
    assert np.allclose(np.diff(queue.t_s), 0.1)


def test_one_path_alone_has_none(folder):
    assert queues(folder, listed()[:1], manifest()) == ([], [])


def test_what_has_no_token_or_fell_back_or_is_single_path_has_none(folder):
    for m in (
        manifest(environment={}),
        manifest(result={"fallback": True}),
        manifest(kind="tcp"),
        manifest("run-2"),
    ):
        assert queues(folder, listed(), m) == ([], []), m


def test_what_cannot_be_told_is_named(folder):
    told = manifest(environment={"further": {"connection": "0badcafe"}})
    assert queues(folder, listed(), told) == (
        [],
        ["run-1: no data-level queue: 0 connections in its captures have its token"],
    )
    with_c = [*listed(), Capture("captures/run-1-c.pcap", 0, None, "run-1", "c", False)]
    assert queues(folder, with_c, manifest()) == (
        [],
        ["run-1: no data-level queue: not all of its captures were analysed with bins of one width"],
    )
    changed = folder / "probe/captures/run-1-b.pcap"
    why = f"run-1: no data-level queue: {changed} is gone or was changed since it was analysed"
    changed.write_bytes(plain())
    assert queues(folder, listed(), manifest()) == ([], [why])
    changed.unlink()
    assert queues(folder, listed(), manifest()) == ([], [why])


def test_what_is_too_much_for_one_reading_is_named(folder, monkeypatch):
    whole = tandem_trace_core.analyse_together
    small = {"together_bytes": 400}
    monkeypatch.setattr(
        "tandem_server.tandem_trace_core.analyse_together",
        lambda paths, bin_ns: whole(paths, bin_ns=bin_ns, limits=small),
    )
    assert queues(folder, listed(), manifest()) == (
        [],
        ["run-1: no data-level queue: its captures are too much for one reading (together_bytes)"],
    )
