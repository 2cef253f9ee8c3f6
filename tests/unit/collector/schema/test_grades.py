"""Titles, ranges, thresholds, colours and words fit the schema."""

import itertools
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.schema.grades import COLOURS, EVENTS, PATH_COLOURS, SHARES, Meaning, event_meaning, path_colours
from tandem.schema.metrics import (
    CAMPAIGN_STATES,
    COMMON_FIELDS,
    COMMON_TAGS,
    EVENT_KINDS,
    MEASUREMENTS,
    MODEM_STATES,
    PLAYBACK_STATES,
    RADIO_STATES,
    ROUND_TRIP_OUTCOMES,
    VERDICT_ROLES,
    VERDICTS,
    Field,
)
from tandem_server.schema.grades import SCALES, USUAL, meaning, meanings, scale, title, tone_of, usual
from tandem_server.schema.measurements import PROBE_STATES, SERVER_MEASUREMENTS
from tandem_server.schema.rollups import FINEST, NOT_ROLLED, RESOLUTIONS, ROLLUPS

ALL = {**MEASUREMENTS, **SERVER_MEASUREMENTS}
FIELDS = [(m.name, f.name) for m in ALL.values() for f in m.fields]


def the_field(key: str) -> Field:
    measurement, _, name = key.partition(".")
    return ALL[measurement].field(name)


def test_every_kind_of_event_and_every_state_has_a_meaning_and_no_other():
    assert set(EVENTS) == set(EVENT_KINDS)
    states = {
        ("radio", "state"): RADIO_STATES,
        ("modem_health", "state"): MODEM_STATES,
        ("probe_state", "state"): PROBE_STATES,
        ("health", "mobile"): ("true", "false"),
        ("dash_playback", "state"): PLAYBACK_STATES,
        ("campaign", "state"): CAMPAIGN_STATES,
        ("verdict", "verdict"): VERDICTS,
        ("verdict", "role"): VERDICT_ROLES,
        ("round_trip", "outcome"): ROUND_TRIP_OUTCOMES,
    }
    assert {key: set(meanings(*key)) for key in states} == {key: set(words) for key, words in states.items()}
    coded = (("probe_state", "state"), ("modem_health", "state"), ("campaign", "state"), ("verdict", "verdict"))
    for measurement, name in coded:
        for number, word in enumerate(states[measurement, name]):
            assert meaning(measurement, f"{name}_code", number) == meaning(measurement, name, word), measurement


def test_limits_and_usual_ranges_lie_within_what_the_schema_admits_and_limits_say_their_source():
    def ends(low, high):
        return -math.inf if low is None else low, math.inf if high is None else high

    for key, usual_range in USUAL.items():
        low, high = ends(the_field(key).minimum, the_field(key).maximum)
        least, greatest = ends(usual_range.low, usual_range.high)
        assert least < greatest, key
        assert math.isinf(least) or low <= least, key
        assert math.isinf(greatest) or greatest <= high, key
    for key, limits in SCALES.items():
        field, (worst, best) = the_field(key), sorted((limits.good, limits.fair))
        low, high = ends(field.minimum, field.maximum)
        assert field.kind in ("int", "float"), key
        assert limits.source, key
        assert low <= worst <= best <= high, key
        assert key not in USUAL or USUAL[key].low < worst <= best < USUAL[key].high, key


def test_every_field_has_a_title_and_a_range_and_a_yes_or_no_is_yes_or_no():
    assert [field for field in FIELDS if not title(*field)] == []
    for field in FIELDS:
        usual(*field)
    assert meaning("sim_usage", "whole_period", False) == Meaning("no", "quiet")
    assert meaning("dash", "fallback", True) == meaning("run", "fallback", True) == Meaning("fell back to TCP", "fair")
    assert meanings("radio", "pci") == {}
    with pytest.raises(KeyError):
        meanings("radio", "nothing")


def test_values_are_graded_and_where_less_is_better_the_order_turns():
    for (measurement, field), tones in {
        ("radio", "rsrp_dbm"): [
            *((-80, "good"), (-90, "good"), (-90.1, "fair"), (-105, "fair"), (-105.5, "poor")),
            *((None, "quiet"), (True, "quiet")),
        ],
        ("health", "processor_temperature_degc"): [
            *((59.9, "good"), (60, "fair"), (79.9, "fair"), (80, "poor"), ("80", "quiet"))
        ],
    }.items():
        assert [(value, tone_of(measurement, field, value)) for value, _ in tones] == tones


@given(st.sampled_from([*SCALES.values(), *SHARES.values()]), st.floats(), st.floats())
def test_what_is_better_never_has_a_worse_grade(limits, one, other):
    order = ["poor", "fair", "good"]
    if one != one or other != other:
        assert "quiet" in (limits.tone(one), limits.tone(other))
        return
    low, high = (order.index(limits.tone(v)) for v in sorted((one, other)))
    assert low <= high if limits.more_is_better else low >= high


def test_colours_and_marks_are_each_of_one_meaning_and_steps_ascend():
    every = [*COLOURS.values(), *PATH_COLOURS]
    assert all(re.fullmatch("#[0-9A-F]{6}", colour.web) for colour in every)
    assert len({colour.web for colour in every}) == len(every)
    assert len({colour.terminal for colour in every}) == len(every)
    marks = [COLOURS[tone].mark for tone in ("good", "fair", "poor", "notice")]
    assert len(set(marks)) == 4
    assert all(mark.isascii() for mark in marks)
    names = ["b", "a", "wlan0"]
    assert all(path_colours(order) == path_colours(names) for order in itertools.permutations(names))
    for limits in (*SCALES.values(), *SHARES.values()):
        values = [limit for limit, _ in limits.steps]
        assert values[0] is None
        assert values[1] <= values[2], limits
        assert [limits.tone(v) for v in values[2:]] == [tone for _, tone in limits.steps[2:]], limits


def test_what_ends_is_good_again_and_words_of_another_version_are_told_as_they_are():
    told = [event_meaning("undervoltage", word).tone for word in ("begins", "ends")]
    told += [event_meaning("path_state", word).tone for word in ("up", "no_route")]
    assert told == ["poor", "good", "good", "poor"]
    assert event_meaning("of_a_later_version") == Meaning("of a later version", "notice")
    assert meaning("radio", "state", "on_the_moon") == Meaning("on the moon", "quiet")
    assert meaning("health", "undervoltage", True) == Meaning("too low", "poor")
    assert meaning("health", "undervoltage", None).tone == "quiet"
    assert (scale("radio", "pci"), tone_of("radio", "pci", 12)) == (None, "quiet")


ENDLESS_TAGS = {"boot", "run", "subflow", "pair"}
WORDS = {"radio": RADIO_STATES, "modem_health": MODEM_STATES, "probe_state": PROBE_STATES, "campaign": CAMPAIGN_STATES}


def test_every_measurement_is_rolled_up_or_it_is_said_why_not_without_a_gap():
    known = set(MEASUREMENTS) | set(SERVER_MEASUREMENTS)
    assert set(ROLLUPS) | set(NOT_ROLLED) == known, "add it to ROLLUPS, or to NOT_ROLLED with the reason"
    assert not set(ROLLUPS) & set(NOT_ROLLED)
    assert RESOLUTIONS[0] is FINEST
    bounds = [one.below_s for one in RESOLUTIONS]
    assert bounds[-1] is None
    assert bounds[:-1] == sorted(b for b in bounds if b is not None)
    assert [one.rolled for one in RESOLUTIONS[1:]] == [one.policy for one in RESOLUTIONS[1:]]


def test_rollups_have_fields_and_tags_of_the_raw_measurement():
    for name, rollup in ROLLUPS.items():
        allowed = {*rollup.raw.tags, *(COMMON_TAGS if name in MEASUREMENTS else ())}
        assert set(rollup.tags) <= allowed, name
        assert not set(rollup.tags) & ENDLESS_TAGS, name
        assert ("probe" in rollup.tags) == ("probe" in allowed), name
        rollup.raw.field(rollup.counted)
        for one in rollup.fields:
            raw = rollup.raw.field(one.field)  # KeyError when it is no longer there
            if one.holds in ("mean", "sum", "min", "max") or one.also:
                assert raw.kind in ("int", "float"), (name, one)
            if one.words and raw.kind == "str" and one.field == "state":
                assert one.words == WORDS[name], name
        names = [column.name for column in rollup.columns]
        assert len(names) == len(set(names)), name
        raw_names = {field.name for field in (*COMMON_FIELDS, *rollup.raw.fields)}
        held = {one.field for one in rollup.fields}
        assert (set(names) & raw_names) == held, (
            f"{name}: a further column has the name of a raw field that means another"
        )
        assert not set(names) & set(rollup.raw.tags), f"{name}: a field with the name of a tag cannot be asked for"
