"""Titles, ranges, thresholds, colours and words fit the schema."""

from __future__ import annotations

import itertools
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.app.health.wrong import ENOUGH, LOW_BYTES, LOW_SHARE, WORN_EOL, WORN_PERCENT
from tandem.schema.grades import (
    COLOURS,
    EVENTS,
    PATH_COLOURS,
    SCALES,
    SHARES,
    STATES,
    Meaning,
    event_meaning,
    meaning,
    meanings,
    path_colours,
    scale,
    title,
    tone_of,
    usual,
)
from tandem.schema.grades.ranges import USUAL
from tandem.schema.metrics import (
    CAMPAIGN_STATES,
    EVENT_KINDS,
    MEASUREMENTS,
    MODEM_STATES,
    PLAYBACK_STATES,
    PROBE_STATES,
    RADIO_STATES,
    SERVER_MEASUREMENTS,
    VERDICT_ROLES,
    VERDICTS,
    Field,
)

ALL = {**MEASUREMENTS, **SERVER_MEASUREMENTS}
FIELDS = [(m.name, f.name) for m in ALL.values() for f in m.fields]


def the_field(key: str) -> Field:
    measurement, _, name = key.partition(".")
    return ALL[measurement].field(name)


def test_every_kind_of_event_has_a_meaning_and_no_other():
    assert set(EVENTS) == set(EVENT_KINDS)


@pytest.mark.parametrize(
    ("measurement", "field", "states"),
    [
        ("radio", "state", RADIO_STATES),
        ("modem_health", "state", MODEM_STATES),
        ("probe_state", "state", PROBE_STATES),
        ("health", "mobile", ("true", "false")),
        ("dash_playback", "state", PLAYBACK_STATES),
        ("campaign", "state", CAMPAIGN_STATES),
        ("verdict", "verdict", VERDICTS),
        ("verdict", "role", VERDICT_ROLES),
    ],
)
def test_every_state_has_a_meaning_and_no_other(measurement, field, states):
    assert set(meanings(measurement, field)) == set(states)


@pytest.mark.parametrize(
    ("measurement", "name", "code", "words"),
    [
        ("probe_state", "state", "state_code", PROBE_STATES),
        ("modem_health", "state", "state_code", MODEM_STATES),
        ("campaign", "state", "state_code", CAMPAIGN_STATES),
        ("verdict", "verdict", "verdict_code", VERDICTS),
    ],
)
def test_a_code_means_what_its_word_means(measurement, name, code, words):
    for number, word in enumerate(words):
        assert meaning(measurement, code, number) == meaning(measurement, name, word)


@pytest.mark.parametrize("key", sorted(STATES))
def test_words_are_of_a_field_or_tag_of_the_schema_and_fit_it(key):
    measurement, _, name = key.partition(".")
    words = STATES[key]
    assert all(m.words and m.words == m.words.strip() and "_" not in m.words for m in words.values())
    if name in ALL[measurement].tags:
        return
    field = ALL[measurement].field(name)
    if field.kind == "bool":
        assert set(words) == {"true", "false"}
    elif field.kind == "int":
        assert set(words) == {str(n) for n in range(int(field.minimum or 0), int(field.maximum or 0) + 1)}
    else:
        assert field.kind == "str"


def test_a_yes_or_no_of_which_nothing_more_is_known_is_yes_or_no():
    assert meaning("sim_usage", "whole_period", False) == Meaning("no", "quiet")
    assert meaning("dash", "fallback", True) == meaning("run", "fallback", True) == Meaning("fell back to TCP", "fair")
    assert meanings("radio", "pci") == {}
    with pytest.raises(KeyError):
        meanings("radio", "nothing")


@pytest.mark.parametrize("key", sorted(SCALES))
def test_limits_lie_within_what_the_schema_admits_and_say_their_source(key):
    field, limits = the_field(key), SCALES[key]
    low, high = (
        (-math.inf if field.minimum is None else field.minimum),
        (math.inf if field.maximum is None else field.maximum),
    )
    assert field.kind in ("int", "float")
    assert low <= limits.fair <= high
    assert low <= limits.good <= high
    assert limits.source


@pytest.mark.parametrize("key", sorted(set(SCALES) & set(USUAL)))
def test_limits_lie_within_the_usual_range(key):
    shown = USUAL[key]
    assert shown.low is not None
    assert shown.high is not None
    assert shown.low < min(SCALES[key].good, SCALES[key].fair) <= max(SCALES[key].good, SCALES[key].fair) < shown.high


@pytest.mark.parametrize("key", sorted(USUAL))
def test_usual_ranges_lie_within_what_the_schema_admits(key):
    field, shown = the_field(key), USUAL[key]
    assert shown.low is None or field.minimum is None or shown.low >= field.minimum
    assert shown.high is None or field.maximum is None or shown.high <= field.maximum
    assert shown.low is None or shown.high is None or shown.low < shown.high


@pytest.mark.parametrize(("measurement", "field"), FIELDS)
def test_every_field_has_a_title_and_a_range(measurement, field):
    assert title(measurement, field)
    usual(measurement, field)


@pytest.mark.parametrize(
    ("level", "tone"),
    [(-80, "good"), (-90, "good"), (-90.1, "fair"), (-105, "fair"), (-105.5, "poor"), (None, "quiet"), (True, "quiet")],
)
def test_rsrp_is_graded(level, tone):
    assert tone_of("radio", "rsrp_dbm", level) == tone


@pytest.mark.parametrize(
    ("value", "tone"), [(59.9, "good"), (60, "fair"), (79.9, "fair"), (80, "poor"), ("80", "quiet")]
)
def test_where_less_is_better_the_order_turns(value, tone):
    assert tone_of("health", "processor_temperature_degc", value) == tone


@given(st.sampled_from([*SCALES.values(), *SHARES.values()]), st.floats(), st.floats())
def test_what_is_better_never_has_a_worse_grade(limits, one, other):
    order = ["poor", "fair", "good"]
    if one != one or other != other:
        assert "quiet" in (limits.tone(one), limits.tone(other))
        return
    low, high = (order.index(limits.tone(v)) for v in sorted((one, other)))
    assert low <= high if limits.more_is_better else low >= high


@pytest.mark.parametrize("limits", [*SCALES.values(), *SHARES.values()])
def test_steps_ascend_as_grafana_wants_them(limits):
    values = [limit for limit, _ in limits.steps]
    assert values[0] is None
    assert values[1] <= values[2]
    assert [limits.tone(v) for v in values[2:]] == [tone for _, tone in limits.steps[2:]]


def test_an_ungraded_field_has_no_grade():
    assert scale("radio", "pci") is None
    assert tone_of("radio", "pci", 12) == "quiet"


def test_colours_and_marks_are_each_of_one_meaning():
    every = [*COLOURS.values(), *PATH_COLOURS]
    assert all(re.fullmatch("#[0-9A-F]{6}", colour.web) for colour in every)
    assert len({colour.web for colour in every}) == len(every)
    assert len({colour.terminal for colour in every}) == len(every)
    marks = [COLOURS[tone].mark for tone in ("good", "fair", "poor", "notice")]
    assert len(set(marks)) == 4
    assert all(mark.isascii() for mark in marks)


def test_paths_keep_their_colours_in_whatever_order_they_are_told():
    names = ["b", "a", "wlan0"]
    assert all(path_colours(order) == path_colours(names) for order in itertools.permutations(names))


def test_what_ends_is_good_again():
    assert event_meaning("undervoltage", "begins").tone == "poor"
    assert event_meaning("undervoltage", "ends").tone == "good"
    assert event_meaning("path_state", "up").tone == "good"
    assert event_meaning("path_state", "no_route").tone == "poor"
    assert event_meaning("of_a_later_version") == Meaning("of a later version", "notice")


def test_words_of_another_version_are_told_as_they_are():
    assert meaning("radio", "state", "on_the_moon") == Meaning("on the moon", "quiet")
    assert meaning("health", "undervoltage", True) == Meaning("too low", "poor")
    assert meaning("health", "undervoltage", None).tone == "quiet"


def test_the_probes_own_alarms_use_the_same_limits():
    assert (LOW_BYTES, ENOUGH, WORN_PERCENT, WORN_EOL) == (10**9, 1.25, 90, 2)
    assert pytest.approx(0.1) == LOW_SHARE
