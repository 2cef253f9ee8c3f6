"""Timelines: read at the right moment, refused with file and line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from modem_desk import write_timeline

from tandem_bench.modem.timeline import TimelineError, read


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
        ({"rsrp_dbm": float("nan")}, "rsrp_dbm is nan, not a number"),
        ({"eci": 1.5}, "eci is 1.5, not a whole number"),
        ({"eci": True}, "eci is True, not a number"),
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
        ('{"format": "tandem-timeline/1", "operator": "A", "tick_s": 0.1}\n[]', ":2: not a JSON object"),
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
