"""Which subflows are ordered where the kernel's path manager would not do."""

import errno

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.mptcp.path_manager import PmEvent
from tandem.mptcp.subflow_scheduler import NamespaceScheduler, Order

TOKEN, FOUR, SIX, S4, S6 = 7, "10.71.1.1", "fd00:2::1", "203.0.113.10", "fd00:5::10"
UP = {"a": FOUR, "b": SIX}
SECOND = 1_000_000_000


def path_of(address: str) -> str | None:
    return {FOUR: "a", SIX: "b"}.get(address)


def event(kind, local=FOUR, remote=S4, port=4000, **more) -> PmEvent:
    return PmEvent(kind, TOKEN, local, remote, port, 8480, **more)


TOLD = PmEvent("announced", TOKEN, None, S6, None, 8480, remote_id=9)
ON_B = Order(TOKEN, "b", SIX, S6, 8480, 9)


def told(*events: PmEvent, ours: bool = True) -> NamespaceScheduler:
    made = NamespaceScheduler(path_of)
    for one in events:
        made.take(one, 0, ours=ours)
    return made


BEGUN = (event("created"), event("established"))
"""A connection that began by IPv4 over a."""


@pytest.fixture
def joins() -> NamespaceScheduler:
    return told(*BEGUN, TOLD)


def test_nothing_is_ordered_before_the_connection_is_established_and_the_server_told_its_address():
    assert told(event("created"), TOLD).due(0, UP) == []
    joins = told(*BEGUN)
    assert (joins.due(0, UP), joins.next_ns(UP)) == ([], None)
    joins.take(TOLD, 0, ours=True)
    assert (joins.next_ns(UP), joins.due(0, UP)) == (0, [ON_B])
    without_port = PmEvent("announced", TOKEN, None, S6, None, None, remote_id=9)
    assert told(*BEGUN, without_port).due(0, UP) == [ON_B], "the connection's"


def test_a_handshake_that_fails_is_tried_again_later_and_later(joins):
    tried = []
    for now in range(0, 60 * SECOND, SECOND):
        if joins.due(now, UP):
            tried.append(now // SECOND)
            joins.take(event("subflow_closed", SIX, S6, error=errno.ECONNREFUSED), now, ours=True)
    assert tried == [0, 3, 9, 21, 45]


def test_what_the_server_refuses_after_the_handshake_is_not_tried_without_a_pause(joins):
    """As when the server has as many subflows as it takes: established here, reset a moment later."""
    tried = []
    for now in range(0, 30 * SECOND, SECOND // 10):
        if joins.due(now, UP):
            tried.append(now // SECOND)
            joins.take(event("subflow_established", SIX, S6), now + 1000, ours=True)
            joins.take(event("subflow_closed", SIX, S6, error=errno.ECONNRESET), now + 2000, ours=True)
    assert tried == [0, 0, 6, 18]


def test_a_path_that_is_down_is_not_tried_one_that_was_out_of_reach_is_again_and_a_closed_connection_forgotten(joins):
    assert (joins.due(0, {"a": FOUR}), joins.next_ns({"a": FOUR})) == ([], None)
    joins.refused(joins.due(0, UP)[0], errno.ENETUNREACH)
    assert joins.due(3 * SECOND, UP) == [ON_B]
    joins.take(PmEvent("closed", TOKEN), 0, ours=True)
    assert TOKEN not in joins


@pytest.mark.parametrize("more", [{"server_side": True}, {}])
def test_connections_of_others_are_left_alone(more):
    joins = told(event("created", **more), event("established", **more), TOLD, ours=bool(more))
    assert TOKEN not in joins
    assert joins.due(0, UP) == []


_KINDS = st.sampled_from(("created", "established", "closed", "announced", "subflow_established", "subflow_closed"))
_HOSTS = st.sampled_from((None, FOUR, SIX, S4, S6))
_EVENTS = st.builds(PmEvent, _KINDS, st.integers(1, 3), _HOSTS, _HOSTS, st.sampled_from((None, 1, 2)), st.none())


@given(st.lists(_EVENTS, max_size=40), st.sampled_from((UP, {"a": FOUR}, {"b": SIX}, {})))
def test_whatever_is_told_an_order_joins_ends_of_one_family_of_a_path_that_is_up(events, up):
    joins = NamespaceScheduler(path_of)
    for now, one in enumerate(events):
        joins.take(one, now, ours=True)
        joins.removals(up)
        for order in joins.due(now, up):
            assert order.local == up[order.path]
            assert (":" in order.local) == (":" in order.remote)
            assert joins.next_ns(up) is not None
