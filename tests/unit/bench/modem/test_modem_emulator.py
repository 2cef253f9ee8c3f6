"""One emulated modem in time, on a fake clock: delays, unsolicited lines, faults, the words of its control socket and of AT."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.modem_on_fake_clock import TICK, write_timeline
from tandem_bench.modem.faults import KINDS, Fault, FaultError, parse, read_schedule
from tandem_bench.modem.process import obey
from tandem_bench.modem.timeline import TimelineError, read


def test_answer_takes_as_long_as_a_modem_takes_and_never_the_same(desk):
    modem, waits = desk("generic"), []
    for _ in range(200):
        modem.heard()
        asked = modem.now_s
        modem.emulator.received(b"AT+CSQ\r")
        modem.advance(0.5)
        waits.append(modem.sent[0][0] - asked)
    assert all(0.002 <= wait <= 0.040 for wait in waits)
    assert len(set(waits)) > 150


def test_same_seed_same_bytes_at_the_same_times(desk):
    def played(seed):
        modem = desk("huawei", *({"eci": 256 + i // 10} for i in range(200)), seed=seed)
        for _ in range(20):
            modem.emulator.received(b"AT+CEREG=2;^HCSQ?\r")
            modem.advance(1)
        return modem.sent

    assert played(3) == played(3)
    assert played(3) != played(4)


def test_command_that_comes_while_another_runs_waits_its_turn(desk):
    modem = desk("huawei")
    modem.heard()
    modem.emulator.received(b"AT+CSQ\rAT+CFUN?\r")
    modem.advance(0.5)
    heard = modem.heard()
    assert heard.index(b"+CSQ: 23,99") < heard.index(b"+CFUN: 1")
    assert heard.count(b"\r\nOK\r\n") == 2


def test_change_of_cell_is_told_unasked_at_level_2_only(desk):
    modem = desk("generic", *({"eci": 256 + i // 50} for i in range(400)))
    modem.ask("AT+CEREG=1")
    modem.advance(9.8)
    assert modem.heard() == b""
    modem.ask("AT+CEREG=2")
    modem.advance(11)
    assert modem.heard() == b'\r\n+CEREG: 1,"1A2B","00000103",7\r\n\r\n+CEREG: 1,"1A2B","00000104",7\r\n'


def test_lost_service_is_told_at_level_1(desk):
    gone = dict.fromkeys(TICK, None) | {"registered": False}
    modem = desk("quectel", *([{}] * 30), *([gone] * 30), {})
    modem.ask("AT+CEREG=1")
    modem.advance(10)
    assert modem.heard() == b"\r\n+CEREG: 2\r\n\r\n+CEREG: 1\r\n"


def test_unsolicited_lines_fall_between_the_lines_of_answers_and_after_them(desk):
    modem, between, after = desk("huawei"), 0, 0
    for _ in range(900):
        heard = modem.ask("AT^HCSQ?;+CSQ;^MONSC;^SYSINFOEX", wait_s=1)
        assert heard.count(b"\r\nOK\r\n") == 1
        for at in (i for i in range(len(heard)) if heard.startswith(b"^RSSI:", i)):
            between += heard.index(b"\r\n^HCSQ") < at < heard.index(b"\r\nOK\r\n")
            after += at > heard.index(b"\r\nOK\r\n")
    assert between > 10
    assert after > 10


def test_port_that_nobody_reads_is_not_filled_with_the_past(desk):
    modem = desk("huawei")
    modem.heard()
    modem.waiting_unread = 600
    modem.advance(60)
    assert modem.heard() == b""


def test_hang_cuts_an_answer_short(desk):
    modem = desk("generic")
    modem.emulator.received(b"AT+CSQ\r")
    modem.emulator.play(Fault("hang", 1))
    modem.advance(5)
    assert modem.heard() == b""


def test_disappearing_loses_the_settings_but_not_the_identity(desk):
    modem = desk("generic", echo=True)
    modem.ask("ATE0+CMEE=1;+CEREG=2")
    modem.emulator.play(Fault("disappear", 2))
    assert not modem.attached
    modem.emulator.received(b"AT\r")
    modem.advance(1.9)
    assert not modem.attached
    modem.advance(0.2)
    assert modem.attached
    assert modem.ask("AT+CEREG?;+CIMI") == b"AT+CEREG?;+CIMI\r\r\n+CEREG: 0,1\r\n\r\n001010123456789\r\n\r\nOK\r\n"


def test_the_same_fault_again_starts_its_time_anew(desk):
    modem = desk("generic")
    modem.emulator.play(Fault("hang", 2))
    modem.advance(1.5)
    modem.emulator.play(Fault("hang", 2))
    assert modem.ask("AT", wait_s=1.5) == b""
    modem.advance(0.6)
    assert modem.ask("AT") == b"\r\nOK\r\n"


# --- what a modem's control socket and its schedule may ask: faults, and the words that its process knows


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["fault", "seconds", "how", "x"]), inner)
    ),
    max_leaves=5,
)


def test_nonsense_is_refused_and_named():
    hang = {"fault": "hang", "seconds": 1}
    for wish, said in (
        ({"fault": "melt", "seconds": 1}, "fault is 'melt'; known: hang"),
        ({"fault": "hang"}, "seconds is None"),
        ({"fault": "hang", "seconds": -1}, "seconds is -1"),
        (hang | {"for": 2}, "unknown key 'for'"),
        ({"fault": "wrong_sim", "seconds": 1, "how": "stolen"}, "how is 'stolen'"),
        ({"fault": "cme_error", "seconds": 1, "code": "x"}, "code is 'x'"),
        ([], "a fault is a JSON object"),
    ):
        with pytest.raises(FaultError, match=said):
            parse(wish)


@given(json_values)
def test_any_json_is_a_fault_or_refused_in_one_line(wish):
    said = ""
    try:
        kind = parse(wish).kind
    except FaultError as refusal:
        kind, said = KINDS[0], str(refusal)
    assert kind in KINDS
    assert "\n" not in said


def test_schedule_is_read(tmp_path):
    path = tmp_path / "faults.jsonl"
    path.write_text(
        '{"t_s": 1, "fault": "hang", "seconds": 2}\n\n{"t_s": 9.5, "fault": "wrong_sim", "seconds": 1, "how": "absent"}\n'
    )
    assert read_schedule(path) == [(1.0, Fault("hang", 2.0)), (9.5, Fault("wrong_sim", 1.0, "absent"))]


def test_schedule_names_file_and_line(tmp_path):
    path = tmp_path / "faults.jsonl"
    for line, said in (("{", "not JSON"), ('{"fault": "hang", "seconds": 2}', "t_s is None")):
        path.write_text('{"t_s": 1, "fault": "hang", "seconds": 2}\n' + line)
        with pytest.raises(FaultError, match=f"faults.jsonl:2: {said}"):
            read_schedule(path)


def test_a_known_word_is_done_what_is_none_is_a_fault_and_all_else_is_refused():
    done: list[object] = []
    words = {"usb": {"plug": lambda: done.append("plug"), "unplug": lambda: done.append("unplug")}}
    obey({"usb": "plug"}, done.append, words)
    obey({"fault": "hang", "seconds": 2.0}, done.append, words)
    assert done == ["plug", Fault("hang", 2.0)]
    for word in ("sideways", None, ["plug"]):
        with pytest.raises(FaultError, match=r"^usb is .*; known: plug, unplug$"):
            obey({"usb": word}, done.append, words)
    for wish in (None, "usb", [], {}, {"usb": "plug", "rrc": "idle"}, {"fan": "on"}):
        with pytest.raises(FaultError):
            obey(wish, done.append, words)
    assert len(done) == 2


# --- timelines: read at the right moment, refused with file and line


def test_conditions_follow_the_ticks_and_hold_at_both_ends(timeline):
    line = timeline({"eci": 1}, {"eci": 2}, {"eci": 2}, {"eci": 3})
    assert [line.at(t).eci for t in (-5, 0, 0.099, 0.1, 0.29, 0.3, 99)] == [1, 1, 1, 2, 2, 3, 3]


def test_changes_of_cell_are_known_beforehand(timeline):
    line = timeline({"eci": 1}, {"eci": 2}, {"eci": 2, "rsrp_dbm": -80}, {"eci": 2, "registered": False})
    assert [line.next_change_s(t) for t in (-1, 0, 0.15, 0.3)] == pytest.approx([0.1, 0.1, 0.3, None])


def test_wrong_values_and_missing_keys_name_file_and_line(tmp_path):
    path = tmp_path / "t.jsonl"
    for wrong, said in (
        ({"rsrp_dbm": "-90"}, "rsrp_dbm is '-90', not a number"),
        ({"rsrp_dbm": 90}, "rsrp_dbm is 90, outside -160 to -20"),
        ({"eci": 1.5}, "eci is 1.5, not a whole number"),
        ({"plmn": 101}, "plmn is 101, not 5 or 6 digits in quotes"),
        ({"rat": "5.5G"}, "rat is '5.5G'"),
        ({"registered": 1}, "registered is 1, not true or false"),
        ({"t_s": 7}, "t_s is 7, but the ticks before it make this 0.1"),
    ):
        with pytest.raises(TimelineError) as caught:
            read(write_timeline(path, [{}, wrong]))
        assert str(caught.value).startswith(f"{path}:3: {said}")
    header, tick = write_timeline(path, [{}]).read_text().splitlines()
    for key in TICK:
        path.write_text(header + "\n" + json.dumps({k: v for k, v in json.loads(tick).items() if k != key}))
        with pytest.raises(TimelineError, match=f":2: '{key}' is missing"):
            read(path)


def test_a_broken_file_is_refused(tmp_path):
    path, head = tmp_path / "t.jsonl", '{"format": "tandem-timeline/1", "operator": "A", "tick_s": 0.1}\n'
    for text, said in (
        ("", "empty"),
        ("{}\n", ":1: format is None"),
        (head.replace("0.1", "0"), ":1: tick_s is 0"),
        (head, "no tick after it"),
        (head.replace('"A"', '""'), ":1: operator"),
        (head + "{", ":2: not JSON"),
    ):
        path.write_text(text)
        with pytest.raises(TimelineError, match=said):
            read(path)


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_in_one_line(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("t") / "t.jsonl"
    path.write_bytes(content)
    with pytest.raises(TimelineError) as caught:
        read(path)
    assert "\n" not in str(caught.value).replace(str(path), "")


@pytest.mark.parametrize("key", sorted(TICK))
def test_missing_key_is_named(tmp_path, key):
    path = write_timeline(tmp_path / "t.jsonl", [{}])
    header, tick = path.read_text().splitlines()
    path.write_text(header + "\n" + json.dumps({k: v for k, v in json.loads(tick).items() if k != key}))
    with pytest.raises(TimelineError, match=f":2: '{key}' is missing"):
        read(path)
