"""The table of roll-ups against the table of metrics: what is renamed, forgotten or said twice breaks here."""

from __future__ import annotations

from tandem.schema.metrics import COMMON_FIELDS, COMMON_TAGS, MEASUREMENTS, SERVER_MEASUREMENTS
from tandem.schema.metrics.campaign import CAMPAIGN_STATES
from tandem.schema.metrics.probe import MODEM_STATES
from tandem.schema.metrics.radio import RADIO_STATES
from tandem.schema.metrics.server import PROBE_STATES
from tandem.schema.rollups import FINEST, NOT_ROLLED, RESOLUTIONS, ROLLUPS

ENDLESS_TAGS = {"boot", "run", "subflow", "pair"}
WORDS = {"radio": RADIO_STATES, "modem_health": MODEM_STATES, "probe_state": PROBE_STATES, "campaign": CAMPAIGN_STATES}


def test_every_measurement_is_rolled_up_or_it_is_said_why_not() -> None:
    known = set(MEASUREMENTS) | set(SERVER_MEASUREMENTS)
    assert set(ROLLUPS) | set(NOT_ROLLED) == known, "add it to ROLLUPS, or to NOT_ROLLED with the reason"
    assert not set(ROLLUPS) & set(NOT_ROLLED)


def test_fields_and_tags_are_those_of_the_raw_measurement() -> None:
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


def test_no_name_stands_for_two_things() -> None:
    for name, rollup in ROLLUPS.items():
        names = [column.name for column in rollup.columns]
        assert len(names) == len(set(names)), name
        raw = {field.name for field in (*COMMON_FIELDS, *rollup.raw.fields)}
        held = {one.field for one in rollup.fields}
        assert (set(names) & raw) == held, f"{name}: a further column has the name of a raw field that means another"
        assert not set(names) & set(rollup.raw.tags), f"{name}: a field with the name of a tag cannot be asked for"


def test_resolutions_follow_one_another_without_a_gap() -> None:
    assert RESOLUTIONS[0] is FINEST
    bounds = [one.below_s for one in RESOLUTIONS]
    assert bounds[-1] is None
    assert bounds[:-1] == sorted(b for b in bounds if b is not None)
    assert [one.rolled for one in RESOLUTIONS[1:]] == [one.policy for one in RESOLUTIONS[1:]]
