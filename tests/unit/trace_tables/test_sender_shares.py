"""Shares of a download's bytes by path: of what the sender sent, by the server's capture; of what came, where there is none."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from captures import CLIENT, CLIENT2, MS, S, pcap
from folders import run
from scenes import Multipath

from tandem_server.analysis.evaluate import evaluate
from tandem_server.analysis.folder import load
from tandem_server.analysis.material import material
from tandem_server.analysis.measured import shares_from
from tandem_server.analysis.sender_shares import UnknownSharesError, shares_of
from tandem_server.analysis.tables.facts import SENDER_SHARES

pytest.importorskip("pyarrow", reason="no pyarrow; pip install -r requirements/dev.txt")

DAY = 86_400 * S
"""By so much the server's clock is ahead of the probe's."""
ENDS = {("a", CLIENT, 40_000), ("b", CLIENT2, 40_001)}


def at_the_server() -> bytes:
    """3000 bytes over a; over b 2000, the first 1000 of which are lost behind the capture and sent again."""
    scene = Multipath()
    _, a = scene.open()
    _, b = scene.join(100 * MS)
    for n in range(3):
        scene.data(a, (200 + n) * MS, 1000 * n, 1000 * n, 1000)
    scene.data(b, 210 * MS, 0, 3000, 1000)
    scene.data(b, 211 * MS, 1000, 4000, 1000)
    scene.acknowledge(a.other(), 240 * MS, 3000, 3000)
    scene.data(b, 300 * MS, 0, 3000, 1000)
    scene.acknowledge(b.other(), 340 * MS, 2000, 5000)
    return pcap([replace(packet, time_ns=packet.time_ns + DAY) for packet in scene.wire.packets])


def subflow(path, address, port):
    return {"path": path, "remote": {"address": address, "port": port}}


def manifest(content: bytes = b"", **entry) -> dict:
    """A run that received 3000 bytes over a and 2000 over b."""
    made = {"session": "s1", "name": "captures/server/run-1-s1.pcap", "bytes": len(content), "sha256": "0" * 64}
    made |= {"packets": 15, "packets_dropped": 0, "truncated": False, "why": None, **entry}
    sender = {"connections": [{"subflows": [subflow(*end) for end in sorted(ENDS)]}]}
    shares = [{"path": "a", "share": 0.6, "bytes": 3000}, {"path": "b", "share": 0.4, "bytes": 2000}]
    return {
        "format": "tandem-run/1", "id": "run-1", "kind": "mptcp", "paths": ["a", "b"], "pair": "pair-1", "pairing": "single",
        "experiment": {"name": "download"}, "parameters": {"path": "a", "bytes": 5000}, "files": [],
        "result": {"bytes": 5000, "subflows": shares, "sender": sender, SENDER_SHARES: {"a": 1.0}}, "server_captures": [made],
    }  # fmt: skip


def exported(folder, *manifests):
    """A campaign's folder as a server exports it with traces, its captures analysed."""
    own = folder / "probe/probe-1"
    (own / "runs").mkdir(parents=True)
    (own / "captures/server").mkdir(parents=True)
    told = {"format": "tandem-campaign/1", "probe": "probe-1", "export": {"name": "x"}, "traces": True}
    (folder / "campaign.json").write_text(json.dumps(told))
    (own / "captures/server/run-1-s1.pcap").write_bytes(at_the_server())
    for one in manifests:
        (own / "runs" / f"{one['id']}.json").write_text(json.dumps(one))
    run(folder / "probe", "--out", folder / "traces")


def read(folder):
    """The run's shares, whose they are, what the campaign says of them, and what it lacks."""
    campaign = load(folder)
    found = evaluate(campaign, "no database", "no ledger")
    (download,) = material(found).downloads
    said = [line for line in campaign.remarks if line.startswith("shares ")]
    (row,) = [dict(zip(t.value_columns, t.values[0], strict=True)) for t in found.results.tables["download"][:1]]
    assert (row["most_loaded_share"], row["shares_side"]) == (max(download.shares.values()), download.shares_side)
    return download, said, [line for line in found.missing if "captures/server" in line]


def test_what_was_sent_again_counts_for_its_path(tmp_path):
    exported(tmp_path, manifest(at_the_server()))
    download, said, missing = read(tmp_path)
    assert (dict(download.shares), download.shares_side) == ({"a": 3000 / 6000, "b": 3000 / 6000}, "sender")
    assert said == ["shares of downloads by the server's captures of 1 runs"]
    assert shares_from([download]) == "Shares: the server’s captures (sent), downloads: 1."
    assert missing == []


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"truncated": True}, "the server's capture is not whole"),
        ({"packets_dropped": 1}, "the server's capture is not whole"),
        ({"name": None, "why": "refused: full"}, "no capture at the server: refused: full"),
        ({"name": "captures/server/run-1-s2.pcap"}, "the server's capture was not exported or not analysed"),
    ],
)
def test_else_the_probes_own_count_and_it_is_said_why(entry, why, tmp_path):
    exported(tmp_path, manifest(at_the_server(), **entry))
    download, said, missing = read(tmp_path)
    assert (dict(download.shares), download.shares_side) == ({"a": 0.6, "b": 0.4}, "receiver")
    assert said == [f"shares of downloads by the server's captures of 0 runs; by the probe's counters of 1: {why}"]
    assert shares_from([download]) == "Shares: the probe’s counters (received), downloads: 1."
    assert missing == (["captures/server/run-1-s2.pcap is listed and not there"] if "s2" in str(entry) else [])


def test_a_run_that_asked_for_none_is_no_remark(tmp_path):
    told = manifest()
    del told["server_captures"]
    exported(tmp_path, told)
    download, said, _ = read(tmp_path)
    assert (dict(download.shares), download.shares_side, said) == ({"a": 0.6, "b": 0.4}, "receiver", [])


SENT = {"run-1-s1.pcap": {(CLIENT, 40_000): 1000, (CLIENT2, 40_001): 3000}}


def test_by_address_and_port_as_the_server_saw_them():
    assert shares_of(manifest(), SENT) == {"a": 0.25, "b": 0.75}
    with pytest.raises(UnknownSharesError, match="did not tell the path"):
        shares_of(manifest(), {"run-1-s1.pcap": {**SENT["run-1-s1.pcap"], (CLIENT2, 40_002): 1}})
    # A subflow that carried nothing needs no path.
    more = {**SENT["run-1-s1.pcap"], ("203.0.113.1", 1): 0}
    assert shares_of(manifest(), {"run-1-s1.pcap": more}) == {"a": 0.25, "b": 0.75}
    with pytest.raises(UnknownSharesError, match="holds no payload"):
        shares_of(manifest(), {"run-1-s1.pcap": {}})


def test_several_sessions_are_not_one_downloads():
    told = manifest()
    told["server_captures"] *= 2
    with pytest.raises(UnknownSharesError, match="several sessions"):
        shares_of(told, SENT)
