"""Captures at the endpoint: of the session's own connections alone, within the budget, refused where they cannot be."""

import asyncio
import contextlib
import hashlib
import io
import ipaddress
import json
import os
import shutil
import sqlite3
import struct

import pytest
from endpoint_on_loopback import wait_until
from hypothesis import given
from hypothesis import strategies as st
from test_endpoint_control import ASK

from support.asgi_request import asked, bearer
from tandem_server.endpoint import capture as capture_module
from tandem_server.endpoint.capture import (
    HEADER_BYTES,
    CaptureRefused,
    Captures,
    Kept,
    PcapError,
    belongs,
    ends_of,
    read_header,
    record_bytes,
    records,
)
from tandem_server.endpoint.control import Results, control_app
from tandem_server.http.rates import DiskShare, Reserve

real = pytest.mark.skipif(os.geteuid() != 0 or shutil.which("tcpdump") is None, reason="needs root and tcpdump")


@pytest.fixture
def channel(endpoint, registry, tmp_path):
    """The control channel of an endpoint that allows captures of so many bytes."""
    here = endpoint()
    token = registry.probes.rotate("probe-1")

    def start(budget_bytes=10_000_000):
        kept = Kept(registry, tmp_path / "traces")
        captures = Captures(tmp_path / "captures", budget_bytes, kept) if budget_bytes else None
        results = Results(tmp_path / "results", DiskShare(Reserve([tmp_path], 0), 10**9))
        app = control_app(registry, here.sessions, here.port, results, captures)

        def request(method, path, body=None):
            status, _, told = asyncio.run(asked(app, method, path, [json.dumps(body).encode()], [bearer(token)]))
            return status, told

        request.endpoint, request.folder = here, tmp_path / "traces"
        return request

    return start


@pytest.fixture(autouse=True)
def _patience(monkeypatch):
    """With a tcpdump that is late on a busy machine."""
    for name in ("_START_S", "_STOP_S"):
        monkeypatch.setattr(capture_module, name, 60.0)


def sides(file):
    raw = file.read_bytes()
    link = read_header(raw[:HEADER_BYTES]).link_type
    return [ends_of(one, link) for one in records(io.BytesIO(raw[HEADER_BYTES:]))]


@real
@pytest.mark.parametrize("kind", ["mptcp", "tcp"])
def test_only_the_sessions_own_connections_are_kept(channel, kind):
    ask = channel()
    _, mine = ask("POST", "/v1/sessions", {**ASK, "bytes": 100_000, "kind": kind, "capture": True})
    _, other = ask("POST", "/v1/sessions", {**ASK, "bytes": 100_000})
    for session in (mine, other):
        assert len(ask.endpoint.get("/v1/download?bytes=100000", session["session"], kind)[2]) == 100_000
    taking = ask.endpoint.sessions.get(mine["session"]).capture
    wait_until(lambda: taking._taken_bytes > HEADER_BYTES + 12 * 80)  # a dozen packets, of which mine are the first
    assert ask("DELETE", f"/v1/sessions/{other['session']}")[1]["capture"] is None
    _, told = ask("DELETE", f"/v1/sessions/{mine['session']}")
    (connection,), capture = told["connections"], told["capture"]
    (kept,) = ask.endpoint.registry.traces.received("probe-1", "run-1")
    assert kept.name == capture["name"] == f"captures/server/run-1-{mine['session']}.pcap"
    assert (kept.sha256, kept.bytes, kept.stored_bytes) == (capture["sha256"], capture["bytes"], capture["bytes"])
    assert ("probe-1", kept.name) in ask.endpoint.registry.trace_tables.of()  # it waits to be analysed
    file = ask.folder / kept.place
    assert hashlib.sha256(file.read_bytes()).hexdigest() == capture["sha256"]
    assert (capture["bytes"], capture["truncated"], capture["packets_dropped"]) == (file.stat().st_size, False, 0)
    seen = sides(file)
    assert len(seen) == capture["packets"] >= 6
    peer = (connection["peer"]["address"], connection["peer"]["port"])
    here = ("127.0.0.1", ask.endpoint.port)
    assert set(seen) == {(peer, here), (here, peer)}
    assert connection["subflows"][0]["remote"] == connection["peer"]
    assert max(len(one) for one in records(io.BytesIO(file.read_bytes()[HEADER_BYTES:]))) <= 16 + 160  # headers only
    assert not [path for path in (ask.folder.parent / "captures").rglob("*") if path.is_file()]
    assert not list((ask.folder / ".captures").iterdir())


@real
def test_what_does_not_fit_the_budget_is_cut_and_told(channel):
    ask = channel(budget_bytes=1500)
    _, mine = ask("POST", "/v1/sessions", {**ASK, "bytes": 500_000, "capture": True})
    ask.endpoint.get("/v1/download?bytes=500000", mine["session"])
    taking = ask.endpoint.sessions.get(mine["session"]).capture
    wait_until(lambda: taking._full, "its budget was not reached")
    capture = ask("DELETE", f"/v1/sessions/{mine['session']}")[1]["capture"]
    assert capture["truncated"] is True
    assert capture["packets"] > 0
    assert capture["bytes"] <= 1500
    assert sum(f.stat().st_size for f in ask.folder.rglob("*.pcap")) <= 1500


def test_where_none_are_allowed_and_a_tcpdump_that_may_not_capture_are_refusals_and_leave_no_session(
    channel, tmp_path, monkeypatch
):
    status, told = channel(budget_bytes=0)("POST", "/v1/sessions", {**ASK, "capture": True})
    assert (status, "allows no captures ([capture] allowed" in told["error"]) == (400, True)
    pretend(tmp_path, monkeypatch, "echo 'tcpdump: any: You don'\"'\"'t have permission' >&2; exit 1")
    ask = channel()
    status, told = ask("POST", "/v1/sessions", {**ASK, "capture": True})
    assert (status, told["error"]) == (429, "the endpoint cannot capture: tcpdump: any: You don't have permission")
    assert [row.ended_why for row in ask.endpoint.registry.sessions.all()] == ["closed"]


@real
def test_what_the_registry_does_not_take_is_told_and_takes_no_room_and_a_session_that_lapses_ends_its_capture(
    channel, monkeypatch
):
    ask = channel()
    _, mine = ask("POST", "/v1/sessions", {**ASK, "capture": True})

    def full(_row):
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(ask.endpoint.registry.traces, "add", full)
        told = ask("DELETE", f"/v1/sessions/{mine['session']}")[1]["capture"]
    assert (told["name"], told["error"]) == (None, "database or disk is full")
    assert not [path for path in ask.folder.rglob("*") if path.is_file()]
    assert ask.endpoint.registry.traces.server_bytes() == 0
    _, mine = ask("POST", "/v1/sessions", {**ASK, "capture": True})
    session = ask.endpoint.sessions.get(mine["session"])
    process, session.deadline_s = session.capture._process, 0.0
    ask.endpoint.sessions.sweep()
    assert (process.returncode is not None, session.captured["packets"]) == (True, 0)


def test_a_tcpdump_that_died_is_told_and_what_it_wrote_is_kept(tmp_path, monkeypatch, registry):
    registry.probes.add("probe-1")
    (tmp_path / "header").write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 160, 276))
    pretend(tmp_path, monkeypatch, f"echo 'listening on any' >&2; cat {tmp_path}/header; exit 9")
    taking = Captures(tmp_path / "captures", 10_000, Kept(registry, tmp_path / "traces")).begin(
        "probe-1", "run-1", "s", 8480
    )
    taking._process.wait(60)
    told = taking.finish(set())
    assert told["error"] == "tcpdump ended before its session (status 9)"
    assert (told["name"], told["truncated"], told["packets"]) == ("captures/server/run-1-s.pcap", True, 0)


def test_a_tcpdump_that_writes_nonsense_is_told(tmp_path, monkeypatch, registry):
    pretend(tmp_path, monkeypatch, "echo 'listening on any' >&2; head -c 100000 /dev/zero; exec sleep 60")
    captures = Captures(tmp_path / "captures", 10_000, Kept(registry, tmp_path / "traces"))
    taking = captures.begin("probe-1", "run-1", "s", 8480)
    wait_until(lambda: taking._broken, "it was not read")
    told = taking.finish(set())
    assert (told["file"], told["truncated"]) == (None, True)
    assert told["error"] == "tcpdump wrote nothing"
    assert not list((tmp_path / "captures").rglob("s.*"))


def test_over_the_budget_below_what_the_disk_keeps_free_and_without_tcpdump_it_is_refused(
    tmp_path, monkeypatch, registry
):
    def refused(captures, why):
        with pytest.raises(CaptureRefused, match=why):
            captures.begin("p", "r", "t", 8480)

    pretend(tmp_path, monkeypatch, "exit 1")
    registry.probes.add("p")
    kept = Kept(registry, tmp_path / "traces")
    kept.draft("s").write_bytes(b"x" * 1000)
    kept.keep(kept.draft("s"), "p", "r", "s", 1000, hashlib.sha256(b"x" * 1000).hexdigest())
    (tmp_path / "captures/p/r").mkdir(parents=True)
    for name in ("old.pcap", "left.raw"):  # of an earlier version, which count, and what an end in the middle left
        (tmp_path / "captures/p/r" / name).write_bytes(b"x" * 1000)
    captures = Captures(tmp_path / "captures", 2010, kept)
    assert not (tmp_path / "captures/p/r/left.raw").exists()
    refused(captures, "fill their 2010 bytes")
    registry.probes.revoke("p")
    registry.erasure.erase("p")
    refused(captures, "tcpdump does not start")  # which this one never does: there is room again
    full = Captures(tmp_path / "captures", 10**9, Kept(registry, tmp_path / "traces", 10**18))
    refused(full, r"cannot capture: No space left on device: \d+ bytes are free")
    monkeypatch.setenv("PATH", "/nonexistent")
    refused(captures, "no tcpdump")


def pretend(folder, monkeypatch, script):
    (folder / "bin").mkdir()
    (folder / "bin/tcpdump").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "bin/tcpdump").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}/bin:{os.environ['PATH']}")


# --- capture files: records parted and judged, whatever the bytes are

SLL2, SLL = 276, 113


def header(link=SLL2, magic=0xA1B2C3D4):
    return struct.pack("<IHHiIII", magic, 2, 4, 0, 0, 160, link)


def record(source, target, link=SLL2, protocol=6):
    """One TCP segment between (address, port) pairs."""
    one, two = (ipaddress.ip_address(end[0]) for end in (source, target))
    ports = struct.pack(">HH", source[1], target[1]) + bytes(16)
    if one.version == 4:
        packet = bytes([0x46, *bytes(8), protocol, 0, 0]) + one.packed + two.packed + bytes(4) + ports  # with an option
    else:
        packet = bytes([0x60, *bytes(5), protocol, 64]) + one.packed + two.packed + ports
    kind = b"\x08\x00" if one.version == 4 else b"\x86\xdd"
    frame = (kind + bytes(18) if link == SLL2 else bytes(14) + kind) + packet
    return struct.pack("<4I", 1, 2, len(frame), len(frame) + 1400) + frame


A, B, HERE = ("192.0.2.1", 4000), ("192.0.2.1", 4001), ("198.51.100.1", 8480)
A6, HERE6 = ("2001:db8::1", 4000), ("2001:db8::2", 8480)


def test_both_directions_of_a_connection_belong_to_it():
    for link, peer, here in ((SLL2, A, HERE), (SLL, A6, HERE6)):
        assert ends_of(record(peer, here, link), link) == (peer, here)
        for source, target in ((peer, here), (here, peer)):
            assert belongs(record(source, target, link), link, {peer}, 8480)
            assert not belongs(record(source, target, link), link, {B}, 8480)
            assert not belongs(record(source, target, link), link, {peer}, 8481)


def test_what_is_no_tcp_or_cut_off_is_nobodys_and_a_mapped_address_is_ipv4():
    assert ends_of(record(("::ffff:192.0.2.1", 4000), HERE6), SLL2)[0] == A
    assert ends_of(record(A, HERE, protocol=17), SLL2) is None
    whole = record(A, HERE)
    assert all(ends_of(whole[:length], SLL2) in (None, (A, HERE)) for length in range(16, len(whole)))
    assert ends_of(whole[:50], SLL2) is None


def test_headers_are_read_records_parted_and_a_cut_one_left_out():
    both = record(A, HERE) + record(HERE, B)
    assert list(records(io.BytesIO(both))) == [record(A, HERE), record(HERE, B)]
    assert list(records(io.BytesIO(both[:-1]))) == [record(A, HERE)]
    assert read_header(header()).link_type == SLL2
    assert read_header(header(SLL, 0xA1B23C4D)).link_type == SLL
    for raw in (b"", header()[:-1], header(magic=0), header(link=1), b"\xff" * 24):
        with pytest.raises(PcapError):
            read_header(raw)
    with pytest.raises(PcapError, match="a record of"):
        record_bytes(struct.pack("<4I", 0, 0, 1 << 30, 0))


@given(st.binary(max_size=200), st.sampled_from([SLL, SLL2]))
def test_any_bytes_are_records_or_refused(raw, link):
    with contextlib.suppress(PcapError):
        for one in records(io.BytesIO(raw)):
            assert len(one) >= 16
            ends_of(one, link)
    with contextlib.suppress(PcapError):
        read_header(raw[:24])
