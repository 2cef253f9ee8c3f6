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


def test_every_state_has_a_meaning_and_no_other():
    for key, states in {
        "radio.state": RADIO_STATES,
        "modem_health.state": MODEM_STATES,
        "probe_state.state": PROBE_STATES,
        "health.mobile": ("true", "false"),
        "dash_playback.state": PLAYBACK_STATES,
        "campaign.state": CAMPAIGN_STATES,
        "verdict.verdict": VERDICTS,
        "verdict.role": VERDICT_ROLES,
    }.items():
        assert set(meanings(*key.split("."))) == set(states), key


def test_a_code_means_what_its_word_means():
    for measurement, name, words in (
        ("probe_state", "state", PROBE_STATES),
        ("modem_health", "state", MODEM_STATES),
        ("campaign", "state", CAMPAIGN_STATES),
        ("verdict", "verdict", VERDICTS),
    ):
        for number, word in enumerate(words):
            assert meaning(measurement, f"{name}_code", number) == meaning(measurement, name, word)


def test_words_are_of_a_field_or_tag_of_the_schema_and_fit_it():
    for key, words in STATES.items():
        measurement, _, name = key.partition(".")
        assert all(m.words and m.words == m.words.strip() and "_" not in m.words for m in words.values()), key
        if name in ALL[measurement].tags:
            continue
        field = ALL[measurement].field(name)
        assert field.kind in ("bool", "int", "str"), key
        if field.kind == "bool":
            assert set(words) == {"true", "false"}, key
        elif field.kind == "int":
            assert set(words) == {str(n) for n in range(int(field.minimum or 0), int(field.maximum or 0) + 1)}, key


def test_a_yes_or_no_of_which_nothing_more_is_known_is_yes_or_no():
    assert meaning("sim_usage", "whole_period", False) == Meaning("no", "quiet")
    assert meaning("dash", "fallback", True) == meaning("run", "fallback", True) == Meaning("fell back to TCP", "fair")
    assert meanings("radio", "pci") == {}
    with pytest.raises(KeyError):
        meanings("radio", "nothing")


def test_limits_lie_within_what_the_schema_admits_and_say_their_source():
    for key, limits in SCALES.items():
        field = the_field(key)
        low = -math.inf if field.minimum is None else field.minimum
        high = math.inf if field.maximum is None else field.maximum
        assert field.kind in ("int", "float"), key
        assert low <= limits.fair <= high, key
        assert low <= limits.good <= high, key
        assert limits.source, key


def test_limits_lie_within_the_usual_range_and_that_within_what_the_schema_admits():
    for key, shown in USUAL.items():
        field, low, high = the_field(key), shown.low, shown.high
        assert low is None or field.minimum is None or low >= field.minimum, key
        assert high is None or field.maximum is None or high <= field.maximum, key
        assert low is None or high is None or low < high, key
        if key in SCALES:
            limits = sorted((SCALES[key].good, SCALES[key].fair))
            assert low is not None, key
            assert high is not None, key
            assert low < limits[0] <= limits[1] < high, key


def test_every_field_has_a_title_and_a_range():
    for measurement, field in FIELDS:
        assert title(measurement, field), (measurement, field)
        usual(measurement, field)


def test_rsrp_is_graded():
    levels = (-80, -90, -90.1, -105, -105.5, None, True)
    assert [tone_of("radio", "rsrp_dbm", level) for level in levels] == [
        "good", "good", "fair", "fair", "poor", "quiet", "quiet",
    ]  # fmt: skip


def test_where_less_is_better_the_order_turns():
    tones = [tone_of("health", "processor_temperature_degc", value) for value in (59.9, 60, 79.9, 80, "80")]
    assert tones == ["good", "fair", "fair", "poor", "quiet"]


@given(st.sampled_from([*SCALES.values(), *SHARES.values()]), st.floats(), st.floats())
def test_what_is_better_never_has_a_worse_grade(limits, one, other):
    order = ["poor", "fair", "good"]
    if one != one or other != other:
        assert "quiet" in (limits.tone(one), limits.tone(other))
        return
    low, high = (order.index(limits.tone(v)) for v in sorted((one, other)))
    assert low <= high if limits.more_is_better else low >= high


def test_steps_ascend_as_grafana_wants_them():
    for key, limits in [*SCALES.items(), *SHARES.items()]:
        values = [limit for limit, _ in limits.steps]
        assert values[0] is None, key
        assert values[1] <= values[2], key
        assert [limits.tone(v) for v in values[2:]] == [tone for _, tone in limits.steps[2:]], key


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
