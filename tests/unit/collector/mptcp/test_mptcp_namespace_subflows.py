"""When lost subflows are to be brought back, and which; the state that a path is in."""

import errno
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.mptcp import iproute
from tandem.mptcp.iproute import Interface, interfaces
from tandem.mptcp.namespace_subflows import REMEMBERED, NamespaceSubflows, Order, Restored
from tandem.mptcp.path_manager import Kind, PmEvent
from tandem.mptcp.paths import DefaultRoute, Path, judge

FOUR, SIX, S4, S6 = "10.0.0.1", "fd00:2::1", "203.0.113.10", "fd00:5::10"
PATHS = {FOUR: "a", "10.1.0.1": "b", SIX: "b"}
UP = {"a": FOUR, "b": "10.1.0.1"}
MIXED = {"a": FOUR, "b": SIX}
S = 1_000_000_000


def event(
    kind: Kind, local: str | None = "10.1.0.1", port: int = 5, token: int = 1, error: int | None = None, **more: bool
) -> PmEvent:
    return PmEvent(kind, token, local, "203.0.113.10", port, 80, error, **more)


def begun(token: int = 1) -> NamespaceSubflows:
    losses = NamespaceSubflows(PATHS.get)
    for one in (event("created", "10.0.0.1", 4, token), event("established", "10.0.0.1", 4, token)):
        losses.take(one, 0)
    losses.take(event("subflow_established", token=token), 0)
    return losses


def test_a_reset_is_tried_at_once_and_then_ever_more_rarely():
    losses = begun()
    losses.take(event("subflow_closed", error=104), 10 * S)
    tried = []
    now = 10 * S
    while len(tried) < 7:
        due = losses.next_ns(UP)
        assert due is not None
        assert losses.renewals(due - 1, UP) == []
        now = due
        assert losses.renewals(now, UP) == ["b"]
        tried.append(now // S - 10)
    assert tried == [0, 3, 9, 21, 45, 69, 93]
    assert losses.take(event("subflow_established", port=6), 105 * S) == Restored("b", 95_000.0, 104, 7)
    assert losses.next_ns(UP) is None
    assert losses.losses(1) == [{"path": "b", "at_monotonic_ns": 10 * S, "back_after_ms": 95_000.0}]


def test_what_the_server_refuses_after_the_handshake_is_not_tried_without_a_pause():
    """As when the server has as many subflows as it takes: established here, reset a moment later."""
    losses = begun()
    losses.take(event("subflow_closed", error=104), 1 * S)
    tried = []
    for now in range(1 * S, 30 * S, S // 10):
        if losses.renewals(now, UP):
            tried.append(now // S - 1)
            losses.take(event("subflow_established", port=6), now + 1000)
            losses.take(event("subflow_closed", port=6, error=104), now + 2000)
    assert tried == [0, 3, 9, 21]
    losses.take(event("subflow_established", port=7), 40 * S)
    losses.take(event("subflow_closed", port=7, error=104), 42 * S)
    assert losses.renewals(42 * S, UP) == ["b"]  # it had settled: at once again


def test_what_somebody_else_orders_needs_no_endpoint_and_is_kept_all_the_same():
    losses = begun()
    losses.leave(1)
    losses.take(event("subflow_closed", error=104), 1 * S)
    assert losses.next_ns(UP) is None
    assert losses.renewals(9 * S, UP) == []
    assert losses.take(event("subflow_established", port=6), 10 * S) == Restored("b", 9000.0, 104, 0)
    assert losses.losses(1) == [{"path": "b", "at_monotonic_ns": 1 * S, "back_after_ms": 9000.0}]


def test_a_handshake_that_came_to_nothing_is_no_loss_and_the_end_of_a_connection_ends_the_trying():
    losses = begun()
    losses.take(event("subflow_closed", error=104), 1 * S)
    losses.renewals(1 * S, UP)
    losses.take(event("subflow_closed", port=77, error=111), 1 * S + 1)
    assert len(losses.losses(1) or []) == 1
    assert losses.renewals(2 * S, UP) == []  # and does not hurry the next attempt
    losses = begun()
    losses.take(event("subflow_closed", error=110), 1 * S)
    losses.take(event("closed", None), 2 * S)
    assert losses.renewals(9 * S, UP) == []
    assert losses.losses(1) == [{"path": "b", "at_monotonic_ns": S, "back_after_ms": None}]
    assert losses.losses(2) is None


def test_strangers_are_passed_over_and_a_connection_begun_before_we_listened_is_not():
    losses = NamespaceSubflows(PATHS.get)
    losses.take(event("created", "10.0.0.1", server_side=True), 0)
    losses.take(event("subflow_established"), 0)
    losses.take(event("subflow_closed", error=104), 1 * S)
    assert losses.losses(1) == []
    losses.take(event("subflow_closed", "192.0.2.7", token=3, error=104), 1 * S)
    assert losses.losses(3) is None
    assert losses.renewals(9 * S, UP) == []
    for losses, lost in (
        (begun(), event("subflow_closed", "10.0.0.1", 4, error=104)),
        (NamespaceSubflows(PATHS.get), event("subflow_closed", "10.0.0.1", token=4, error=104)),
    ):
        losses.take(lost, 2 * S)
        assert losses.renewals(2 * S, UP) == ["a"]
    losses = NamespaceSubflows(PATHS.get)
    for token in range(REMEMBERED + 5):
        losses.take(event("created", token=token), 0)
    assert losses.losses(4) is None
    assert losses.losses(REMEMBERED + 4) == []


EVENTS = st.builds(
    event,
    st.sampled_from(["created", "established", "closed", "subflow_established", "subflow_closed"]),
    st.sampled_from(["10.0.0.1", "10.1.0.1", "192.0.2.1", None]),
    st.integers(1, 3),
    st.integers(1, 3),
    st.sampled_from([None, 104, 111]),
)


@given(st.lists(st.tuples(EVENTS, st.integers(0, 10 * S)), max_size=40))
def test_in_any_order_times_are_true_and_attempts_are_apart(story):
    losses = NamespaceSubflows(PATHS.get)
    now = 0
    last: dict[str, int] = {}
    for one, later in story:
        now += later
        back = losses.take(one, now)
        assert back is None or back.took_ms >= 0
        for path in losses.renewals(now, UP):
            assert path in UP
            last[path] = now
        due = losses.next_ns(UP)
        assert due is None or due > now
    for token in range(1, 4):
        for loss in losses.losses(token) or []:
            assert 0 <= loss["at_monotonic_ns"] <= now
            assert loss["back_after_ms"] is None or loss["back_after_ms"] >= 0


TOKEN = 7


def of_mixed(kind, local=FOUR, remote=S4, port=4000, **more) -> PmEvent:
    return PmEvent(kind, TOKEN, local, remote, port, 8480, **more)


TOLD = PmEvent("announced", TOKEN, None, S6, None, 8480, remote_id=9)
ON_B = Order(TOKEN, "b", SIX, S6, 8480, 9)


def ordered(*events: PmEvent, orders: bool = True) -> NamespaceSubflows:
    """What these events left, of which connections that begin are ours to order."""
    made = NamespaceSubflows(PATHS.get)
    for one in events:
        made.take(one, 0, orders=orders)
    return made


BEGUN = (of_mixed("created"), of_mixed("established"))
"""A connection that began by IPv4 over a."""


@pytest.fixture
def joins() -> NamespaceSubflows:
    return ordered(*BEGUN, TOLD)


def test_nothing_is_ordered_before_the_connection_is_established_and_the_server_told_its_address():
    assert ordered(of_mixed("created"), TOLD).orders(0, MIXED) == []
    joins = ordered(*BEGUN)
    assert (joins.orders(0, MIXED), joins.next_ns(MIXED)) == ([], None)
    joins.take(TOLD, 0, orders=True)
    assert (joins.next_ns(MIXED), joins.orders(0, MIXED)) == (0, [ON_B])
    without_port = PmEvent("announced", TOKEN, None, S6, None, None, remote_id=9)
    assert ordered(*BEGUN, without_port).orders(0, MIXED) == [ON_B], "the connection's"


def test_a_handshake_that_fails_is_tried_again_later_and_later(joins):
    tried = []
    for now in range(0, 60 * S, S):
        if joins.orders(now, MIXED):
            tried.append(now // S)
            joins.take(of_mixed("subflow_closed", SIX, S6, error=errno.ECONNREFUSED), now, orders=True)
    assert tried == [0, 3, 9, 21, 45]


def test_what_the_server_refuses_after_the_handshake_is_ordered_once_more_and_then_not_without_a_pause(joins):
    """As when the server has as many subflows as it takes: established here, reset a moment later."""
    tried = []
    for now in range(0, 30 * S, S // 10):
        if joins.orders(now, MIXED):
            tried.append(now // S)
            joins.take(of_mixed("subflow_established", SIX, S6), now + 1000, orders=True)
            joins.take(of_mixed("subflow_closed", SIX, S6, error=errno.ECONNRESET), now + 2000, orders=True)
    assert tried == [0, 0, 6, 18]


def test_a_path_that_is_down_is_not_tried_one_that_was_out_of_reach_is_again_and_a_closed_connection_forgotten(joins):
    assert (joins.orders(0, {"a": FOUR}), joins.next_ns({"a": FOUR})) == ([], None)
    joins.refused(joins.orders(0, MIXED)[0], errno.ENETUNREACH)
    assert joins.orders(3 * S, MIXED) == [ON_B]
    joins.take(PmEvent("closed", TOKEN), 0, orders=True)
    assert (joins.orders(99 * S, MIXED), joins.next_ns(MIXED)) == ([], None)


_KINDS = st.sampled_from(("created", "established", "closed", "announced", "subflow_established", "subflow_closed"))
_HOSTS = st.sampled_from((None, FOUR, SIX, S4, S6))
_EVENTS = st.builds(PmEvent, _KINDS, st.integers(1, 3), _HOSTS, _HOSTS, st.sampled_from((None, 1, 2)), st.none())


@given(st.lists(_EVENTS, max_size=40), st.sampled_from((MIXED, {"a": FOUR}, {"b": SIX}, {})))
def test_whatever_is_told_an_order_joins_ends_of_one_family_of_a_path_that_is_up(events, up):
    joins = NamespaceSubflows(PATHS.get)
    for now, one in enumerate(events):
        joins.take(one, now, orders=True)
        joins.removals(up)
        for order in joins.orders(now, up):
            assert order.local == up[order.path]
            assert (":" in order.local) == (":" in order.remote)
            assert joins.next_ns(up) is not None


# --- which state a path is in, from what the kernel shows


ETH = Interface("eth1", True, ("192.168.8.100",), (), ("192.168.8.100/24",))
ETH6 = Interface("eth1", True, (), ("2001:db8::5",), ("2001:db8::5/64",))
TUN = Interface("wwan0", True, ("10.64.0.2",), (), ("10.64.0.2/30",), point_to_point=True)
PATH = Path("a", "eth1", "192.168.8.1")
LEARNED = DefaultRoute("eth1", "192.168.8.1", 100)


@pytest.mark.parametrize(
    ("path", "interface", "routes", "state", "address", "gateway"),
    [
        (PATH, ETH, [], "up", "192.168.8.100", "192.168.8.1"),
        (PATH, None, [], "down", None, None),
        (PATH, replace(ETH, usable=False), [], "down", None, None),
        (PATH, replace(ETH, addresses=(), networks=()), [], "no_address", None, None),
        (replace(PATH, address="192.168.8.7"), ETH, [], "no_address", None, None),
        (replace(PATH, gateway=None), ETH, [], "no_route", "192.168.8.100", None),
        (replace(PATH, gateway=None), ETH, [LEARNED], "up", "192.168.8.100", "192.168.8.1"),
        (replace(PATH, gateway=None), ETH, [replace(LEARNED, interface="eth2")], "no_route", "192.168.8.100", None),
        (replace(PATH, gateway="10.9.9.9"), ETH, [], "no_route", "192.168.8.100", None),
        (replace(PATH, gateway="10.9.9.9"), ETH, [LEARNED], "up", "192.168.8.100", "192.168.8.1"),
        (PATH, ETH, [replace(LEARNED, gateway="192.168.8.2")], "up", "192.168.8.100", "192.168.8.1"),
        (Path("a", "wwan0"), TUN, [], "up", "10.64.0.2", None),
        (PATH, ETH6, [], "no_route", "2001:db8::5", None),
        (PATH, ETH6, [LEARNED], "no_route", "2001:db8::5", None),
        (PATH, ETH6, [DefaultRoute("eth1", "fe80::1", 1024)], "up", "2001:db8::5", "fe80::1"),
        (replace(PATH, gateway="fe80::7"), ETH6, [], "up", "2001:db8::5", "fe80::7"),
        (replace(PATH, gateway=None), replace(ETH, addresses6=("2001:db8::5",)), [LEARNED], "up", "192.168.8.100", "192.168.8.1"),
    ],
)  # fmt: skip
def test_states(path, interface, routes, state, address, gateway):
    got = judge(path, "eth1" if interface is None else interface.name, interface, routes, mptcp6=True)
    assert (got.state, got.address, got.gateway) == (state, address, gateway)
    assert "\n" not in got.detail


def test_the_better_of_two_default_routes_is_taken_and_what_cannot_be_used_is_named():
    routes = [replace(LEARNED, gateway="192.168.8.3", metric=700), LEARNED]
    assert judge(replace(PATH, gateway=None), "eth1", ETH, routes, mptcp6=True).gateway == "192.168.8.1"
    got = judge(PATH, "eth1", ETH6, [], mptcp6=False)
    assert (got.state, got.address) == ("ipv6_only_unusable", None)
    got = judge(Path("a", lambda: None), None, None, [], mptcp6=True)
    assert (got.state, got.interface, got.detail) == ("down", None, "there is no such modem")


def test_ips_answer_is_read_with_lasting_addresses_of_the_internet_first(monkeypatch):
    def row(local: str, length: int, **more: object) -> dict[str, object]:
        family = "inet6" if ":" in local else "inet"
        return {"family": family, "local": local, "prefixlen": length, "scope": "global", **more}

    addresses = [
        row("10.0.0.5", 32, address="10.0.0.6"),
        row("fd00::1", 64),
        row("2001:db8::9", 64, temporary=True),
        row("2001:db8::1", 64),
        row("2001:db8::2", 64, tentative=True),
        row("2001:db8::3", 64, deprecated=True),
        {**row("fe80::1", 64), "scope": "link"},
    ]
    shown = {"ifname": "ppp0", "flags": ["POINTOPOINT", "UP"], "mtu": 1400, "addr_info": addresses}
    monkeypatch.setattr(iproute, "ip_json", lambda *_: [shown])
    got = interfaces()["ppp0"]
    assert got.addresses == ("10.0.0.5",)
    assert got.addresses6 == ("2001:db8::1", "2001:db8::9", "fd00::1")
    assert "10.0.0.6/32" in got.networks
    assert (got.usable, got.point_to_point, got.mtu) == (True, True, 1400)
