"""A number of subflows between the real endpoint and the real kernel over two emulated links, against a capture."""

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.emulated_links import RadioPair, no_link, radio_pair
from support.experiment_process import Run, parameters
from support.standalone_endpoint import lone_endpoint
from support.two_paths import SERVER, lab_with

pytestmark = lab_with("tcpdump", lack=no_link())
SECOND = "203.0.113.11"
RTT_MS = {"a": 100.0, "b": 400.0}
PORT = 8480
SYN_ACK = re.compile(r"^(\d+\.\d+) \S+ +In +IP ([\d.]+)\.8480 > ([\d.]+)\.\d+: Flags \[S\.E?\]", re.MULTILINE)
BY_LOCAL = {"10.71.1.1": "a", "10.71.2.1": "b"}


@pytest.fixture(scope="module")
def links(tmp_path_factory) -> Iterator[tuple[RadioPair, dict[str, Any]]]:
    with radio_pair({"a": 20e6, "b": 10e6}, RTT_MS) as pair:
        pair.server.run(f"ip addr add {SECOND}/32 dev lo; ip mptcp limits set subflow 8")
        with lone_endpoint(pair.server, SERVER, tmp_path_factory.mktemp("endpoint"), (SECOND,)) as server:
            yield pair, server


@contextmanager
def captured(pair: RadioPair, file: Path) -> Iterator[None]:
    """Handshakes of the measurement port, as the probe's kernel saw them."""
    command = [*pair.probe.enter, "tcpdump", "-i", "any", "-nn", "-U", "-w", str(file)]
    wanted = f"tcp port {PORT} and tcp[tcpflags] & tcp-syn != 0"
    with subprocess.Popen([*command, wanted], stderr=subprocess.PIPE, text=True) as program:
        assert program.stderr is not None
        assert any("listening on" in line for line in program.stderr)
        try:
            yield
        finally:
            program.terminate()


def arrivals(file: Path) -> dict[tuple[str, str], float]:
    """When the server's SYN/ACK came, in seconds, by path and the server's address; of the measured connection alone."""
    read = ["tcpdump", "-r", str(file), "-nn", "-tt"]
    text = subprocess.run(read, capture_output=True, text=True, check=True).stdout
    found: dict[tuple[str, str], float] = {}
    for at, server, local in SYN_ACK.findall(text):
        found.setdefault((BY_LOCAL[local], server), float(at))
    return found


def download(links: tuple[RadioPair, dict[str, Any]], **more: Any) -> dict[str, Any]:
    """The last line of one that begins over a."""
    pair, server = links
    wanted = parameters(server, kind="mptcp", path="a", congestion_control="reno", **more)
    return Run("download", wanted, pair.probe.enter).end()


@pytest.mark.parametrize("number", [None, 2, 4])
def test_joins_are_delayed_as_the_capture_says(links, tmp_path, number):
    with captured(links[0], tmp_path / "syn.pcap"):
        line = download(links, seconds=1.5, whoami=False, **({} if number is None else {"subflows": number}))
    assert line["failure"] is None
    result = line["result"]
    came = arrivals(tmp_path / "syn.pcap")
    assert len(came) == result["subflows_reached"] == (number or 2)
    first, *joined = result["subflows"]
    assert (first["path"], first["join_delay_ms"]) == ("a", None)
    for one in joined:
        # A join waits for the first answer on the primary path, and takes its own path's round trip. A busy machine sees the first late,
        # and less than a round trip late.
        assert (came[one["path"], one["server_address"]] - came["a", SERVER]) * 1000 > RTT_MS[one["path"]]
        assert one["join_delay_ms"] > RTT_MS[one["path"]]
    assert {(s["path"], s["server_address"]) for s in result["subflows"]} == set(came)


def test_shares_and_what_was_sent_again_are_told_by_subflow(links):
    for name in "ab":
        links[0].tell(name, "down loss 0.03")
    result = download(links, bytes=1_500_000, subflows=4)["result"]
    assert result["subflows_reached"] == 4
    assert sum(s["share"] for s in result["subflows"]) == pytest.approx(1)
    there = result["sender"]["connections"][0]["subflows"]
    assert {s["local"] for s in there} == {SERVER, SECOND}
    assert result["bytes_retrans"] == sum(s["bytes_retrans"] for s in there) > 0
    assert sorted(s["bytes_retrans"] for s in result["subflows"]) == sorted(s["bytes_retrans"] for s in there)
    for ours in result["subflows"]:
        (theirs,) = [s for s in there if (s["path"], s["local"]) == (ours["path"], ours["server_address"])]
        assert (ours["bytes_retrans"], ours["rtt_ms_median"]) == (theirs["bytes_retrans"], theirs["rtt_ms_median"])
        assert ours["rtt_source"] == "sender"
