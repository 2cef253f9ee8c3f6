"""What is wrong begins and ends once, not at every look: alarms, modems, plans, and the list for people."""

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tandem.app.config_schema import ModemConfig, PathConfig, PlanConfig
from tandem.app.daemon.accounts import Sim, forecast
from tandem.app.health.machine import Room
from tandem.app.health.reports import Alarm, ModemStates, Wrong, all_that_is_wrong
from tandem.modem.poll import Poll
from tandem.schema.metrics import EVENT_KINDS, MODEM_STATES
from tandem.schema.record import Record

S = 10**9
MODEM = ModemConfig("/dev/ttyUSB2", "auto", None, None, Path("secret"))


@given(st.lists(st.sampled_from(["bad", "good", "between"]), max_size=60), st.integers(1, 4), st.integers(1, 4))
def test_an_alarm_begins_and_ends_in_turn_and_never_without_its_row_of_looks(looks, after, over):
    alarm = Alarm(after=after, over_after=over)
    turns = []
    for n, look in enumerate(looks):
        turn = alarm.look(look, n, "low")
        if turn == "begins":
            assert looks[n + 1 - after : n + 1] == ["bad"] * after
        if turn == "ends":
            assert looks[n + 1 - over : n + 1] == ["good"] * over
        if turn:
            turns.append(turn)
    assert turns == ["begins", "ends"] * (len(turns) // 2) + ["begins"] * (len(turns) % 2)
    assert (alarm.since_ns is not None) == (len(turns) % 2 == 1)


def kinds(events: list[Record]) -> list[tuple[str, str]]:
    assert all(e.tags["kind"] in EVENT_KINDS for e in events)
    return [(e.tags["kind"], str(e.fields["state"])) for e in events]


def test_a_low_supply_is_one_event_until_it_was_in_order_for_a_minute():
    wrong = Wrong()
    for n, low in enumerate([True, False, False, True] + [False] * 5):
        wrong.supply({"undervoltage": low, "throttled": False}, n * 10 * S)
    assert kinds(wrong.events()) == [("undervoltage", "begins")]
    assert wrong.texts() == [
        "the supply's voltage is too low; hint: a stronger supply, a shorter cable, fewer loads on USB"
    ]
    wrong.supply({"undervoltage": False, "throttled": False}, 90 * S)
    (over,) = wrong.events()
    assert kinds([over]) == [("undervoltage", "ends")]
    assert over.fields["took_ms"] == 90_000
    assert over.fields["detail"] == "was: the supply's voltage is too low"
    assert wrong.texts() == []


def test_one_look_at_a_capped_processor_is_no_event_two_are():
    wrong = Wrong()
    for capped in (True, False, True):
        wrong.supply({"undervoltage": False, "throttled": False, "frequency_capped": capped}, S)
    assert wrong.events() == []
    wrong.supply({"undervoltage": False, "throttled": True, "frequency_capped": True}, 2 * S)
    (event,) = wrong.events()
    assert "its frequency is capped, it is throttled" in str(event.fields["detail"])


def test_a_disk_at_its_threshold_does_not_flap():
    wrong = Wrong()
    for n, free in enumerate([900, 1050, 990, 1100, 1240, 990] + [1300] * 6):
        wrong.disk(Room(free * 10**6, 10**11, None, None), n * S)
    events = wrong.events()
    assert kinds(events) == [("disk_low", "begins"), ("disk_low", "ends")]
    assert events[0].fields["detail"] == "the disk has 900 MB left; hint: make room, or lower the budgets"


def test_a_small_disk_and_one_without_inodes_are_low_by_their_share():
    wrong = Wrong()
    wrong.disk(Room(200 * 10**6, 800 * 10**6, 10_000, 90_000), S)
    assert wrong.events() == []
    wrong.disk(Room(200 * 10**6, 800 * 10**6, 4_000, 96_000), S)
    assert "4000 inodes left" in str(wrong.events()[0].fields["detail"])


def test_a_worn_card_is_told_and_one_that_tells_nothing_is_not():
    wrong = Wrong()
    wrong.cards({"mmcblk0": {"kind": "sd", "life_used_a_percent": None}}, S)
    assert wrong.events() == []
    wrong.cards({"mmcblk0": {"life_used_a_percent": 20, "life_used_b_percent": 100, "pre_eol_code": 1}}, S)
    assert wrong.texts() == ["mmcblk0 has used up 100 % of its life; hint: a new card"]
    wrong.cards({"mmcblk0": {"life_used_a_percent": 10, "pre_eol_code": 1}}, 2 * S)
    assert kinds(wrong.events()) == [("card_worn", "begins"), ("card_worn", "ends")]


NOON = 1_795_262_400.0  # 2026-11-21T12:00:00Z


def sim(days: dict[str, int], gb: int = 10, warn: float = 1.0) -> Sim:
    plan = PlanConfig(gb * 10**9, 1, warn)
    path = PathConfig("a", "A", "wwan0", None, None, None, MODEM, plan=plan)
    return Sim(path, forecast(plan, days, NOON), 0, NOON)


def november(daily: int, first: int = 1) -> dict[str, int]:
    return {f"2026-11-{day:02}": daily for day in range(first, 21)}


def test_a_plan_is_warned_of_before_it_is_over_and_once():
    wrong = Wrong()
    wrong.plans([sim(november(300_000_000))], S)
    assert wrong.events() == []
    for n in range(5):
        wrong.plans([sim(november(400_000_000))], n * S)
    (event,) = wrong.events()
    assert kinds([event]) == [("plan_over", "begins")]
    assert event.tags["path"] == "a"
    text = "the SIM's plan will not last: 11.80 GB forecast of 10 GB (new on 01 December), used up on 26 November"
    assert event.fields["detail"] == text.replace("11.80", "12")
    wrong.plans([sim(november(330_000_000))], 9 * S)
    assert wrong.events() == []  # just below: not over yet
    wrong.plans([sim(november(250_000_000))], 10 * S)
    assert kinds(wrong.events()) == [("plan_over", "ends")]


def test_two_days_are_no_forecast_to_warn_of_but_a_used_plan_is():
    assert sim(november(2 * 10**9, first=19)).over() is False
    assert sim(november(6 * 10**9, first=19)).over() is True
    assert sim(november(6 * 10**9, first=19)).text() == "the SIM's plan is used up: 12 GB of 10 GB (new on 01 December)"
    assert sim(november(300_000_000), warn=0.8).over() is True


def poll(began_ns: int, failure: str | None = None, path: str = "a", **more: Any) -> Poll:
    return Poll(path, None, "quectel", None, 0, began_ns, began_ns, None, failure, **more)


def step(kind: str, at_s: float, name: str | None = None) -> Record:
    return Record.make("event", {"kind": kind, "path": "a"}, {"step": name, "detail": "x"}, int(at_s * S))


def state(modems: ModemStates, at_s: float = 100) -> tuple[Any, Any]:
    told = modems.to_dict(int(at_s * S))["a"]
    return told["state"], told["state_since_s"]


def test_a_modem_is_lost_after_five_seconds_and_usable_with_its_first_answer():
    modems = ModemStates(["a"], 0)
    assert state(modems)[0] == "unknown"
    modems.polled(poll(10 * S))
    modems.polled(poll(11 * S, "no_answer"))
    modems.polled(poll(14 * S, "no_answer"))
    assert state(modems, 15) == ("usable", 5.0)
    modems.polled(poll(16 * S, "no_answer"))
    assert state(modems, 20) == ("lost", 9.0)  # since its first missed poll
    modems.noted(step("recovery_step", 70, "at"))
    modems.polled(poll(71 * S, "no_answer"))
    assert state(modems, 80) == ("recovering", 10.0)
    modems.noted(step("recovery_step", 90, "cfun"))
    modems.noted(step("recovery_gave_up", 95))
    assert state(modems, 96) == ("lost", 1.0)
    modems.polled(poll(99 * S))
    (record,) = modems.records({"a": "A"}, 100 * S)
    assert record.fields["state"] in MODEM_STATES
    assert record.tags == {"path": "a", "operator": "A", "driver": "quectel"}
    assert record.fields == {
        "state": "usable", "state_code": 0, "state_since_s": 1.0, "polls_ok": 2, "polls_failed": 4, "period_s": 100.0,
        "recovery_steps": 2, "recovery_step": "cfun", "recoveries": 1,
    }  # fmt: skip
    (later,) = modems.records({"a": "A"}, 160 * S)
    assert (later.fields["polls_ok"], later.fields["polls_failed"], later.fields["period_s"]) == (0, 0, 60.0)


def test_an_error_is_an_answer_and_so_is_a_repeated_one():
    modems = ModemStates(["a"], 0)
    for second in range(20):
        modems.polled(poll(second * S, "cme_error 10"))
    assert state(modems)[0] == "usable"
    for second in range(20, 40):
        modems.polled(poll(second * S, stale=True))
    assert modems.to_dict(40 * S)["a"]["sickness"] is None
    assert state(modems)[0] == "usable"


def test_a_step_whose_event_comes_after_the_modem_is_back_changes_no_state():
    modems = ModemStates(["a"], 0)
    modems.polled(poll(S, "no_answer"))
    modems.polled(poll(9 * S))
    modems.noted(step("recovery_step", 10, "at"))
    assert state(modems)[0] == "usable"
    modems.polled(poll(20 * S, path="another"))
    modems.noted(Record.make("event", {"kind": "signal_drop", "path": "a"}, {"change_db": 7.0}, S))


def test_all_that_is_wrong_is_named_in_one_list():
    recovering = {"state": "recovering", "sickness": "silent", "recovery_steps": 2, "recovery_step": "cfun"}
    lost = {"state": "lost", "sickness": None, "recovery_steps": 6}
    status: dict[str, Any] = {
        "trouble": "the disk is full: records wait in memory",
        "wrong": ["the supply's voltage is too low"],
        "health": {"clock_synchronised": False, "spool_oldest_s": 7300.0},
        "modem_health": {
            "a": {"state": "usable", "state_since_s": 5.0},
            "b": {**recovering, "state_since_s": 192.0},
            "c": {**lost, "state_since_s": 100_000.0},
            "d": {**lost, "state_since_s": None},
        },
        "paths": {"a": {"state": "up"}, "b": {"state": "no_address", "detail": "wwan1 has no address"}},
        "spool": {"pending": 90_000, "dropped": 3, "rejected": 1},
    }
    assert all_that_is_wrong(status) == [
        "the disk is full: records wait in memory",
        "the supply's voltage is too low",
        "the clock was never set in this boot: records wait for their time; hint: a network, or a receiver",
        "path b: its modem is silent, for 3 min, recovering: cfun was done",
        "path c: its modem is lost, for 1 d 3 h, 6 recovery steps did not help",
        "path d: its modem is lost, for some time, 6 recovery steps did not help",
        "path b is no address: wwan1 has no address",
        "3 records were dropped: the spool was full",
        "1 records were refused by the server (spool/ has them with the reasons)",
        "90000 records wait to be sent, the oldest for 2 h 1 min",
    ]
    assert all_that_is_wrong({}) == []


def test_the_record_of_a_sim_keeps_the_schema_with_and_without_a_plan():
    told = sim(november(400_000_000)).record(S)
    assert (told.fields["plan_bytes"], told.fields["whole_period"]) == (10 * 10**9, True)
    assert 4 * 86400 < float(told.fields["used_up_in_s"]) < 6 * 86400
    bare = Sim(PathConfig("b", None, "w", None, None, None, MODEM), sim({}).forecast, 0, NOON)
    assert "plan_bytes" not in bare.record(S).fields
    assert bare.over() is False
