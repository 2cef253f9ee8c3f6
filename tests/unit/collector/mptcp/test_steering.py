"""When a path is made backup, by policy and by what was learned; orders of backup on a kernel that is a double."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.hostile_json import said
from tandem.mptcp import path_manager
from tandem.mptcp.backup import Backup, Confirmation
from tandem.mptcp.iproute import IpError
from tandem.mptcp.kernel_v094 import FullMesh
from tandem.mptcp.path_manager import Endpoint, PathManager
from tandem.mptcp.recovery import AFTER_S, ENOUGH, History, HistoryError, RadioEvent, Recovery, recoveries
from tandem.mptcp.steering import NOTED, POLICIES, Decision, Steering

S = 1_000_000_000


def event(kind: str, path: str = "a", at_s: float = 10.0, change_db: float | None = None, speed: str | None = None):
    return RadioEvent(kind, path, round(at_s * S), change_db, speed)


def drop(path: str = "a", at_s: float = 10.0, change_db: float = -8.0, speed: str | None = None) -> RadioEvent:
    return event("signal_drop", path, at_s, change_db, speed)


def told(decisions: list[Decision]) -> list[tuple[str, str]]:
    return [(d.path, d.action) for d in decisions]


def steering(policy: str = "drop", paths: str = "ab", history: History | None = None) -> Steering:
    return Steering(policy, tuple(paths), history or History())  # type: ignore[arg-type]


ACTS = {
    "off": set(),
    "drop": {"signal_drop", "service_lost"},
    "handover": {"handover", "service_lost"},
    "learned": {"signal_drop", "handover", "service_lost"},
}


def test_each_policy_acts_on_its_kinds_of_events():
    for policy in POLICIES:
        decisions = {kind: told(steering(policy).noted(event(kind, change_db=-8.0))) for kind in NOTED}
        assert {kind for kind, made in decisions.items() if made == [("a", "backup")]} == ACTS[policy]
        assert [made for kind, made in decisions.items() if made and kind not in ACTS[policy]] == []


def test_before_anything_is_learned_the_paper_says_how_long():
    for speed, seconds in (("low", 7.0), (None, 7.0), ("high", 12.0)):
        one = steering()
        (made,) = one.noted(drop(speed=speed))
        assert made.predicted_s == pytest.approx(seconds)
        assert one.tick(round((10 + seconds) * S) - 2) == []
        assert told(one.tick(round((10 + seconds) * S) + 2)) == [("a", "restore")]
        assert one.backup is None


def test_another_event_of_the_path_extends_and_an_earlier_end_does_not():
    one = steering()
    one.noted(drop(speed="high"))
    assert told(one.noted(drop(at_s=14.0, speed="high"))) == [("a", "extended")]
    assert one.noted(drop(at_s=15.0, speed="low")) == []
    assert one.tick(22 * S) == []
    assert told(one.tick(26 * S + 1)) == [("a", "restore")]


def test_of_two_bad_paths_the_one_that_is_bad_for_longer_or_without_service_stays_out():
    one = steering()
    one.noted(drop("a", 10.0, speed="high"))
    (declined,) = one.noted(drop("b", 11.0, speed="low"))
    assert (declined.path, declined.action, one.backup) == ("b", "declined", "a")
    assert told(one.noted(drop("b", 12.0, speed="high"))) == [("a", "restore"), ("b", "backup")]
    one = steering()
    one.noted(drop("a"))
    made = one.noted(event("service_lost", "b", 11.0))
    assert told(made) == [("a", "restore"), ("b", "backup")]
    assert one.due_ns is None
    assert told(one.noted(drop("a", 12.0))) == [("a", "declined")]


def test_without_service_it_stays_out_until_service_is_back_and_it_recovered():
    one = steering("handover")
    one.noted(event("service_lost"))
    assert one.tick(1000 * S) == []
    (extended,) = one.noted(event("service_back", at_s=1000.0))
    assert (extended.action, extended.cause, extended.predicted_s) == ("extended", "service_back", pytest.approx(7.0))
    assert told(one.tick(1008 * S)) == [("a", "restore")]


@pytest.mark.parametrize("kind", ["service_lost", "path_down"])
def test_the_only_path_that_carries_is_never_backup(kind):
    one = steering()
    back = {"service_lost": "service_back", "path_down": "path_up"}[kind]
    one.noted(event(kind, "b"))
    one.tick(11 * S)
    if one.backup == "b":
        one.end(11 * S)
    assert told(one.noted(drop("a", 12.0))) == [("a", "declined")]
    one.noted(event(back, "b", 13.0))
    assert told(one.noted(drop("a", 14.0))) == [("a", "backup")]


def test_a_path_is_restored_as_soon_as_it_is_the_only_one_and_at_the_end_of_the_run():
    one = steering()
    one.noted(drop("a"))
    assert told(one.noted(event("path_down", "b", 11.0))) == [("a", "restore")]
    assert one.backup is None
    one = steering()
    one.noted(event("service_lost", "a"))
    one.noted(event("service_lost", "b", 11.0))
    one.noted(event("service_back", "a", 12.0))
    assert one.backup != "a"
    one.noted(event("service_back", "b", 13.0))
    one.tick(60 * S)
    assert one.backup is None
    one = steering()
    one.noted(drop())
    assert told(one.end(11 * S)) == [("a", "restore")]
    assert one.end(12 * S) == []
    assert steering(paths="a").noted(drop()) == []
    assert steering().noted(drop("elsewhere")) == []


@given(
    st.sampled_from(POLICIES),
    st.lists(
        st.tuples(
            st.sampled_from(NOTED), st.sampled_from("abc"), st.floats(0, 20), st.none() | st.floats(-40, 40),
            st.sampled_from(["low", "high", None]),
        ),
        max_size=30,
    ),
)  # fmt: skip
def test_orders_alternate_and_never_leave_all_paths_backup(policy, steps):
    one, now, out = steering(policy, "abc"), 0.0, set()
    decisions: list[Decision] = []
    for kind, path, after, change, speed in steps:
        now += after
        decisions += one.tick(round(now * S)) + one.noted(event(kind, path, now, change, speed))
    for made in decisions + one.end(round(now * S)):
        if made.action == "backup":
            assert not out
            out.add(made.path)
        elif made.action == "restore":
            out.remove(made.path)
    assert not out
    assert policy != "off" or not decisions


# --- learned -------------------------------------------------------------------------------------------------------------------


def recovered(one: RadioEvent, seconds: float, kept: float) -> Recovery:
    return Recovery(one, seconds, kept, None, steered=False)


def compared(one: RadioEvent, whole: float, *, steered: bool) -> Recovery:
    return Recovery(one, None, None, whole, steered)


def test_what_was_seen_takes_the_place_of_the_paper():
    history, one = History(), drop(speed="low")
    history.add([recovered(one, 28.0, 1.0)])
    assert history.expect(one).recovery_s == pytest.approx(7 * 4**0.25)
    history = History()
    history.add([recovered(one, 2.0, 0.1)] * 300)
    assert history.expect(one).recovery_s == pytest.approx(2.0, rel=0.03)
    assert history.expect(one).kept == pytest.approx(0.1, abs=0.01)
    assert history.expect(drop(speed="high")).recovery_s == pytest.approx(12.0)
    assert history.expect(drop(change_db=-20.0, speed="low")).recovery_s == pytest.approx(7.0)


def test_learned_leaves_a_path_alone_after_a_small_drop_or_where_it_recovers_at_once():
    assert told(steering("learned").noted(drop(change_db=-4.0))) == [("a", "declined")]
    assert told(steering("learned").noted(drop(change_db=-12.0))) == [("a", "backup")]
    history = History()
    history.add([recovered(drop(), 0.3, 0.1)] * 50)
    assert told(steering("learned", history=history).noted(drop())) == [("a", "declined")]
    assert told(steering("drop", history=history).noted(drop())) == [("a", "backup")]


def test_what_the_whole_transfer_kept_decides_once_both_were_seen():
    for left_out, action in ((0.5, "declined"), (0.9, "backup")):
        history = History()
        history.add([compared(drop(), 0.7, steered=False)] * ENOUGH)
        history.add([compared(drop(), left_out, steered=True)] * (ENOUGH - 1))
        assert told(steering("learned", history=history).noted(drop(change_db=-6.0))) == [("a", "backup")]
        history.add([compared(drop(), left_out, steered=True)])
        assert told(steering("learned", history=history).noted(drop(change_db=-8.0))) == [("a", action)]


def test_a_history_is_read_as_it_was_written():
    history = History()
    for speed in ("low", None):
        history.add(
            [recovered(drop(speed=speed), 3.0, 0.2), compared(event("handover", speed=speed), 0.8, steered=True)]
        )
    again = History.from_json(history.as_json())
    assert again.as_json() == history.as_json()


ZERO = dict.fromkeys(("seen", "log_s", "kept", "alone", "alone_kept", "left_out", "left_out_kept"), 0)


def test_a_history_that_is_none_is_refused():
    classes = [
        *({"signal_drop/6 dB/low": row} for row in (5, {"seen": 1}, {**ZERO, "seen": 1, "kept": 5})),
        {"no/class/of/ours": {**ZERO, "seen": 1}},
    ]
    rows = [None, {"format": "another/1"}, *({"format": "tandem-steering-history/1", "classes": c} for c in classes)]
    assert [row for row in rows if not said(HistoryError, History.from_json, row)] == []


# --- what a run teaches; bins of half a second --------------------------------------------------------------------------------------


def bins(*spells: tuple[float, int]) -> list[float]:
    return [float(value) for seconds, value in spells for _ in range(round(seconds * 2))]


STEADY = bins((60, 100))


def test_a_recovery_lasts_until_the_goodput_is_back_or_hidden_by_an_order():
    received = {"a": bins((10, 100), (4, 20), (1, 100), (1, 0), (44, 90)), "b": STEADY}
    (one,) = recoveries([drop("a", 10.0)], received, 0, 0.5)
    assert one.recovery_s == pytest.approx(6.0)
    assert one.kept == pytest.approx((4 * 20 + 100) / 600)
    assert one.whole == pytest.approx((1000 + 180 + 4 * 90) / 2000)
    assert not one.steered
    received = {"a": bins((10, 100), (15, 10), (35, 100)), "b": STEADY}
    (alone,) = recoveries([drop("a", 10.0)], received, 0, 0.5)
    assert (alone.recovery_s, alone.steered) == (pytest.approx(15.0), False)
    (cut,) = recoveries([drop("a", 10.0)], received, 0, 0.5, [("a", 22 * S, 30 * S)])
    assert (cut.recovery_s, cut.whole, cut.steered) == (None, alone.whole, False)


def test_an_event_whose_path_was_left_out_teaches_what_the_whole_transfer_kept():
    received = {"a": bins((10, 100), (10, 0), (40, 100)), "b": bins((10, 100), (10, 150), (40, 100))}
    (one,) = recoveries([drop("a", 10.0)], received, 0, 0.5, [("a", 10 * S + S // 10, 20 * S)])
    assert (one.recovery_s, one.kept, one.steered, one.whole) == (None, None, True, pytest.approx(0.75))
    received = {"a": bins((10, 100), (50, 50)), "b": STEADY}
    orders = [("a", 10 * S, 13 * S), ("b", 14 * S, 16 * S)]  # what it does later belongs to what it did first
    (first,) = recoveries([drop("a", 10.0)], received, 0, 0.5, orders)
    assert (first.steered, first.whole) == (True, pytest.approx(0.75))


@pytest.mark.parametrize(
    ("events", "steered"),
    [
        ([drop("a", 0.0)], []),  # nothing before
        ([drop("c", 10.0)], []),  # another path
        ([drop("a", 10.0)], [("b", 10 * S, 15 * S)]),  # another path was left out
        ([drop("a", 10.0)], [("a", 5 * S, 15 * S)]),  # left out already
        ([event("service_back", "a", 10.0)], []),
    ],
)
def test_what_says_nothing_is_left_out(events, steered):
    received = {"a": bins((10, 100), (50, 10)), "b": STEADY}
    assert recoveries(events, received, 0, 0.5, steered) == []


def test_a_recovery_that_the_end_or_the_next_event_cuts_off_is_left_out():
    received = {"a": bins((10, 100), (AFTER_S - 1, 10)), "b": STEADY[:30]}
    assert recoveries([drop("a", 10.0)], received, 0, 0.5) == []
    received = {"a": bins((10, 100), (5, 20), (45, 100)), "b": STEADY}
    first, second = recoveries([drop("a", 10.0), drop("a", 12.0)], received, 0, 0.5)
    assert (first.recovery_s, second.recovery_s is None) == (None, False)


# --- orders of backup: whether one arrived, what is given again, and that a crash leaves none. The kernel is a double here


MS = 1_000_000


class Manager(PathManager):
    """Notes orders; a guard writes its own into ``file``."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.file, self.given, self.refuse = file, [], False

    def set_backup(self, number: int, backup: bool) -> None:
        if self.refuse:
            raise IpError("ip mptcp endpoint change: no such endpoint")
        self.given.append((number, backup))

    def undo_backup(self, number: int) -> list[str]:
        return ["sh", "-c", f"echo {number} >>{self.file}"]


@pytest.fixture
def manager(tmp_path: Path) -> Manager:
    return Manager(tmp_path / "undone")


def test_an_order_that_was_lost_is_given_by_its_opposite_and_itself_and_the_end_takes_back_what_is_left(manager):
    orders = Backup(manager)
    orders.order(101, backup=True)
    orders.order(101, backup=True, again=True)
    assert not manager.file.exists()
    orders.order(101, backup=False)
    assert manager.given == [(101, True), (101, False), (101, True), (101, False)]
    assert manager.file.read_text() == "101\n"
    orders.order(102, backup=True)
    orders.close()
    assert manager.file.read_text() == "101\n102\n"


def test_an_order_that_is_refused_leaves_no_guard(manager):
    orders = Backup(manager)
    manager.refuse = True
    with pytest.raises(IpError):
        orders.order(101, backup=True)
    assert manager.file.read_text() == "101\n"
    orders.close()
    assert manager.file.read_text() == "101\n"


def test_the_v094_kernel_refuses_and_an_order_to_an_endpoint_that_is_gone_is_not_kept(monkeypatch):
    with pytest.raises(IpError, match=r"v0\.94"):
        FullMesh().set_backup(101, True)
    assert FullMesh().undo_backup(101) == []
    kernel, asked = PathManager(), []

    def ip(*words: str) -> str:
        asked.append(words)
        if "change" in words:
            raise IpError("no such endpoint")
        return ""

    monkeypatch.setattr(path_manager, "ip", ip)
    for backup in (True, False):
        with pytest.raises(IpError):
            kernel.set_backup(101, backup)
        kernel.add(Endpoint(101, "10.64.0.2", None))
    assert [words[-1] for words in asked if "add" in words] == ["subflow", "subflow"]


# --- confirmation: samples every 100 ms from the order on -------------------------------------------------------------------------


def answers(backup: bool, mine: list[int], others: list[int], given: Confirmation | None = None) -> list[bool]:
    """What was said, in order; ``mine``, ``others``: bytes in each 100 ms."""
    one = given or Confirmation("a", 0, backup=backup)
    found, had, whole = [], 0, 0
    for number, (m, o) in enumerate(zip(mine, others, strict=True), 1):
        had, whole = had + m, whole + m + o
        answer = one.received(number * 100 * MS, had, whole)
        if answer is not None:
            found.append(answer)
            if not answer:
                break
    return found


def test_what_a_path_receives_says_whether_its_order_arrived():
    assert answers(True, [9, 9, 9] + [0] * 9, [9] * 12) == [True], "it fell silent"
    assert answers(True, [9] * 40, [9] * 40) == [False]
    assert answers(True, [9, 9] + [0] * 18 + [9] * 40, [9] * 60)[-1] is False
    assert answers(True, [0] * 100, [0] * 100) == answers(False, [0] * 100, [0] * 100) == [], "nothing moves"
    assert answers(True, [9] * 100, [0] * 100) == [], "it carries because the others fail"
    assert answers(False, [0] * 9 + [9] * 9, [9] * 18)[:1] == [True]
    assert answers(False, [0] * 60, [9] * 60) == [False]


def test_an_order_that_was_given_again_and_another_connection_begin_the_count_anew():
    one = Confirmation("a", 0, backup=True)
    assert answers(True, [9] * 40, [9] * 40, one) == [False]
    one.toggled(3_000 * MS)
    told = [one.received(ms * MS, 300, whole) for ms, whole in ((3_400, 600), (3_600, 700), (4_200, 900))]
    assert (told, one.toggles) == ([None, None, True], 1)
    other = Confirmation("a", 0, backup=True)
    assert [other.received(*seen) for seen in ((600 * MS, 5000, 9000), (1_200 * MS, 10, 20))] == [None, None]
    assert other.received(1_800 * MS, 10, 900) is True
