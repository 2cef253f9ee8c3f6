"""The native pass against tshark and the kernel, on captures of this kernel's own TCP and Multipath TCP over lossy links."""

from __future__ import annotations

import json
import select
import statistics
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from traced_download import CLIENT_2, MPTCP, SERVER_2, TCP, Traced, download

from support.native_tables import core, of, one, rows
from support.two_paths import lab_with

pytestmark = lab_with("tshark")
FIELDS = (
    "frame.number", "tcp.stream", "tcp.srcport", "tcp.len", "tcp.analysis.ack_rtt", "tcp.analysis.bytes_in_flight",
    "tcp.analysis.retransmission", "mptcp.stream", "mptcp.rawdsn64", "tcp.analysis.acks_frame", "tcp.flags.fin",
    "tcp.seq", "tcp.options.mptcp.rawdataseqno", "tcp.options.mptcp.subflowseqno",
)  # fmt: skip


class Read:
    def __init__(self, path: Path) -> None:
        options = (
            "tcp.desegment_tcp_streams:FALSE",
            "mptcp.analyze_mappings:TRUE",
            "mptcp.relative_sequence_numbers:FALSE",
        )
        wanted = [word for field in FIELDS for word in ("-e", field)]
        chosen = [word for option in options for word in ("-o", option)]
        words = ["tshark", "-n", *chosen, "-d", "tcp.port==4000,data", "-r", str(path), "-T", "fields", *wanted]
        lines = subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines()
        self.tshark = {int(row[0]): dict(zip(FIELDS, row, strict=True)) for row in (line.split("\t") for line in lines)}
        tables = core.analyse(path, packets=True)
        self.made: dict[str, Any] = {name: rows(tables, name) for name in tables if name != "file"}
        self.file = tables["file"]
        assert self.made["problems"] == []
        assert len(self.made["packets"]) == len(self.tshark)

    def pairs(self) -> list[tuple[dict[str, Any], dict[str, str]]]:
        return [(row, self.tshark[row["packet"]]) for row in self.made["packets"]]


class Both:
    def __init__(self, traced: Traced) -> None:
        self.client, self.server, self.kernel = Read(traced.client), Read(traced.server), traced.kernel


def second_path(client: Any, server: Any) -> None:
    client.run(["ip", "mptcp", "limits", "set", "subflow", "4", "add_addr_accepted", "4"])
    server.run(["ip", "mptcp", "limits", "set", "subflow", "4"])
    client.run(["ip", "mptcp", "endpoint", "add", CLIENT_2, "dev", "wwan1", "subflow"])


def third_path(client: Any, server: Any) -> None:
    second_path(client, server)
    server.run(["ip", "mptcp", "endpoint", "add", SERVER_2, "dev", "ran1", "signal"])


def backup_for_a_while(client: Any, _server: Any, links: Any) -> None:
    # The events are awaited in what the links carry, so that each follows data.
    carried(links[1], 200_000)
    client.run(["ip", "mptcp", "endpoint", "change", CLIENT_2, "backup"])
    carried(links[0], 1_500_000)
    client.run(["ip", "mptcp", "endpoint", "change", CLIENT_2, "nobackup"])


def carried(link: Any, size: int) -> None:
    """Waits until this link has carried so many bytes down, by its log."""
    log, seen = link.spec.log, 0
    for _ in range(1500):
        seen = sum(json.loads(line).get("bytes", 0) for line in log.read_text().splitlines() if '"down"' in line)
        if seen >= size:
            return
        select.select([], [], [], 0.02)
    raise AssertionError(f"only {seen} bytes of {size}")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Both:
    # How many samples there are depends on how the kernel bundles packets, which a busy machine changes: so long that they suffice.
    return Both(download(tmp_path_factory.mktemp("plain"), protocol=TCP, loss=0.01, seconds=7))


@pytest.fixture(scope="module")
def lossless(tmp_path_factory: pytest.TempPathFactory) -> Both:
    return Both(download(tmp_path_factory.mktemp("lossless"), protocol=TCP, seconds=0.4))


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Both:
    return Both(download(tmp_path_factory.mktemp("two"), protocol=MPTCP, loss=0.01, before=second_path))


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Both:
    folder = tmp_path_factory.mktemp("three")
    return Both(download(folder, protocol=MPTCP, loss=0.003, before=third_path, meanwhile=backup_for_a_while))


@pytest.fixture(params=["plain", "two", "three"])
def any_download(request: pytest.FixtureRequest) -> Both:
    found: Both = request.getfixturevalue(request.param)
    return found


def test_rtt_samples_are_tsharks(any_download: Both) -> None:
    taken = 0
    for read in (any_download.server, any_download.client):
        for row, told in read.pairs():
            if row["ack_rtt_ns"] is not None:
                assert told["tcp.analysis.ack_rtt"], row
                assert row["ack_rtt_ns"] == round(float(told["tcp.analysis.ack_rtt"]) * 1e9), row
                taken += 1
    assert taken


def test_without_loss_every_sample_of_tshark_is_there(lossless: Both) -> None:
    theirs, ours = set(), set()
    for row, told in lossless.server.pairs():
        assert not told["tcp.analysis.retransmission"]
        if told["tcp.analysis.ack_rtt"]:
            acknowledged = int(told["tcp.analysis.acks_frame"])
            frame = lossless.server.tshark[acknowledged]
            # The handshake is told apart, and a bare FIN's acknowledgement tells when a program closed.
            if acknowledged > 2 and (frame["tcp.flags.fin"] not in ("1", "True") or frame["tcp.len"] != "0"):
                theirs.add(row["packet"])
        if row["ack_rtt_ns"] is not None:
            ours.add(row["packet"])
    assert ours == theirs
    assert ours


def test_data_sequence_numbers_and_the_reorder_queue(two: Both, three: Both) -> None:
    queued = 0
    for read in (two.client, three.client):
        seen: list[tuple[int, int]] = []
        for row, told in read.pairs():
            if row["direction"] != "to_opener" or not row["payload_bytes"]:
                continue
            dsn = data_sequence_number(told)
            assert row["dsn"] == dsn, (row, told)
            seen = united(seen, dsn, dsn + row["payload_bytes"])
            beyond = sum(end - start for start, end in seen[1:])
            assert row["reorder_queue_bytes"] == beyond, row
            queued += beyond > 0
    assert queued


def data_sequence_number(packet: dict[str, str]) -> int:
    """As the packet's own mapping says; where it has none, as tshark found it in another's.

    Of two mappings of the same bytes tshark takes the older, also for a packet that brings the later one along.
    """
    if packet["tcp.options.mptcp.subflowseqno"]:
        begins = int(packet["tcp.options.mptcp.rawdataseqno"])
        return begins + int(packet["tcp.seq"]) - int(packet["tcp.options.mptcp.subflowseqno"])
    return int(packet["mptcp.rawdsn64"].split(",")[0])


def united(ranges: list[tuple[int, int]], start: int, end: int) -> list[tuple[int, int]]:
    """The plain way, independent of the crate's."""
    apart = [one_range for one_range in ranges if one_range[1] < start or one_range[0] > end]
    touching = [one_range for one_range in ranges if not (one_range[1] < start or one_range[0] > end)]
    whole = (min([start, *(low for low, _ in touching)]), max([end, *(high for _, high in touching)]))
    return sorted([*apart, whole])


def test_subflows_and_connections_are_tsharks(any_download: Both) -> None:
    for read in (any_download.client, any_download.server):
        streams: dict[str, set[int]] = defaultdict(set)
        connections: dict[str, set[int]] = defaultdict(set)
        for row, told in read.pairs():
            streams[told["tcp.stream"]].add(row["subflow"])
            if told["mptcp.stream"]:
                connections[told["mptcp.stream"]].add(row["connection"])
        assert all(len(subflows) == 1 for subflows in streams.values())
        assert all(len(numbers) == 1 for numbers in connections.values())


def test_retransmissions_are_the_kernels(any_download: Both) -> None:
    made = any_download.server.made
    again = sum(
        row["duplicate_packets"]
        for row in made["totals"]
        if row["subflow"] is not None and row["direction"] == "to_opener"
    )
    again += sum(row["syn_retransmissions"] for row in made["subflows"])
    assert again == any_download.kernel["TcpRetransSegs"]


def test_at_the_receiver_what_was_lost_fills_holes(plain: Both) -> None:
    sent, got = (one(read.made, "totals", subflow=0, direction="to_opener") for read in (plain.server, plain.client))
    assert got["hole_fill_packets"] > 0
    assert got["new_bytes"] == sent["new_bytes"]
    # Each copy either filled a hole or was here already; a copy that was lost itself is seen at neither.
    assert got["hole_fill_packets"] + got["duplicate_packets"] <= sent["duplicate_packets"]


def test_bytes_in_flight_are_tsharks_within_three_percent(any_download: Both) -> None:
    ours, theirs = [], []
    for row, told in any_download.server.pairs():
        if row["direction"] == "to_opener" and row["payload_bytes"] and told["tcp.analysis.bytes_in_flight"]:
            ours.append(row["in_flight_bytes"])
            theirs.append(int(told["tcp.analysis.bytes_in_flight"]))
    apart = [abs(mine - other) / other for mine, other in zip(ours, theirs, strict=True)]
    assert statistics.mean(ours) == pytest.approx(statistics.mean(theirs), rel=0.03)
    assert statistics.median(apart) <= 0.03


def test_bytes_in_flight_at_the_receiver_are_the_senders(any_download: Both) -> None:
    at_sender, at_receiver = (
        {
            (row["subflow"], row["bin_start_utc_ns"]): row["in_flight_mean_bytes"]
            for row in of(read.made, "bins", direction="to_opener")
            if row["subflow"] is not None and row["in_flight_mean_bytes"] is not None and row["packets"] > 20
        }
        for read in (any_download.server, any_download.client)
    )
    common = at_sender.keys() & at_receiver.keys()
    assert common
    ratio = statistics.median(at_receiver[key] / at_sender[key] for key in common if at_sender[key])
    assert ratio == pytest.approx(1, abs=0.1)


def test_rtt_by_timestamps_is_the_other_ends(any_download: Both) -> None:
    """Of the same segment: at the sender by the acknowledgement of its end, at the receiver by the echo that it carried. They are two round
    trips that share one way; how near they come on a quiet machine (0.1 ms) is no test's affair."""
    ports, ports_there = (
        {row["subflow"]: row["opener_port"] for row in read.made["subflows"]}
        for read in (any_download.server, any_download.client)
    )
    by_acks = {
        (ports[row["subflow"]], row["acknowledgement"]): row["ack_rtt_ns"]
        for row in of(any_download.server.made, "packets", direction="from_opener")
        if row["ack_rtt_ns"] is not None
    }
    pairs = []
    for row in of(any_download.client.made, "packets", direction="to_opener"):
        end = (ports_there[row["subflow"]], (row["sequence"] + row["payload_bytes"]) % (1 << 32))
        if row["timestamp_rtt_ns"] is not None and end in by_acks:
            pairs.append((row["timestamp_rtt_ns"], by_acks[end]))
    assert pairs
    assert (
        min(pair[0] for pair in pairs) >= 28_000_000
    )  # the quicker link's round trip, by clocks that tick in milliseconds
    assert min(pair[1] for pair in pairs) >= 29_000_000
    assert statistics.median(abs(one - other) / other for one, other in pairs) < 0.5
    methods = [{row["rtt_method"] for row in read.made["totals"] if row["direction"] == "to_opener"} - {None}
               for read in (any_download.server, any_download.client)]  # fmt: skip
    assert methods == [{"ack"}, {"timestamp"}]


def test_what_the_kernel_told_of_addresses_and_priority(three: Both) -> None:
    for read in (three.client, three.server):
        assert one(read.made, "connections")["version"] == 1
        assert [row["joined_by"] for row in read.made["subflows"]] == [
            "first",
            *["token"] * (len(read.made["subflows"]) - 1),
        ]
        assert len(read.made["subflows"]) >= 3
        kinds = [row["kind"] for row in read.made["events"]]
        assert {"add_addr", "add_addr_echo", "mp_prio", "join_established"} <= set(kinds)
        assert {row["value"] for row in of(read.made, "events", kind="mp_prio")} == {0, 1}
        assert of(read.made, "events", kind="add_addr")[0]["address"] == SERVER_2


def test_the_vantage(any_download: Both) -> None:
    assert {row["vantage"] for row in any_download.client.made["connections"]} == {"opener"}
    assert {row["vantage"] for row in any_download.server.made["connections"]} == {"responder"}
