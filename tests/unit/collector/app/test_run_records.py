"""Records of runs: what begins, and what an experiment's process says itself, of which nothing is trusted."""

import json
from dataclasses import replace
from typing import Any

import pytest
from good_config import good
from hypothesis import given
from hypothesis import strategies as st

from support.hostile_json import any_json
from tandem.app.runs.manifest import begun_record, experiment_record
from tandem.app.runs.request import configured_request, plan
from tandem.schema.metrics import EXPERIMENT_MEASUREMENTS, MEASUREMENTS
from tandem.schema.record import Record, RecordError

CONFIG = good()
OF_A_CAMPAIGN = {
    "name": "commute", "step": "both", "number": 4, "repetition": 2, "arm": 1, "attempt": 1, "label": None, "roles": {}
}  # fmt: skip
PLAN = plan(CONFIG, replace(configured_request(CONFIG, "sequential", "campaign"), campaign=OF_A_CAMPAIGN), 0)
RUN = next(run for run in PLAN.runs if run.kind == "mptcp")
OPERATORS = {"a": "Alpha", "b": "Beta"}


def said(**changes: Any) -> dict[str, Any]:
    told = {
        "type": "record",
        "measurement": "verdict",
        "tags": {"path": RUN.path, "role": "join", "verdict": "native"},
        "fields": {"verdict_code": 0, "detail": "joined", "over": None},
        "monotonic_ns": 7,
    }
    return {**told, **changes}


def test_a_run_that_begins_says_what_it_will_be_and_of_which_campaign() -> None:
    record = begun_record(PLAN, RUN, 5)
    assert record.tags == {
        "run": RUN.id, "kind": "mptcp", "path": RUN.path, "pair": PLAN.pair, "pairing": "sequential", "experiment": "download",
        "campaign": "commute",
    }  # fmt: skip
    fields = dict(record.fields)
    assert fields["number"] == PLAN.runs.index(RUN) + 1
    assert (fields["of"], fields["trigger"], fields["paths"]) == (3, "campaign", ",".join(RUN.paths))
    assert (fields["step"], fields["step_number"], fields["repetition"]) == ("both", 4, 2)
    assert "label" not in fields
    assert record.monotonic_ns == 5


def test_an_experiments_record_says_whose_it_is_and_a_long_text_is_cut() -> None:
    record = experiment_record(PLAN, RUN, said(), OPERATORS)
    assert record.tags == {
        "run": RUN.id, "campaign": "commute", "operator": OPERATORS[RUN.path], "path": RUN.path, "role": "join", "verdict": "native",
    }  # fmt: skip
    assert record.fields == {"verdict_code": 0, "detail": "joined"}
    assert record.monotonic_ns == 7
    record = experiment_record(PLAN, RUN, said(fields={"detail": "x" * 5000}), OPERATORS)
    assert record.fields == {"detail": "x" * 500}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"measurement": "radio"}, "no measurement of an experiment's own"),
        ({"measurement": "expected"}, "no measurement of an experiment's own"),
        ({"measurement": ["verdict"]}, "no measurement of an experiment's own"),
        ({"monotonic_ns": True}, "no time"),
        ({"tags": None}, "tags and fields are objects"),
        ({"fields": [1]}, "tags and fields are objects"),
        ({"tags": {"run": "run-of-another"}}, "'run' is not an experiment's"),
        ({"tags": {"probe": "another"}}, "'probe' is not an experiment's"),
        ({"tags": {"path": "nowhere"}}, "is no path of"),
        ({"tags": {"role": "x" * 65}}, "no short text"),
        ({"tags": {"role": "two\nlines"}}, "no short text"),
        ({"tags": {"colour": "red"}}, "'colour' is not an experiment's"),
        ({"fields": {}}, "no field"),
        ({"fields": {"verdict_code": 99}}, "above 6"),
        ({"fields": {"verdict_code": "0"}}, "not a whole number"),
        ({"fields": {"seq": 1}}, "a field that it has not"),
    ],
)
def test_what_an_experiment_may_not_say_is_refused(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(RecordError, match=reason):
        experiment_record(PLAN, RUN, said(**changes), OPERATORS)


NAMES = sorted({f.name for m in EXPERIMENT_MEASUREMENTS for f in MEASUREMENTS[m].fields})
LINES = st.fixed_dictionaries(
    {},
    optional={
        "measurement": st.sampled_from(sorted(EXPERIMENT_MEASUREMENTS)) | any_json(),
        "tags": st.dictionaries(
            st.sampled_from(["path", "kind", "role", "verdict", "mode", "x"]) | st.text(), any_json(), max_size=4
        )
        | any_json(),
        "fields": st.dictionaries(st.sampled_from(NAMES) | st.text(), any_json(), max_size=4) | any_json(),
        "monotonic_ns": st.integers(0, 2**62) | any_json(),
    },
)


@given(LINES)
def test_any_line_is_a_record_that_keeps_the_schema_or_refused(line: dict[str, Any]) -> None:
    try:
        record = experiment_record(PLAN, RUN, json.loads(json.dumps(line)), OPERATORS)
    except RecordError:
        return
    assert record.tags["run"] == RUN.id
    assert Record.make(record.measurement, record.tags, record.fields, record.monotonic_ns) == record
