"""Exactly the subflows that were asked for: what is ordered, when, and when again."""

import errno

from hypothesis import given
from hypothesis import strategies as st

from tandem.mptcp.path_manager import PmEvent
from tandem.mptcp.subflow_scheduler import ConnectionScheduler

A, B, B6 = "192.0.2.1", "192.0.2.2", "2001:db8::2"
FIRST, SECOND, SECOND6 = "203.0.113.10", "203.0.113.11", "2001:db8::11"
OURS = {"a": [A], "b": [B, B6]}
TOKEN, S = 7, 10**9


def chosen(paths=("a", "b"), each=1, told=(), established=True):
    made = ConnectionScheduler(paths, each, told)
    made.begin(TOKEN, "a", A, FIRST, 8480, 0)
    if established:
        made.take(PmEvent("established", TOKEN), 0)
    return made


def went(orders):
    return [(o.path, o.local, o.remote) for o in orders]


def gone(made, local, remote, now, error=errno.ECONNRESET):
    made.take(PmEvent("subflow_closed", TOKEN, local, remote, error=error), now)


def test_what_is_ordered():
    for paths, each, told, wanted in (
        (("a",), 1, [SECOND], []),
        (("a", "b"), 1, [SECOND], [("b", B, FIRST)]),
        (("a", "b"), 2, [SECOND6], [("b", B, FIRST), ("b", B6, SECOND6)]),
        (("a", "b"), 2, [FIRST], [("b", B, FIRST)]),
        (("a", "b"), 2, [SECOND, "203.0.113.12"], [("b", B, FIRST), ("a", A, SECOND), ("b", B, SECOND)]),
    ):
        orders = chosen(paths, each, told).due(0, OURS)
        assert went(orders) == wanted
        assert {(o.token, o.port) for o in orders} <= {(TOKEN, 8480)}


def test_nothing_before_the_peer_takes_further_subflows_nor_of_another_connection_nor_after_its_end():
    made = chosen(established=False)
    made.take(PmEvent("established", TOKEN + 1), 0)
    assert made.due(0, OURS) == []
    assert made.next_ns(OURS) is None
    made.take(PmEvent("established", TOKEN), 5)
    assert made.next_ns(OURS) == 0
    assert len(made.due(5, OURS)) == 1
    closed = chosen()
    closed.take(PmEvent("closed", TOKEN), 1)
    assert closed.due(1, OURS) == []


def test_a_refused_handshake_is_tried_again_at_once_then_later():
    made = chosen()
    (order,) = made.due(0, OURS)
    times = []
    now = 0
    for _ in range(4):
        gone(made, order.local, order.remote, now, errno.ECONNREFUSED)
        now = made.next_ns(OURS)
        times.append(now / S)
        assert len(made.due(now, OURS)) == 1
    assert times == [0, 6, 18, 42]
    assert made.subflows[1].why_not == "connection refused"


def test_a_path_without_an_address_waits_for_one():
    made = chosen()
    assert made.due(0, {"a": [A]}) == []
    assert went(made.due(9, {"a": [A], "b": ["192.0.2.77"]})) == [("b", "192.0.2.77", FIRST)]


def test_what_the_kernel_refuses():
    for code, again in ((errno.EINVAL, False), (errno.ESRCH, False), (errno.ENETUNREACH, True)):
        made = chosen()
        (order,) = made.due(0, OURS)
        made.refused(order, code)
        assert (made.next_ns(OURS) is not None) == again
        assert made.subflows[1].why_not


KINDS = st.sampled_from(["established", "closed", "announced", "subflow_established", "subflow_closed"])
HOSTS = st.sampled_from([A, B, B6, FIRST, SECOND, SECOND6, None])
EVENTS = st.builds(
    PmEvent, KINDS, st.sampled_from([TOKEN, 8]), local=HOSTS, remote=HOSTS, remote_id=st.integers(0, 255)
)


@given(st.lists(st.one_of(EVENTS, st.integers(0, 100)), max_size=60), st.sampled_from([1, 2]))
def test_whatever_happens_no_way_is_ordered_twice_while_it_is_open(happening, each):
    made, now, open_ways = chosen(each=each, told=[SECOND]), 0, {("a", FIRST)}
    owners = {A: "a", B: "b", B6: "b"}
    for one in happening:
        if isinstance(one, int):
            now += one * S // 10
            for order in made.due(now, OURS):
                assert (order.path, order.remote) not in open_ways
                open_ways.add((order.path, order.remote))
        else:
            made.take(one, now)
            if one.kind == "subflow_closed" and one.token == TOKEN:
                open_ways.discard((owners.get(one.local), one.remote))
            if one.kind == "subflow_established" and one.token == TOKEN and one.local in owners:
                open_ways.add((owners[one.local], one.remote))
    assert all(w.attempts <= 1 + len(happening) for w in made.subflows)
