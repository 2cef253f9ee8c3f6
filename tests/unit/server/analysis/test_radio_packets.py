"""Radio events joined to bins, worked out by hand at the borders: the factor, the gap, both modems, nothing before, the run's end."""

import math
from dataclasses import replace

import numpy as np
import pytest

from tandem_server.analysis.captures import Connection, matched
from tandem_server.analysis.events import recovery
from tandem_server.analysis.folder import Capture
from tandem_server.analysis.radio_packets import Binned, Flow, RadioEvent, joined

WIDTH_NS = 100_000_000


def radio(*events):
    """Of (time in s, path, change in dB or None)."""
    return [
        RadioEvent(round(t * 1e9), path, "handover", math.nan)
        if change is None
        else RadioEvent(round(t * 1e9), path, "signal_drop", change)
        for t, path, change in events
    ]


def flows(*of, handshake_ms=40.0, seconds=60.0):
    """Of (path, connection): all there from 0 to ``seconds``."""
    end_ns = round(seconds * 1e9)
    return [
        Flow(f"run-{number}", "mptcp", path, f"{path}.pcap", 0, number, 0, end_ns, handshake_ms, "timestamp", 1)
        for path, number in of
    ]


def binned(*series, seconds=60.0):
    """Of each subflow two functions of a bin's start in s: goodput in byte a bin, RTT in ms or None."""
    rows = []
    for flow, (carried, rtt) in enumerate(series):
        for place in range(round(seconds * 10)):
            at = place / 10
            ms = rtt(at)
            rows.append((flow, place, carried(at), math.nan if ms is None else ms))
    flow, place, goodput, ms = (np.array(column) for column in zip(*rows, strict=True))
    return of_columns(flow, place, goodput.astype(float), ms, ms + 1)


def of_columns(*columns):
    flow, place, goodput, mean, most = columns
    return Binned(WIDTH_NS, 0, flow, place, goodput, np.zeros(len(flow)), mean, most)


def only_of(data, there):
    columns = data.flow, data.place, data.goodput_bytes, data.rtt_mean_ms, data.rtt_max_ms
    return of_columns(*(column[there] for column in columns))


def only(made):
    (row,) = made.rows
    return row


def always(value):
    return lambda _: value


def raised(to_ms, start, end, usual=50.0):
    return lambda t: to_ms if start <= t < end else usual


def test_every_measure_of_one_drop():
    """B carries 1000 byte a bin; the drop on A at 20 s lasts 4 s: A's 2000 byte a bin become 500, B's 1000 become 1500."""
    data = binned(
        (lambda t: 500 if 20 <= t < 24 else 2000, raised(200.0, 20, 24)),
        (lambda t: 1500 if 20 <= t < 24 else 1000, raised(90.0, 20, 24, usual=60.0)),
    )
    made = joined(radio((20.0, "a", -9.0)), flows(("a", 0), ("b", 0)), data)
    row = only(made)
    # The first bin back has its middle at 24.05; it belongs to what was seen until then.
    assert row["t_r_s"] == pytest.approx(4.05)
    told = (row["why"], row["kind"], row["size_db"], row["path"], row["other_path"])
    assert told == ("", "signal_drop", 9.0, "a", "b")
    assert (row["rtt_before_ms"], row["rtt_peak_ms"], row["rtt_peak_normalised"]) == (50.0, 201.0, 201 / 40)
    assert (row["before_s"], row["during_s"]) == (5.0, pytest.approx(4.0))  # the 41st middle is at 24.05: not before it
    assert (row["goodput_before_bit_per_s"], row["goodput_during_bit_per_s"]) == (160_000, pytest.approx(40_000))
    assert row["goodput_loss"] == pytest.approx(0.75)
    assert (row["connection_before_bit_per_s"], row["connection_during_bit_per_s"]) == (240_000, pytest.approx(160_000))
    assert row["connection_loss"] == pytest.approx(1 / 3)
    assert (row["share_before"], row["share_during"]) == (pytest.approx(2 / 3), pytest.approx(0.25))
    assert (row["other_before_bit_per_s"], row["other_during_bit_per_s"]) == (80_000, pytest.approx(120_000))
    assert (row["other_rtt_before_ms"], row["other_rtt_during_ms"], row["other_rtt_peak_ms"]) == (60.0, 90.0, 91.0)
    assert (row["both_modems"], row["other_event_s"], row["gap_s"], row["factor"]) == (False, None, 3.0, 1.5)
    assert made.account == {"events": 1, "left_out": 0, "joined": 1, "without_connection": 0, "rows": 1}


def test_in_utc_too_an_event_of_one_modem_alone_has_no_other():
    utc_ns = 1_800_000_000 * 10**9
    events = [event._replace(t_ns=event.t_ns + utc_ns) for event in radio((20.0, "a", -8.0))]
    there = [flow._replace(start_ns=utc_ns, end_ns=flow.end_ns + utc_ns) for flow in flows(("a", 0))]
    data = replace(binned((always(2000), always(50.0))), offset_ns=utc_ns)
    row = only(joined(events, there, data))
    assert (row["both_modems"], row["other_event_s"], row["t_s"]) == (False, None, utc_ns / 1e9 + 20.0)


def test_events_nearer_than_the_gap_are_left_out_and_both_modems_at_one_second_are_marked_and_kept():
    data = binned((always(1000), always(50.0)), (always(1000), always(50.0)))
    for second, left_out in ((22.999, 2), (23.0, 0)):
        made = joined(radio((20.0, "a", -6.0), (second, "a", None)), flows(("a", 0)), only_of(data, data.flow == 0))
        assert (made.account["left_out"], len(made.rows)) == (left_out, 2 - left_out)
    for other, both in ((20.0, True), (21.0, True), (21.001, False)):
        made = joined(radio((20.0, "a", -6.0), (other, "b", None)), flows(("a", 0), ("b", 0)), data)
        told = [(row["path"], row["both_modems"], row["other_event_s"]) for row in made.rows]
        assert told == [(path, both, pytest.approx(other - 20)) for path in "ab"]


@pytest.mark.parametrize(("event", "during"), [(20.0, 40.0), (21.0, 39.0)])
def test_a_subflow_that_an_event_silences_for_good_is_out_of_range_to_the_end(event, during):
    """A's last packet is at 20.1 s; polls tell the event when they come. B goes on to 60 s."""
    both = binned((always(1000), always(50.0)), (always(1000), always(60.0)))
    there = (both.flow == 1) | (both.place <= 200)
    data = only_of(both, there)
    of = flows(("a", 0), ("b", 0))
    of[0] = of[0]._replace(end_ns=20_100_000_000)
    row = only(joined(radio((event, "a", None)), of, data))
    assert (row["why"], row["t_r_s"], row["during_s"]) == ("silent_to_end", None, pytest.approx(during))
    assert row["silent_s"] == pytest.approx(during, abs=0.06)
    assert row["goodput_loss"] == pytest.approx(1, abs=0.01)


def test_what_does_not_come_back_says_why():
    drop, handover = (20.0, "a", -6.0), (24.0, "a", None)
    for seconds, events, why, during in (
        (22.0, (drop,), "run_ended", 2.0),
        (60.0, (drop, handover), "next_event", 4.0),
        (90.0, (drop,), "not_recovered", 60.0),
    ):
        data = binned((always(1000), raised(200.0, 20, 999)), seconds=seconds)
        row = joined(radio(*events), flows(("a", 0), seconds=seconds), data).rows[0]
        assert (row["why"], row["t_r_s"], row["rtt_peak_ms"]) == (why, None, 201.0)
        assert row["during_s"] == pytest.approx(during)


def test_it_is_the_figures_recovery_of_the_bins_middles():
    drawn = np.random.default_rng(7)
    series = [(always(1000), lambda _: None if drawn.random() < 0.3 else float(drawn.gamma(3, 20))) for _ in range(4)]
    data = binned(*series, seconds=200.0)
    events = radio(*((float(t), "a", -6.0) for t in drawn.uniform(5, 130, 40)))
    made = joined(events, flows(*(("a", n) for n in range(4)), seconds=200.0), data, gap_s=0.0)
    compared = 0
    times = [*sorted(event.t_ns / 1e9 for event in events), math.inf]
    for row in made.rows:
        mine = data.flow == int(row["run"].removeprefix("run-"))
        next_s = next(t for t in times if t > row["t_s"])
        found = recovery((data.place[mine] + 0.5) / 10, data.rtt_mean_ms[mine], row["t_s"], next_s, 200.0)
        assert (row["rtt_before_ms"], row["why"]) == (pytest.approx(found.level_ms), found.why)
        assert (row["t_r_s"] is None and found.why) or row["t_r_s"] == pytest.approx(found.t_r_s)
        assert row["rtt_peak_ms"] == pytest.approx(found.peak_ms + 1)
        compared += 1
    assert compared > 20


def test_only_connections_with_data_are_joined_and_bins_without_packets_are_nothing_carried():
    data = binned((lambda t: 1000 if 10 <= t < 20 else 0, always(50.0)))
    events = radio((9.9, "a", -6.0), (13.0, "a", -6.0), (20.0, "a", -6.0), (15.0, "c", -6.0))
    made = joined(events, flows(("a", 0)), data)
    assert [row["t_s"] for row in made.rows] == [13.0]
    assert (made.account["joined"], made.account["without_connection"]) == (1, 3)
    full = binned((always(1000), always(50.0)))
    there = (full.place < 200) | (full.place >= 210)
    data = only_of(full, there)
    row = only(joined(radio((20.0, "a", -6.0)), flows(("a", 0)), data))
    assert (row["goodput_during_bit_per_s"], row["goodput_loss"], row["during_s"]) == (0.0, 1.0, 1.0)


ADDRESSES = {"a": "10.0.0.1", "b": "10.0.1.1"}


CAPTURE = "pair-1-a.pcap"


def connections(*of, file=CAPTURE):
    """Of a capture, one subflow each: (bytes carried, more)."""
    made = []
    for number, (carried, more) in enumerate(of):
        told = {"tokens": (None, None), "address": "10.0.0.1", "port": 8480, "opener_port": 40_000, **more}
        subflow = {"subflow": number, "opener_address": told["address"], "rtt_method": {1: "timestamp"}}
        multipath, server = told["tokens"] != (None, None), ("192.0.2.9", told["port"])
        ends = told["opener_port"], server, told["tokens"]
        made.append(Connection(f"/x/{file}", number, multipath, *ends, (100, carried), [subflow]))
    return made


def found_in(made, *manifests, captures=((CAPTURE, None, "a"),)):
    listed = [Capture(f"captures/{file}", 0, None, run, path, False) for file, run, path in captures]
    return matched(list(manifests), listed, made)


def manifest(run="run-1", kind="tcp", *, received=1000, named=None, result=None, **more):
    return {
        "id": run, "kind": kind, "files": [{"name": f"captures/{CAPTURE}"}], "result": {"bytes": received, **(result or {})},
        "parameters": {"server": {"measurement": "http://s.test:8480"}},
        "environment": {"path_addresses": ADDRESSES, "further": {"connection": named}}, **more,
    }  # fmt: skip


def rows(found):
    """Run, capture, number of the connection there, number of the match."""
    matches = [(match, one, n) for n, match in enumerate(found.matches) for one in match.parts]
    return [(match.run, one.file.removeprefix("/x/"), one.number, n) for match, one, n in matches]


def test_a_multipath_run_is_known_by_its_token_on_one_path_and_by_the_other_ends_on_the_other():
    a, b = "run-1-a.pcap", "run-1-b.pcap"
    made = connections((5000, {"tokens": (0xAB, 0xCD)}), (90_000, {"tokens": (0x11, 0x22)}), file=a)
    made += connections((8000, {"tokens": (None, 0x22)}), (7000, {"tokens": (None, 0xCD)}), file=b)
    found = found_in(made, manifest(kind="mptcp", named="ab"), captures=((a, "run-1", "a"), (b, "run-1", "b")))
    assert rows(found) == [("run-1", a, 0, 0), ("run-1", b, 1, 0)]
    assert (found.matches[0].way, found.matches[0].carried) == (1, [200, 12_000])
    assert (found.path_of, found.whys) == ({f"/x/{a}": "a", f"/x/{b}": "b"}, {})
    assert found.account["runs_without_connection"] == 0


def test_without_its_token_or_with_two_that_have_it_it_is_not_guessed():
    one, other = (5000, {"tokens": (0xAB, 0xCD)}), (5000, {"tokens": (0xAB, 0xCE)})
    for of, named, why in (
        ([one], None, "its manifest holds no token"),
        ([one], "zz", "its manifest holds no token"),
        ([one], "ac", "0 connections in the captures have its token"),
        ([one, other], "ab", "2 connections in the captures have its token"),
    ):
        found = found_in(connections(*of), manifest(kind="mptcp", named=named))
        assert (rows(found), found.account["runs_without_connection"], found.whys) == ([], 1, {"run-1": why})


def test_a_tcp_run_is_the_only_one_that_carried_as_much():
    made = connections((999, {}), (1000, {}), (5000, {"tokens": (0xAB, 0xCD)}))
    found = found_in(made, manifest(), manifest("run-2", "mptcp", named="ab"))
    assert [(run, number) for run, _, number, _ in rows(found)] == [("run-1", 1), ("run-2", 2)]
    found = found_in(made, manifest(received=1001))
    assert found.whys == {"run-1": "no TCP connection in its captures carried as much"}


def test_of_several_that_carried_as_much_it_is_that_from_the_port_that_the_server_saw():
    sender = {"connections": [{"subflows": [{"path": "a", "remote": {"address": "198.51.100.7", "port": 5001}}]}]}
    result = {"sender": sender, "subflows": [{"server_address": "192.0.2.9"}]}
    whole = connections((5000, {"opener_port": 5000}), (5000, {"opener_port": 5001}))
    assert rows(found_in(whole, manifest(result=result))) == [("run-1", CAPTURE, 1, 0)]
    for other in ({"port": 8444}, {"opener_port": 5003}):
        made = connections((5000, {"opener_port": 5000}), (5000, {"opener_port": 5001, **other}))
        assert rows(found_in(made, manifest(result=result))) == [], other
    elsewhere, bare = [{"server_address": "192.0.2.10"}], {"connections": [{"subflows": [{"path": "a"}]}]}
    for told in (result | {"subflows": elsewhere}, {}, {"sender": None}, {"sender": bare}):
        found = found_in(whole, manifest(result=told))
        assert found.whys == {"run-1": "0 connections that carried as much are from the port that the server saw"}


def test_what_two_runs_could_claim_is_neithers():
    found = found_in(connections((5000, {})), manifest("run-1"), manifest("run-2"))
    assert (rows(found), found.account["runs_without_connection"]) == ([], 2)
    assert found.whys == dict.fromkeys(("run-1", "run-2"), "another run could be meant as well")


def test_a_subflow_of_a_capture_of_all_paths_whose_address_is_no_paths_is_counted():
    made = connections((5000, {"address": "10.0.1.1"}), (5000, {"address": "10.9.9.9"}))
    found = found_in(made, manifest(kind="any"), captures=((CAPTURE, "run-1", None),))
    assert [row[2] for row in rows(found)] == [0, 1]
    assert found.account["subflows_without_path"] == 1


def test_other_experiments_connections_are_those_to_the_measurement_server():
    made = connections((500, {}), (700, {}), (9000, {"port": 8443}))
    assert [row[2:] for row in rows(found_in(made, manifest(kind="any")))] == [(0, 0), (1, 1)]
    assert rows(found_in(made, manifest(kind="any", parameters={}))) == []


def test_captures_of_no_run_and_copies_are_counted():
    copy = f"copy/{CAPTURE}.gz"
    made = [one for file in (copy, CAPTURE, "stray.pcap") for one in connections((5000, {}), file=file)]
    found = found_in(made, manifest(), captures=((CAPTURE, "run-1", "a"), ("stray.pcap", None, None)))
    assert [row[:2] for row in rows(found)] == [("run-1", copy)]
    account = found.account
    assert (account["captures_twice"], account["captures_of_no_run"], account["captures"]) == (1, 1, 1)
