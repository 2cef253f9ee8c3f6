"""When lost subflows are to be brought back, and what is told of it."""

from hypothesis import given
from hypothesis import strategies as st

from tandem.mptcp.losses import REMEMBERED, Losses, Restored
from tandem.mptcp.path_manager import Kind, PmEvent

PATHS = {"10.0.0.1": "a", "10.1.0.1": "b"}
UP = ("a", "b")
S = 1_000_000_000


def event(
    kind: Kind, local: str | None = "10.1.0.1", port: int = 5, token: int = 1, error: int | None = None, **more: bool
) -> PmEvent:
    return PmEvent(kind, token, local, "203.0.113.10", port, 80, error, **more)


def begun(token: int = 1) -> Losses:
    losses = Losses(PATHS.get)
    for one in (event("created", "10.0.0.1", 4, token), event("established", "10.0.0.1", 4, token)):
        losses.take(one, 0)
    losses.take(event("subflow_established", token=token), 0)
    return losses


def test_a_reset_is_tried_at_once_and_then_ever_more_rarely() -> None:
    losses = begun()
    losses.take(event("subflow_closed", error=104), 10 * S)
    tried = []
    now = 10 * S
    while len(tried) < 7:
        due = losses.next_ns(UP)
        assert due is not None
        assert losses.due(due - 1, UP) == []
        now = due
        assert losses.due(now, UP) == ["b"]
        tried.append(now // S - 10)
    assert tried == [0, 3, 9, 21, 45, 69, 93]
    assert losses.take(event("subflow_established", port=6), 105 * S) == Restored("b", 95_000.0, 104, 7)
    assert losses.next_ns(UP) is None
    assert losses.of(1) == [{"path": "b", "at_monotonic_ns": 10 * S, "back_after_ms": 95_000.0}]


def test_what_the_server_refuses_after_the_handshake_is_not_tried_without_a_pause() -> None:
    """As when the server has as many subflows as it takes: established here, reset a moment later."""
    losses = begun()
    losses.take(event("subflow_closed", error=104), 1 * S)
    tried = []
    for now in range(1 * S, 30 * S, S // 10):
        if losses.due(now, UP):
            tried.append(now // S - 1)
            losses.take(event("subflow_established", port=6), now + 1000)
            losses.take(event("subflow_closed", port=6, error=104), now + 2000)
    assert tried == [0, 3, 9, 21]
    losses.take(event("subflow_established", port=7), 40 * S)
    losses.take(event("subflow_closed", port=7, error=104), 42 * S)
    assert losses.due(42 * S, UP) == ["b"]  # it had settled: at once again


def test_what_is_ordered_needs_no_endpoint_and_is_told_all_the_same() -> None:
    losses = Losses(PATHS.get, lambda token: token == 1)
    for one in (event("created", "10.0.0.1", 4), event("established", "10.0.0.1", 4), event("subflow_established")):
        losses.take(one, 0)
    losses.take(PmEvent("announced", 1, None, "fd00:5::10", None, 80, remote_id=9), 0)
    losses.take(event("subflow_closed", error=104), 1 * S)
    assert losses.next_ns(UP) is None
    assert losses.due(9 * S, UP) == []
    losses.ordered(1, "b", 9 * S)
    losses.ordered(2, "b", 9 * S)
    assert losses.take(event("subflow_established", port=6), 10 * S) == Restored("b", 9000.0, 104, 1)
    assert losses.of(1) == [{"path": "b", "at_monotonic_ns": 1 * S, "back_after_ms": 9000.0}]


def test_a_handshake_that_came_to_nothing_is_no_loss_and_the_end_of_a_connection_ends_the_trying() -> None:
    losses = begun()
    losses.take(event("subflow_closed", error=104), 1 * S)
    losses.due(1 * S, UP)
    losses.take(event("subflow_closed", port=77, error=111), 1 * S + 1)
    assert len(losses.of(1) or []) == 1
    assert losses.due(2 * S, UP) == []  # and does not hurry the next attempt
    losses = begun()
    losses.take(event("subflow_closed", error=110), 1 * S)
    losses.take(event("closed", None), 2 * S)
    assert losses.due(9 * S, UP) == []
    assert losses.of(1) == [{"path": "b", "at_monotonic_ns": S, "back_after_ms": None}]
    assert losses.of(2) is None


def test_strangers_are_passed_over_and_a_connection_begun_before_we_listened_is_not() -> None:
    losses = Losses(PATHS.get)
    losses.take(event("created", "10.0.0.1", server_side=True), 0)
    losses.take(event("subflow_established"), 0)
    losses.take(event("subflow_closed", error=104), 1 * S)
    assert losses.of(1) == []
    losses.take(event("subflow_closed", "192.0.2.7", token=3, error=104), 1 * S)
    assert losses.of(3) is None
    assert losses.due(9 * S, UP) == []
    for losses, lost in (
        (begun(), event("subflow_closed", "10.0.0.1", 4, error=104)),
        (Losses(PATHS.get), event("subflow_closed", "10.0.0.1", token=4, error=104)),
    ):
        losses.take(lost, 2 * S)
        assert losses.due(2 * S, UP) == ["a"]
    losses = Losses(PATHS.get)
    for token in range(REMEMBERED + 5):
        losses.take(event("created", token=token), 0)
    assert losses.of(4) is None
    assert losses.of(REMEMBERED + 4) == []


EVENTS = st.builds(
    event,
    st.sampled_from(["created", "established", "closed", "subflow_established", "subflow_closed"]),
    st.sampled_from(["10.0.0.1", "10.1.0.1", "192.0.2.1", None]),
    st.integers(1, 3),
    st.integers(1, 3),
    st.sampled_from([None, 104, 111]),
)


@given(st.lists(st.tuples(EVENTS, st.integers(0, 10 * S)), max_size=40))
def test_in_any_order_times_are_true_and_attempts_are_apart(story: list[tuple[PmEvent, int]]) -> None:
    losses = Losses(PATHS.get)
    now = 0
    last: dict[str, int] = {}
    for one, later in story:
        now += later
        back = losses.take(one, now)
        assert back is None or back.took_ms >= 0
        for path in losses.due(now, UP):
            assert path in UP
            last[path] = now
        due = losses.next_ns(UP)
        assert due is None or due > now
    for token in range(1, 4):
        for loss in losses.of(token) or []:
            assert 0 <= loss["at_monotonic_ns"] <= now
            assert loss["back_after_ms"] is None or loss["back_after_ms"] >= 0
