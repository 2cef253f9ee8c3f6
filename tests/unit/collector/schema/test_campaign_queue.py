"""A probe's queue on the wire: what one end tells the other reads, and nothing else gets through."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.hostile_json import any_json, said
from tandem.schema.campaign_queue import (
    FORMAT,
    MOST_QUEUED,
    STATES,
    Pushed,
    QueueError,
    Report,
    queue_to_dict,
    read_queue,
    read_report,
    read_text,
)

ids = st.from_regex(r"push-[0-9a-f]{12}", fullmatch=True)
names = st.from_regex(r"[a-z0-9]([a-z0-9_-]{0,20}[a-z0-9])?", fullmatch=True)
texts = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=40)
paths = st.dictionaries(texts, texts, max_size=8)
turns = st.integers(0, 100), st.integers(0, 2**63 - 1)
pushes = st.builds(Pushed, ids, names, texts, names, st.none() | texts, paths, st.booleans(), *turns, st.booleans())
json_values = any_json()
counts = st.dictionaries(st.sampled_from(["made", "of", "ok", "failed", "cut_off"]), st.integers(0, 2**40), max_size=3)
ONE = Pushed("push-0123456789ab", "own", "own.toml", "pilot", None, {"wifi": "wlan"}, False, 50, 7)


@given(st.lists(pushes, max_size=6, unique_by=lambda one: one.id))
def test_a_queue_is_read_as_it_was_told_in_its_turn(queue):
    assert read_queue(json.loads(json.dumps(queue_to_dict(queue)))) == sorted(queue, key=lambda one: one.turn)


@given(json_values)
def test_whatever_comes_is_a_queue_or_a_queue_error(content):
    for read in (read_queue, read_text, read_report):
        for told in (content, {"format": FORMAT, "campaigns": content, "text": content, "state": content}):
            assert "\n" not in said(QueueError, read, told)


@given(st.sampled_from(sorted(ONE.to_dict())), json_values)
def test_one_wrong_value_is_named_or_taken(key, value):
    row = {**ONE.to_dict(), key: value}
    try:
        (read,) = read_queue({"format": FORMAT, "campaigns": [row]})
    except QueueError:
        return
    assert read.to_dict() == row


def test_a_fault_is_named():
    rows = [
        ({"id": "../../etc"}, "is none"),
        ({"id": "push-0123456789ab\n"}, "printable"),
        ({"name": "a/b"}, "is none"),
        ({"paths": {"wifi": 3}}, "'wifi' is no text"),
        ({"paths": {str(n): "x" for n in range(9)}}, "at most 8"),
        ({"priority": 101}, "0 to 100"),
        ({"pushed_utc_ns": 2**63}, "'pushed_utc_ns'"),
        ({"form": 1}, "'form' is no text"),
        ({"label": "a\nb"}, "'label' is no text"),
    ]
    for change, reason in rows:
        told = {"format": FORMAT, "campaigns": [{**ONE.to_dict(), **change}]}
        assert reason in said(QueueError, read_queue, told), change
    rows = [
        ({"state": "queued"}, "is none of taken"),
        ({"state": "refused"}, "has no reason"),
        ({"state": "done", "reason": "x" * 1001}, "1000 characters"),
        ({"state": "done", "runs": {"ok": -1}}, "'ok' is no whole number"),
        ({"state": "done", "runs": {"Ok": 1}}, "'Ok' is no name"),
        ({"state": "done", "steps": {"s": 5}}, "counts are no object"),
        ([], "no JSON object"),
    ]
    assert [(content, reason) for content, reason in rows if reason not in said(QueueError, read_report, content)] == []
    row = ONE.to_dict()
    with pytest.raises(QueueError, match="occurs twice"):
        read_queue({"format": FORMAT, "campaigns": [row, row]})
    with pytest.raises(QueueError, match=f"at most {MOST_QUEUED}"):
        read_queue({"format": FORMAT, "campaigns": [row] * (MOST_QUEUED + 1)})
    assert read_text({"format": FORMAT, "text": None}) is None
    assert read_text({"format": FORMAT, "text": "x"}) == "x"
    for content, reason in (
        ({"format": FORMAT}, "neither text nor null"),
        ({"format": FORMAT, "text": "\ud800"}, "surrogate"),
        ({"format": FORMAT, "text": "é" * 500_001}, "longer than"),
        ({"format": "other", "text": "x"}, "format is 'other'"),
    ):
        with pytest.raises(QueueError, match=reason):
            read_text(content)


@given(st.sampled_from(sorted(set(STATES) - {"queued", "refused"})), st.dictionaries(names, counts, max_size=4), counts)
def test_a_report_is_read_as_it_was_told(state, steps, runs):
    report = Report(state, None, steps, runs)
    assert read_report(json.loads(json.dumps(report.to_dict()))) == report
