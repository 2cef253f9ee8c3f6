"""Plain TCP: every metric of a small connection, worked out by hand."""

import pytest

from support.capture_scenes import C0, S0, plain_download
from support.captures import ACK, CLIENT, EPOCH, MS, SERVER, SYN, Wire, ipaddress, pcap
from support.native_tables import analyse, of, one


@pytest.fixture(scope="module")
def made():
    return analyse(pcap(plain_download().packets))


def test_the_handshake_is_the_sum_of_its_parts(made):
    subflow = one(made, "subflows")
    assert (subflow["opener_mss"], subflow["responder_mss"], subflow["timestamps"]) == (1400, 1460, 1)
    assert (subflow["joined_by"], subflow["join_delay_ns"], subflow["syn_retransmissions"]) == ("first", None, 0)
    assert (subflow["syn_to_synack_ns"], subflow["synack_to_ack_ns"]) == (40 * MS, 100_000)
    assert subflow["handshake_rtt_ns"] == 40 * MS + 100_000
    assert (subflow["syn_utc_ns"], subflow["established_utc_ns"]) == (EPOCH, EPOCH + 40 * MS + 100_000)
    connection = one(made, "connections")
    assert (connection["opener_known"], connection["handshake_seen"], connection["closed_by"]) == (1, 1, "fin")


def test_bytes_new_duplicate_and_filling(made):
    down = one(made, "totals", subflow=0, direction="to_opener")
    assert down["packets"] == 9  # SYN/ACK, seven with data, the last acknowledgement
    assert down["payload_bytes"] == 6 * 1000 + 500
    assert down["new_bytes"] == down["goodput_bytes"] == 5500
    assert (down["duplicate_bytes"], down["duplicate_packets"]) == (1000, 1)
    assert (down["hole_fill_bytes"], down["hole_fill_packets"]) == (1000, 1)
    assert (down["acked_bytes"], down["unseen_bytes"], down["reinjected_bytes"], down["unmapped_bytes"]) == (
        5500,
        0,
        0,
        0,
    )
    assert down["share"] == 1.0
    up = one(made, "totals", subflow=0, direction="from_opener")
    assert (up["payload_bytes"], up["acked_bytes"], up["duplicate_bytes"]) == (100, 100, 0)
    assert one(made, "totals", subflow=None, direction="to_opener")["goodput_bytes"] == 5500


def test_rtt_is_by_timestamps_at_the_receiver_and_by_acknowledgements_at_the_sender(made):
    down = one(made, "totals", subflow=0, direction="to_opener")
    # SYN/ACK echoes the SYN: 40 ms. 140 was first sent at 40.1 ms and comes back at 80 ms: 39.9. 181 of 81.05 at 121: 39.95.
    # 222 comes back with a segment that fills a hole, which counts for nothing. 265 of 165.05 comes at 210: 44.95.
    samples = [row["timestamp_rtt_ns"] for row in made["packets"] if row["timestamp_rtt_ns"] is not None]
    to_opener = [40 * MS, 39_900_000, 39_950_000, 44_950_000]
    assert [n for n in samples if n in to_opener] == to_opener
    assert (down["rtt_method"], down["rtt_samples"]) == ("timestamp", 4)
    assert (down["rtt_min_ns"], down["rtt_max_ns"]) == (39_900_000, 44_950_000)
    mean = sum(to_opener) // 4
    assert down["rtt_mean_ns"] == mean
    assert (down["rtt_median_ns"], down["rtt_p95_ns"]) == (39_950_000, 44_950_000)
    assert down["queueing_delay_ns"] == mean - 39_900_000
    assert down["rtt_normalised"] == pytest.approx(mean / (40 * MS + 100_000))
    up = one(made, "totals", subflow=0, direction="from_opener")
    assert (up["rtt_method"], up["rtt_samples"], up["rtt_min_ns"]) == ("ack", 1, 39_800_000)
    delays = {row["packet"]: row["ack_rtt_ns"] for row in made["packets"] if row["ack_rtt_ns"] is not None}
    # 5: the request; 7: both segments; 16: the last. The one that covers the filled hole (13) makes none.
    assert delays == {5: 39_800_000, 7: 50_000, 16: 50_000}


def test_bins_lie_on_whole_multiples(made):
    bins = of(made, "bins", subflow=0, direction="to_opener")
    assert [row["bin_start_utc_ns"] - EPOCH for row in bins] == [0, 100 * MS, 200 * MS]
    assert [row["goodput_bytes"] for row in bins] == [2000, 3000, 500]
    assert [row["duplicate_bytes"] for row in bins] == [0, 1000, 0]
    assert [row["hole_fill_bytes"] for row in bins] == [0, 1000, 0]
    assert [row["acked_bytes"] for row in bins] == [2000, 3000, 500]
    assert [row["rtt_samples"] for row in bins] == [2, 1, 1]
    assert [row["reorder_queue_max_bytes"] for row in bins] == [0, 2000, 0]
    assert [row["reorder_queue_last_bytes"] for row in bins] == [0, 0, 0]


def test_windows_are_scaled_and_bytes_in_flight_and_beyond_a_gap_told(made):
    bins = of(made, "bins", subflow=0, direction="to_opener")
    assert [row["receive_window_min_bytes"] for row in bins] == [512 << 7, 496 << 7, 512 << 7]
    assert [row["receive_window_last_bytes"] for row in bins] == [512 << 7, 512 << 7, 512 << 7]
    assert one(made, "totals", subflow=0, direction="from_opener")["receive_window_last_bytes"] == 256 << 8
    by_packet = {
        row["packet"]: row["in_flight_echo_bytes"] for row in made["packets"] if row["direction"] == "to_opener"
    }
    # 5, 6: the sender had seen the handshake's acknowledgement. 8, 10: that of 2000 bytes.
    assert [by_packet[number] for number in (5, 6, 8, 10)] == [1000, 2000, 2000, 3000]
    assert of(made, "bins", subflow=0, direction="to_opener")[1]["in_flight_max_bytes"] == 3000
    queue = {row["packet"]: row["reorder_queue_bytes"] for row in made["packets"] if row["direction"] == "to_opener"}
    assert [queue[number] for number in (6, 8, 10, 12, 14)] == [0, 1000, 2000, 0, 0]


def transfer(ack_after_ns: int, hops: tuple[int, int] = (64, 64)) -> list:
    """From the midst of a transfer, without timestamps: twenty segments of the server, each acknowledged so long after it passed."""
    wire = Wire()
    s = wire.end(SERVER, 443, CLIENT, 40_000)
    for number in range(20):
        s(number * 200 * MS, S0 + number * 1000, C0, ACK, 1000)
        s.other()(number * 200 * MS + ack_after_ns, C0, S0 + (number + 1) * 1000)
    return [
        packet.put(8, hops[packet.content[:20][12:16] != ipaddress.IPv4Address(SERVER).packed])
        for packet in wire.packets
    ]


@pytest.mark.parametrize(
    ("ack_after_ns", "hops", "vantage", "rtt_ns"),
    [
        (10 * MS, (64, 64), "unknown", None),
        (10 * MS, (53, 64), "opener", None),
        (110 * MS, (64, 53), "responder", 110 * MS),
    ],
)
def test_round_trips_are_told_of_the_end_that_sees_them(ack_after_ns, hops, vantage, rtt_ns):
    """Without handshake and timestamps the opener is the guess of the higher port: the client."""
    made = analyse(pcap(transfer(ack_after_ns, hops)))
    assert one(made, "connections")["vantage"] == vantage
    total = one(made, "totals", subflow=0, direction="to_opener")
    assert (total["rtt_min_ns"], total["rtt_median_ns"]) == (rtt_ns, rtt_ns)


def test_the_first_acknowledgement_of_what_began_before_the_capture_makes_no_sample():
    wire = Wire()
    s = wire.end(SERVER, 443, CLIENT, 40_000)
    c = s.other()
    s(0, S0, C0, ACK, 1000)
    c(20 * MS, C0, S0 + 1000)
    c(235 * MS, C0, S0 + 2000)  # of a segment that the capture missed
    s(300 * MS, S0 + 2000, C0, ACK, 1000)
    c(320 * MS, C0, S0 + 3000)
    made = analyse(pcap([packet.put(8, 64 if n in (0, 3) else 53) for n, packet in enumerate(wire.packets)]))
    assert [row["ack_rtt_ns"] for row in made["packets"]] == [None, None, None, None, 20 * MS]


def test_a_slow_handshake_is_outvoted_by_what_follows():
    """At the client, whose own acknowledgement of the handshake took 90 ms: its data are acknowledged after 40 ms, it answers at once."""
    wire = Wire()
    c = wire.end(CLIENT, 40_000, SERVER, 443)
    s = c.other()
    c(0, C0, 0, SYN)
    s(40 * MS, S0, C0 + 1, SYN | ACK)
    c(130 * MS, C0 + 1, S0 + 1)
    for number in range(10):
        at = 200 * MS + number * 100 * MS
        c(at, C0 + 1 + number * 100, S0 + 1 + number * 500, ACK, 100)
        s(at + 40 * MS, S0 + 1 + number * 500, C0 + 101 + number * 100, ACK, 500)
        c(at + 40 * MS + 30_000, C0 + 101 + number * 100, S0 + 501 + number * 500)
    made = analyse(pcap(wire.packets))
    assert one(made, "connections")["vantage"] == "opener"
    assert one(made, "totals", subflow=0, direction="from_opener")["rtt_median_ns"] == 40 * MS


def test_how_often_each_round_trip_was_sampled_by_milliseconds_begun():
    """To the client 40.0, 39.9, 39.95 and 44.95 ms by its timestamps; to the server 39.8 ms by its acknowledgement."""
    made = analyse(pcap(plain_download().packets))
    ways = {(row["direction"], row["rtt_ms"]): row["samples"] for row in of(made, "rtts", connection=0, subflow=0)}
    assert ways == {("to_opener", 40): 3, ("to_opener", 45): 1, ("from_opener", 40): 1}
