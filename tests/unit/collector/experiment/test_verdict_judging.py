"""From what was seen to verdicts: what the lab cannot play, or not without luck."""

from hypothesis import given
from hypothesis import strategies as st

from tandem.experiment.verdict.judging import Join, Primary, between, judge_join, judge_primary
from tandem.mptcp.kernels import counters
from tandem.schema.metrics import VERDICTS


def primary(**more):
    values = {"tcp": True, "connected": True, "connect_s": 0.05, "handshake": False}
    found = judge_primary(Primary(**{**values, **more}))
    return found.verdict, found.where


def join(**more):
    found = judge_join(Join(**{"over": "b", **more}))
    return found.verdict, found.where


def test_verdicts_of_a_first_subflow_and_of_a_join():
    rows = [
        ({"syns": (1, 0, 2)}, ("stripped", "syn")),
        ({"syns": (1, 1, 1)}, ("stripped", "syn-ack")),
        ({"syns": (), "server": "none"}, ("stripped", "syn or syn-ack")),
        ({"server": "fallback"}, ("stripped", "syn-ack")),
        ({"between": True}, ("stripped", "syn")),
        ({"connect_s": 3.1}, ("dropped", "syn or syn-ack")),
        # A kernel that counts them decides; a SYN that the network lost, or a busy machine, only takes long.
        ({"connect_s": 3.1, "syns": (0,), "counters": {"MPCapableSYNTXDrop": 0}}, ("stripped", "syn")),
        ({"connect_s": 0.1, "counters": {"MPCapableSYNTXDrop": 1}}, ("dropped", "syn or syn-ack")),
        ({"counters": {"MPCapableSYNTX": 0}}, ("untested", None)),
        ({"connected": False, "error": "timeout"}, ("dropped", "syn or syn-ack")),
        ({"connected": False, "tcp": False, "error": "timeout"}, ("unreachable", None)),
        ({"handshake": True, "data": None, "error": "HTTP 503"}, ("untested", None)),
        ({"handshake": True, "data": False}, ("fallback", "data")),
        ({"handshake": True, "data": True, "alive": False}, ("reset", "data")),
        ({"handshake": True, "data": True, "alive": True}, ("native", None)),
    ]
    assert [(seen, expected) for seen, expected in rows if primary(**seen) != expected] == []
    assert {verdict for _, (verdict, _) in rows} == set(VERDICTS)
    rows = [
        ({"over": None}, ("untested", None)),
        ({"error": "timeout"}, ("untested", None)),
        ({"counters": {"MPJoinSynTx": 0}}, ("untested", None)),
        ({"counters": {"MPJoinSynTx": 1}}, ("stripped", "syn or syn-ack")),
        ({"seen": True, "counters": {"MPJoinSynAckHMacFailure": 1}}, ("stripped", "syn-ack")),
        ({"seen": True, "repeated": True}, ("dropped", "syn or syn-ack")),
        ({"seen": True, "established": True, "alive": False}, ("reset", "data")),
        ({"seen": True, "established": True, "alive": True}, ("native", None)),
        ({"seen": True, "established": True, "alive": True, "bytes_received": 9}, ("native", None)),
    ]
    assert [(seen, expected) for seen, expected in rows if join(**seen) != expected] == []


def test_a_wrong_checksum_is_named_and_what_cannot_be_told_is_none():
    seen = Primary(tcp=True, connected=True, handshake=True, data=False, counters={"DataCsumErr": 1})
    assert "checksum" in judge_primary(seen).detail
    assert between(0.1, 0.1, 0.3) is None
    assert between(None, 10, 20) is None
    assert between(20, 20, 60) is None  # a slow server gives this as well
    text = "TcpExt: A B\nTcpExt: 1 2\nMPTcpExt: MPCapableSYNRX MPCapableSYNTX\nMPTcpExt: 3 4\n"
    assert counters(text) == {"MPCapableSYNRX": 3, "MPCapableSYNTX": 4}
    assert counters("TcpExt: A\nTcpExt: 1\n") == {}


@given(st.floats(5, 500), st.floats(0, 0.2))
def test_end_to_end_is_no_proxy(rtt, slower):
    assert between(rtt, rtt * (1 + slower), rtt * (1 + slower)) is False


@given(st.floats(5, 200), st.floats(2, 20))
def test_two_unlike_stretches_that_add_up_are_a_proxy(near, more):
    assert between(near, near * more, near + near * more) is True
    assert between(near * more, near, near + near * more) is True
