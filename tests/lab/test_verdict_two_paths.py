"""Verdicts against the real kernel and the real endpoint, with middleboxes made of nftables and of a proxy."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from support.experiment_process import Run
from support.real_endpoint import Measured, measured
from support.scripted_endpoint import Behaviour, Endpoint
from support.two_paths import SERVER, lab, lab_with, up
from tandem.mptcp import sysctls

pytestmark = lab_with("nft")
CHAIN = "nft 'add table ip t; add chain ip t c { type filter hook prerouting priority -300; }'"
INPUT = "nft 'add chain ip t i { type filter hook input priority 0; }'"


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Measured]:
    own = {"join_wait_s": 2.5, "control_timeout_s": 10, "bytes": 200_000}
    with lab() as made, measured(made, tmp_path_factory.mktemp("endpoint"), **own) as rig:
        up(made)
        # Else a kernel that met a middlebox would leave Multipath TCP alone for an hour (from Linux 6.12 on).
        made.probe.inside(lambda: sysctls.apply({"net.mptcp.blackhole_timeout": 0}))
        yield rig


@pytest.fixture
def judged(rig: Measured) -> Iterator[Measured]:
    """Without the middleboxes of the test before."""
    yield rig
    rig.lab.server.run("nft flush ruleset")


def middlebox(judged: Measured, *rules: str) -> None:
    judged.lab.server.run(CHAIN)
    for rule in rules:
        judged.lab.server.run(f"nft 'add rule ip t c {rule}'")


def told(found: dict[str, Any], path: str, role: str) -> tuple[str, str | None]:
    one = found["result"]["paths"][path][role]
    return one["verdict"], one["where"]


def test_nothing_between_is_native_in_both_roles(judged):
    found = judged.run("verdict")
    for path in "ab":
        assert told(found, path, "primary") == ("native", None)
        assert told(found, path, "join") == ("native", None)
        assert found["result"]["paths"][path]["primary"]["seen"]["server"] == "native"
    assert found["result"]["bytes"] == 4 * 200_000
    assert sum(b["received"] for b in found["result"]["bytes_by_path"].values()) >= 4 * 200_000
    assert [line["type"] for line in found["lines"]].count("phase") == 4


def test_options_stripped_from_the_syn(judged):
    middlebox(judged, "iifname tmp5-as tcp flags syn reset tcp option mptcp")
    found = judged.run("verdict")
    assert told(found, "a", "primary") == ("stripped", "syn")
    assert told(found, "a", "join") == ("stripped", "syn or syn-ack")
    assert told(found, "b", "primary") == ("native", None)
    assert told(found, "b", "join")[0] == "untested"  # a is no path to join


def test_options_stripped_from_the_answer(judged):
    judged.lab.server.run("nft 'add table ip t; add chain ip t o { type filter hook postrouting priority 300; }'")
    judged.lab.server.run(
        "nft 'add rule ip t o oifname tmp5-bs tcp flags & (syn|ack) == (syn|ack) reset tcp option mptcp'"
    )
    found = judged.run("verdict")
    assert told(found, "b", "primary") == ("stripped", "syn-ack")
    assert told(found, "b", "join")[0] == "stripped"
    assert told(found, "a", "primary") == ("native", None)


def test_options_stripped_from_the_data_are_a_fallback(judged):
    middlebox(judged, "iifname tmp5-as tcp flags & syn == 0 reset tcp option mptcp")
    found = judged.run("verdict")
    assert told(found, "a", "primary") == ("fallback", "data")
    assert found["result"]["paths"]["a"]["primary"]["seen"]["handshake"] is True


def test_syns_with_options_that_get_no_answer_are_dropped(judged):
    middlebox(judged, "iifname tmp5-as tcp flags syn tcp option mptcp exists drop")
    found = judged.run("verdict")
    assert told(found, "a", "primary") == ("dropped", "syn or syn-ack")
    assert told(found, "a", "join") == ("dropped", "syn or syn-ack")


def test_a_path_that_is_down_is_unreachable(judged):
    middlebox(judged, "iifname tmp5-as drop")
    found = judged.run("verdict", connect_timeout_s=1)
    assert told(found, "a", "primary") == ("unreachable", None)
    assert told(found, "b", "primary") == ("native", None)


def test_a_proxy_that_answers_for_the_server_is_found_at_the_syn(judged):
    with proxy(judged) as port:
        judged.lab.server.run("nft 'add table ip t; add chain ip t n { type nat hook prerouting priority -100; }'")
        judged.lab.server.run(
            f"nft 'add rule ip t n iifname tmp5-as tcp dport {judged.endpoint.measurement_port} redirect to :{port}'"
        )
        found = judged.run("verdict")
    assert told(found, "a", "primary") == ("stripped", "syn")
    assert found["result"]["paths"]["a"]["primary"]["seen"]["syns"] == [0, 0, 0]
    assert told(found, "a", "join")[0] in ("stripped", "reset")


def test_no_server_is_a_failure_with_what_was_seen(judged):
    port = judged.endpoint.measurement_port
    judged.lab.server.run(f"{CHAIN} && {INPUT} && nft 'add rule ip t i tcp dport {port} reject with tcp reset'")
    found = judged.run("verdict", status=1)
    assert found["failure"] == {"reason": "the server is reached over no path", "retry": True}
    assert told(found, "a", "primary")[0] == "unreachable"


@pytest.mark.parametrize(
    ("then", "detail"), [("stall", "stalled"), ("close", "closed after"), ("reset", "reset")]
)  # the server says nothing of the handshake either: older than this experiment
def test_an_endpoint_that_misbehaves_is_told_and_never_waited_for(judged, then, detail):
    bad = judged.lab.server.inside(lambda: Endpoint(Behaviour(after=100_000, then=then)))
    try:
        found = judged.run("verdict", endpoint=bad, stall_s=1.5 if then == "stall" else 60)
    finally:
        bad.close()
    for path in "ab":
        assert told(found, path, "primary") == ("untested", None)
        assert detail in found["result"]["paths"][path]["primary"]["detail"]
        assert found["result"]["paths"][path]["primary"]["seen"]["handshake"] is True


def test_told_to_stop_it_says_what_it_has(judged):
    middlebox(judged, "iifname tmp5-bs drop")
    running = Run("verdict", judged.parameters(connect_timeout_s=60), judged.lab.probe.enter)
    running.until(kind="phase")  # the first of two that come to an end or not
    running.process.terminate()
    assert running.end()["failure"] == {"reason": "stopped", "retry": False}


@contextlib.contextmanager
def proxy(judged: Measured) -> Iterator[int]:
    """Takes connections by TCP inside the server's namespace and makes its own, by TCP, to the endpoint."""
    listener = judged.lab.server.inside(lambda: socket.create_server(("", 0)))
    target = (SERVER, judged.endpoint.measurement_port)

    def pump(one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while piece := one.recv(65536):
                other.sendall(piece)
            other.shutdown(socket.SHUT_WR)

    def serve(client: socket.socket, upstream: socket.socket) -> None:
        with client, upstream:
            back = threading.Thread(target=pump, args=(upstream, client))
            back.start()
            pump(client, upstream)
            back.join()

    def accept() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            upstream = socket.create_connection(target)
            threading.Thread(target=serve, args=(client, upstream)).start()

    threads: list[threading.Thread] = []

    def begin() -> None:
        threads.append(threading.Thread(target=accept))
        threads[0].start()

    judged.lab.server.inside(begin)
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        threads[0].join()
