"""Experiments over TLS on two paths, against the real endpoint: the same figures as in the clear, the handshake's time apart."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.experiment_process import parameters, run
from support.standalone_endpoint import MEASUREMENT_PORT, MEASUREMENT_TLS_PORT, lone_endpoint
from support.two_paths import SERVER, Lab, lab, lab_with, up
from tandem.mptcp import sysctls

pytestmark = lab_with()
SECURE = f"https://{SERVER}:{MEASUREMENT_TLS_PORT}"


@pytest.fixture(scope="module")
def rig() -> Iterator[tuple[Lab, dict[str, Any]]]:
    with lab() as made, tempfile.TemporaryDirectory() as folder:
        up(made)
        for side in (made.probe, made.server):
            side.inside(lambda: sysctls.apply({"net.ipv4.tcp_congestion_control": "cubic"}))
        with lone_endpoint(made.server, SERVER, Path(folder)) as server:
            yield made, {**server, "measurement": SECURE}


def measure(rig: tuple[Lab, dict[str, Any]], name: str, server: dict[str, Any] | None = None, **own: Any) -> Any:
    made, usual = rig
    line = run(made, name, parameters(server or usual, **own))
    assert "result_faults" not in line
    return line


@pytest.mark.parametrize(("kind", "query"), [("mptcp", {"bytes": 2_000_000}), ("tcp", {"seconds": 1})])
def test_a_download(rig, kind, query):
    line = measure(rig, "download", kind=kind, path="a", **query)
    assert line["failure"] is None
    result = line["result"]
    assert result["tls_ms"] > 0
    (connection,) = result["sender"]["connections"]
    assert connection["tls"]["version"] == "TLSv1.3"
    assert {flow["path"] for flow in result["subflows"]} == ({"a", "b"} if kind == "mptcp" else {"a"})
    assert result["fallback"] is False
    if "bytes" in query:
        assert result["bytes"] == connection["bytes_sent"] == connection["bytes_acked"] == 2_000_000
        # What the kernel carried beside the payload: a handshake and 22 bytes a record, and what went over both paths.
        assert sum(flow["bytes"] for flow in result["subflows"]) > 2_000_000 + 22 * (2_000_000 // 16384)
    else:
        assert 0 < result["bytes"] <= connection["bytes_sent"]


@pytest.mark.parametrize("mode", ["oneway", "reqresp"])
def test_a_transfer_timed_to_its_last_acknowledgement(rig, mode):
    line = measure(rig, "delay", mode=mode, min_bytes=500_000, max_bytes=500_000, seed=4)
    assert (line["failure"], line["failed_phases"]) == (None, 0)
    (told,) = line["result"]["rounds"]
    for transfer in told["transfers"]:
        assert transfer["agent_s"] > 0
        assert transfer["server_s"] > 0
        assert transfer["tls_ms"] > 0
        assert transfer["bytes"] == 500_000


def test_an_upload_for_a_time(rig):
    line = measure(rig, "bandwidth", mode="oneway", seconds=1, seed=3)
    assert (line["failure"], line["failed_phases"]) == (None, 0)
    (told,) = line["result"]["rounds"]
    for phase in told["phases"]:
        for connection in phase["connections"]:
            assert connection["server_bytes"] >= connection["bytes"] > 0


def test_a_verdict(rig):
    line = measure(rig, "verdict", join_wait_s=2.5, bytes=200_000)
    told = line["result"]["paths"]
    assert {told[name]["primary"]["verdict"] for name in told} == {"native"}


def test_a_port_without_tls_is_a_failure(rig):
    _, server = rig
    clear = {**server, "measurement": f"https://{SERVER}:{MEASUREMENT_PORT}"}
    line = measure(rig, "download", clear, kind="tcp", path="a", bytes=1000, whoami=False)
    assert line["failure"] == {"reason": "connect: tls: wrong version number", "retry": True}
    assert line["status"] == 1


def test_a_certificate_of_another_authority_is_not_tried_again(rig):
    _, server = rig
    for ca, reason in (({}, "control channel: certificate: "), ({"ca_file": "/none.pem"}, "CA file /none.pem: ")):
        stranger = {name: value for name, value in server.items() if name != "ca_file"} | ca
        failure = measure(rig, "download", stranger, kind="tcp", path="a", bytes=1000, whoami=False)["failure"]
        assert (failure["reason"].startswith(reason), failure["retry"]) == (True, False), failure


def test_the_port_with_tls_serves_no_session_in_the_clear(rig):
    _, server = rig
    line = measure(
        rig, "download", {**server, "measurement": SECURE.replace("https", "http")}, kind="tcp", path="a", bytes=9
    )
    told = {"reason": 'HTTP 400 {"error": "this port speaks TLS: ask by https"}', "retry": False}
    assert line["failure"] == told
