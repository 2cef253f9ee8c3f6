"""Shares of bytes by path: of what the sender sent, by the server's capture of a download or a page load, by the probe's of an upload; by
the probe's counters where there is none."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from folders import run

from support.capture_scenes import C0, CLIENT_KEY, S0, Multipath, by_path
from support.captures import ACK, CLIENT, CLIENT2, MS, S, dss, pcap, token
from support.probe_runs import file_of
from tandem_server.analysis.captures import Connection
from tandem_server.analysis.evaluate import evaluate
from tandem_server.analysis.folder import load
from tandem_server.analysis.material import material
from tandem_server.analysis.measured import shares_from
from tandem_server.analysis.sender_shares import UnknownSharesError, shares_of
from tandem_server.analysis.tables.facts import SENDER_SHARES

pytest.importorskip("pyarrow", reason="no pyarrow; pip install -r requirements/lock.txt")

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


def exported(folder, told):
    """A campaign's folder as a server exports it with traces, its captures analysed."""
    own = folder / "probe/probe-1"
    (own / "runs").mkdir(parents=True)
    (own / "captures/server").mkdir(parents=True)
    campaign = {"format": "tandem-campaign/1", "probe": "probe-1", "export": {"name": "x"}, "traces": True}
    (folder / "campaign.json").write_text(json.dumps(campaign))
    (own / "captures/server/run-1-s1.pcap").write_bytes(at_the_server())
    (own / "runs/run-1.json").write_text(json.dumps(told))
    run(folder / "probe", "--out", folder / "traces")


def loaded(**row) -> dict:
    """A run of one load of a page, whose session is that of ``at_the_server``; the probe counted 3 to 2."""
    load = {"page": "p", "by": "browser", "page_load_time_ms": 900.0, "failure": None, "shares": {"a": 0.6, "b": 0.4}}
    load |= {"session": "s1", "sender_addresses": {CLIENT: "a", CLIENT2: "b"}, **row}
    result = {"loads": [load], "bytes": 5000}
    of = {"kind": "any", "experiment": {"name": "pageload"}, "parameters": {"kind": "mptcp", "path": "a"}}
    return {**manifest(at_the_server()), **of, "result": result}


def uploaded() -> Multipath:
    """``at_the_server`` the other way."""
    scene = Multipath()
    a, _ = scene.open()
    b, _ = scene.join(100 * MS)

    def send(end, at, relative, data):
        mapped = dss(ack=scene.to_client, dsn=scene.to_server + data, ssn=relative + 1, length=1000)
        end(at, C0 + 1 + relative, S0 + 1, ACK, 1000, mapped)

    for n in range(3):
        send(a, (200 + n) * MS, 1000 * n, 1000 * n)
    send(b, 210 * MS, 0, 3000)
    send(b, 211 * MS, 1000, 4000)
    send(b, 300 * MS, 0, 3000)
    a.other()(340 * MS, S0 + 1, C0 + 3001, ACK, 0, dss(ack=scene.to_server + 5000))
    b.other()(340 * MS, S0 + 1, C0 + 2001, ACK, 0, dss(ack=scene.to_server + 5000))
    return scene


def uploads(folder, captured="ab", *, alone=False, **of):
    """A campaign with a round of ``bandwidth`` one way, captured at the probe on each path; the kernel counted 3 to 2."""
    own = folder / "probe/probe-1"
    (own / "runs").mkdir(parents=True)
    (own / "captures").mkdir()
    files = []
    for path, packets in zip("ab", by_path(uploaded().wire.packets), strict=True):
        if path in captured:
            content = pcap(packets)
            (own / f"captures/run-1-{path}.pcap").write_bytes(content)
            files.append({**file_of(f"captures/run-1-{path}.pcap", content), "packets": len(packets)})
    benefit = {"primary": "a", "benefit": 0.5, "goodput_bit_per_s": 5e6, "most_loaded_share": 0.6, "fallback": False}
    benefit |= {"token": f"{token(CLIENT_KEY, 1):08x}", **of}
    row = {"number": 0, "c_i_bit_per_s": {"a": 3e6, "b": 2e6}, "bandwidth_ratio": 1.5, "tdi": 1.0}
    row |= {"phases": [], "benefits": [benefit]}
    of_paths = [{"interface": f"w{p}", "path": p, "name": f"captures/run-1-{p}.pcap"} for p in captured]
    told = {
        "format": "tandem-run/1", "id": "run-1", "kind": "any", "paths": ["a", "b"], "pair": "pair-1", "pairing": "single",
        "experiment": {"name": "bandwidth"}, "parameters": {"mode": "oneway"}, "files": files,
        "environment": {"captures": {"files": of_paths}, "path_addresses": {"a": CLIENT, "b": CLIENT2}},
        "result": {"mode": "oneway", "bytes": 5000, "rounds": [row]},
    }  # fmt: skip
    (own / "runs/run-1.json").write_text(json.dumps(told))
    campaign = {"format": "tandem-campaign/1", "probe": "probe-1", "paths": {"a": "A", "b": "B"}}
    (folder / "campaign.json").write_text(json.dumps(campaign))
    if captured:
        run(*(sorted((own / "captures").iterdir()) if alone else [folder / "probe"]), "--out", folder / "traces")


def shares(folder, table):
    """The share of the path that carried most and whose count it is, what is said of it, and what is noted on figures."""
    campaign = load(folder)
    found = evaluate(campaign, "no database", "no ledger")
    tables = [of for of in found.results.tables[table] if "shares_side" in of.value_columns]
    (row,) = [dict(zip(of.value_columns, values, strict=True)) for of in tables for values in of.values]
    said = [line for line in campaign.remarks if line.startswith("shares ")]
    made, missing = material(found), [line for line in found.missing if "captures/server" in line]
    note = shares_from([*made.downloads, *made.loads])
    return (row["most_loaded_share"], row["shares_side"]), said, note, missing


def test_what_was_sent_again_counts_for_its_path(tmp_path):
    exported(tmp_path / "download", manifest(at_the_server()))
    said, note = (
        ["shares of downloads by the server's captures of 1 runs"],
        "the sender’s captures (sent), downloads: 1.",
    )
    assert shares(tmp_path / "download", "download") == ((0.5, "sender"), said, f"Shares: {note}", [])
    exported(tmp_path / "load", loaded())
    said, note = ["shares of page loads by the server's captures of 1 loads"], "the sender’s captures (sent), loads: 1."
    assert shares(tmp_path / "load", "pageload") == ((0.5, "sender"), said, f"Shares: {note}", [])
    for alone in (True, False):  # each capture read by itself; else as one, as a server reads those of a run
        uploads(tmp_path / f"upload-{alone}", alone=alone)
        told, said, *_ = shares(tmp_path / f"upload-{alone}", "bandwidth")
        assert (told, said) == ((0.5, "sender"), ["shares of uploads by the probe's captures of 1 transfers"])


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
    told, said, note, missing = shares(tmp_path, "download")
    assert (told, note) == ((0.6, "receiver"), "Shares: the probe’s counters (received), downloads: 1.")
    assert said == [f"shares of downloads by the server's captures of 0 runs; by the probe's counters of 1: {why}"]
    assert missing == (["captures/server/run-1-s2.pcap is listed and not there"] if "s2" in str(entry) else [])


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"session": "s2"}, "no session with a capture is told of the load"),
        ({"session": None}, "no session with a capture is told of the load"),
        ({"sender_addresses": {CLIENT: "a"}}, "the server did not tell the path of each subflow"),
    ],
)
def test_a_load_whose_session_or_path_is_not_told_keeps_the_probes_count(row, why, tmp_path):
    exported(tmp_path, loaded(**row))
    told, said, *_ = shares(tmp_path, "pageload")
    why = f"shares of page loads by the server's captures of 0 loads; by the probe's counters of 1: {why}"
    assert (told, said) == ((0.6, "receiver"), [why])


@pytest.mark.parametrize(
    ("captured", "of", "why"),
    [
        ("a", {}, "not each path has a capture of its own"),
        ("ab", {"token": "0badcafe"}, "0 connections in the captures have its token"),
    ],
)
def test_an_upload_that_cannot_be_found_keeps_what_the_kernel_had_acknowledged(captured, of, why, tmp_path):
    uploads(tmp_path, captured, **of)
    told, said, *_ = shares(tmp_path, "bandwidth")
    why = f"shares of uploads by the probe's captures of 0 transfers; by the probe's counters of 1: {why}"
    assert (told, said) == ((0.6, "acknowledged"), [why])


def test_what_asked_for_no_capture_is_no_remark(tmp_path):
    told = manifest()
    del told["server_captures"]
    exported(tmp_path / "download", told)
    assert shares(tmp_path / "download", "download")[:2] == ((0.6, "receiver"), [])
    uploads(tmp_path / "upload", "")
    assert shares(tmp_path / "upload", "bandwidth")[:2] == ((0.6, "acknowledged"), [])


def sent(*more) -> dict:
    """Of a capture at the server: payload by the probe's end."""
    ends = (CLIENT, 40_000, 1000), (CLIENT2, 40_001, 3000), *more
    flows = [{"opener_address": at, "opener_port": port, "sent": [(0, 0), (size, 0)]} for at, port, size in ends]
    return {"run-1-s1.pcap": [Connection("", 0, True, 40_000, ("", 443), (None, None), (0, 4000), flows)]}


def test_by_address_and_port_as_the_server_saw_them():
    assert shares_of(manifest(), sent()) == {"a": 0.25, "b": 0.75}
    with pytest.raises(UnknownSharesError, match="did not tell the path"):
        shares_of(manifest(), sent((CLIENT2, 40_002, 1)))
    # A subflow that carried nothing needs no path.
    assert shares_of(manifest(), sent(("203.0.113.1", 1, 0))) == {"a": 0.25, "b": 0.75}
    with pytest.raises(UnknownSharesError, match="holds no payload"):
        shares_of(manifest(), {"run-1-s1.pcap": []})


def test_several_sessions_are_not_one_downloads():
    told = manifest()
    told["server_captures"] *= 2
    with pytest.raises(UnknownSharesError, match="several sessions"):
        shares_of(told, sent())
