"""What a modem's control socket and its schedule may ask: faults, and the words that its process knows."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.modem_on_fake_clock import TICK, write_timeline
from tandem_bench.modem.faults import KINDS, Fault, FaultError, parse, read_schedule
from tandem_bench.modem.process import obey
from tandem_bench.modem.timeline import TimelineError, read

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["fault", "seconds", "how", "x"]), inner)
    ),
    max_leaves=5,
)


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        ({"fault": "melt", "seconds": 1}, "fault is 'melt'; known: hang"),
        ({"fault": "hang"}, "seconds is None"),
        ({"fault": "hang", "seconds": -1}, "seconds is -1"),
        ({"fault": "hang", "seconds": 1, "for": 2}, "unknown key 'for'"),
        ({"fault": "wrong_sim", "seconds": 1, "how": "stolen"}, "how is 'stolen'"),
        ({"fault": "cme_error", "seconds": 1, "code": "x"}, "code is 'x'"),
        ([], "a fault is a JSON object"),
    ],
)
def test_nonsense_is_refused_and_named(wish, said):
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


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"fault": "hang", "seconds": 2}', "t_s is None"),
        ("{", "not JSON"),
        ('{"t_s": 1, "fault": "hang"}', "seconds is None"),
    ],
)
def test_schedule_names_file_and_line(tmp_path, line, said):
    path = tmp_path / "faults.jsonl"
    path.write_text('{"t_s": 1, "fault": "hang", "seconds": 2}\n' + line)
    with pytest.raises(FaultError, match=f"faults.jsonl:2: {said}"):
        read_schedule(path)


def test_a_known_word_is_done_and_what_is_none_is_a_fault() -> None:
    done: list[object] = []
    words = {"usb": {"plug": lambda: done.append("plug")}}
    obey({"usb": "plug"}, done.append, words)
    obey({"fault": "hang", "seconds": 2.0}, done.append, words)
    assert done == ["plug", Fault("hang", 2.0)]


@pytest.mark.parametrize("word", ["sideways", "", None, 1, ["plug"], {"plug": 1}])
def test_an_unknown_word_is_refused_with_the_known_ones(word: object) -> None:
    with pytest.raises(FaultError, match=r"^usb is .*; known: plug, unplug$"):
        obey({"usb": word}, lambda _fault: None, {"usb": {"plug": lambda: None, "unplug": lambda: None}})


@pytest.mark.parametrize("wish", [None, 1, "usb", [], {}, {"usb": "plug", "rrc": "idle"}, {"fan": "on"}])
def test_anything_else_is_refused(wish: object) -> None:
    with pytest.raises(FaultError):
        obey(wish, lambda _fault: None, {"usb": {"plug": lambda: None}})


# --- timelines: read at the right moment, refused with file and line


def test_conditions_follow_the_ticks_and_hold_at_both_ends(timeline):
    line = timeline({"eci": 1}, {"eci": 2}, {"eci": 2}, {"eci": 3})
    assert [line.at(t).eci for t in (-5, 0, 0.099, 0.1, 0.29, 0.3, 99)] == [1, 1, 1, 2, 2, 3, 3]


def test_changes_of_cell_are_known_beforehand(timeline):
    line = timeline({"eci": 1}, {"eci": 2}, {"eci": 2, "rsrp_dbm": -80}, {"eci": 2, "registered": False})
    assert [line.next_change_s(t) for t in (-1, 0, 0.15, 0.3)] == pytest.approx([0.1, 0.1, 0.3, None])


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"rsrp_dbm": "-90"}, "rsrp_dbm is '-90', not a number"),
        ({"rsrp_dbm": 90}, "rsrp_dbm is 90, outside -160 to -20"),
        ({"eci": 1.5}, "eci is 1.5, not a whole number"),
        ({"plmn": 101}, "plmn is 101, not 5 or 6 digits in quotes"),
        ({"rat": "5.5G"}, "rat is '5.5G'"),
        ({"registered": 1}, "registered is 1, not true or false"),
        ({"t_s": 7}, "t_s is 7, but the ticks before it make this 0.1"),
    ],
)
def test_wrong_value_names_file_and_line(tmp_path, wrong, said):
    path = write_timeline(tmp_path / "t.jsonl", [{}, wrong])
    with pytest.raises(TimelineError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}:3: {said}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ("{}\n", ":1: format is None"),
        ('{"format": "tandem-timeline/1", "operator": "A", "tick_s": 0}\n', ":1: tick_s is 0"),
        ('{"format": "tandem-timeline/1", "operator": "A", "tick_s": 0.1}\n', "no tick after it"),
        ('{"format": "tandem-timeline/1", "operator": "", "tick_s": 0.1}\n', ":1: operator"),
        ('{"format": "tandem-timeline/1", "operator": "A", "tick_s": 0.1}\n{', ":2: not JSON"),
    ],
)
def test_broken_file_is_refused(tmp_path, text, said):
    path = tmp_path / "t.jsonl"
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
