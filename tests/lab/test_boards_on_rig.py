"""Every query of every board, as the reader, on what an incident run of the real kit left: no error, and rows where there must be some."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from support.filled_database import Filled
from support.query_at_instant import MS, AskedAt, until
from support.running_kit import PROBE
from tandem_dashboards import boards
from tandem_dashboards.cli import summary_line
from tandem_dashboards.grafana.macros import Range, range_of
from tandem_dashboards.query_runner import Answer, run_alarms, run_board

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.timeout(600)]

Place = tuple[str, str, str, str]
"""Board, what it is (panel, variable, annotation), its name, the letter of a panel's query."""

_GAIN = "Gain and benefit by primary operator", "Gain and benefit by mobility state"
EMPTY: dict[Place, str] = {
    **{("tandem-multipath", "panel", name, "B"): "no run of the rig falls back to TCP" for name in _GAIN},
}
"""What the run leaves empty, and why. What is not empty any more must go from here."""
PERHAPS: dict[Place, str] = {
    (
        "tandem-probe",
        "panel",
        "Movement",
        "B",
    ): "how fast is told after a minute of moving: about as long as the run moves",
    **{
        (
            "tandem-multipath",
            "panel",
            name,
            "A",
        ): "t_R wants two seconds of round trips before an event: captured runs of the"
        " rig last five, and an event need not fall so"
        for name in ("Time until the RTT is back (t_R), of each run", "t_R of each event, the last day")
    },
    ("tandem-fleet", "panel", "Probes now, by state", "B"): "idle: only when the server looks between two runs",
}
"""What may be empty or not."""

LONG_DAYS = (14, 180)
"""Further time ranges, whose queries go to roll-ups: they must not fail."""

ANSWERS: dict[str, list[Answer]] = {}


def loaded(name: str) -> dict[str, Any]:
    board: dict[str, Any] = json.loads(boards.load(name).to_text())
    return board


def moments(filled: Filled) -> list[int]:
    """When somebody looks, UTC ns: before a probe's clock is set, then while it is online, while a play goes on, while the gateway is
    cut off, in the end."""
    (dash,) = filled.incidents.runs["dash"]
    manifest = filled.incidents.manifest(dash)
    return [
        filled.incidents.spans["clock_unset"].end_utc_ns,
        filled.incidents.spans["second_online"].end_utc_ns,
        (manifest["started_utc_ns"] + manifest["ended_utc_ns"]) // 2,
        filled.incidents.spans["gateway_cut"].end_utc_ns,
        filled.incidents.spans["all"].end_utc_ns,
    ]


def states_told(filled: Filled) -> list[int]:
    """When the server told of each state of a probe for the first time, UTC ns."""
    begun: dict[str, int] = {}
    told = f'SELECT "state" FROM "probe_state" WHERE time >= {filled.incidents.spans["all"].begin_utc_ns}'  # noqa: S608
    for one in filled.store.query(told):
        for utc_ns, state in one.rows:
            begun.setdefault(state, utc_ns)
    return sorted(begun.values())


def looks(board: dict[str, Any], filled: Filled) -> Iterator[tuple[Range, dict[str, list[str]]]]:
    """Time ranges with what is chosen: the board's own first, with all probes and with one, then since the run's begin; where a board is
    about one run, each kind of run in its turn."""
    end_ms = moments(filled)[-1] // MS
    own = range_of(board["time"]["from"], "now", end_ms)
    yield own, {}
    yield own, {"probe": [PROBE]}
    names = {variable["name"] for variable in board["templating"]["list"] if not variable["includeAll"]}
    for moment in moments(filled):
        yield until(filled, moment), {}
    if board["uid"] == "tandem-fleet":
        for moment in states_told(filled):
            yield until(filled, moment + MS), {}
    if "run" in names:
        for runs in filled.incidents.runs.values():
            for run in runs:
                yield until(filled, moments(filled)[-1]), {"run": [run]}


def asked(name: str, filled: Filled, words: dict[str, str] | None = None) -> list[Answer]:
    """All answers to all queries of a board, at every look."""
    answers = []
    for span, chosen in looks(board := loaded(name), filled):
        answers += run_board(board, AskedAt.of(filled, span.to_ms, words), span, chosen)[1]
    return answers


def places(answers: list[Answer]) -> dict[Place, bool]:
    """Whether there are rows at any look."""
    found: dict[Place, bool] = {}
    for answer in answers:
        of = answer.query
        place = (of.board, of.of, of.name, of.ref)
        found[place] = found.get(place, False) or _shown(answer) > 0
    return found


def _shown(answer: Answer) -> int:
    """Rows that can be seen: of annotations Grafana drops those in which a column is null."""
    if answer.query.of != "annotation":
        return answer.rows
    return sum(None not in row for series in answer.series for row in series.get("values", ()))


def failures(answers: list[Answer]) -> list[tuple[str, str, Any]]:
    return [(answer.query.name, answer.text, answer.error) for answer in answers if answer.error]


@pytest.mark.parametrize("name", boards.BOARDS)
def test_no_query_fails_and_what_the_run_fills_has_rows(filled: Filled, name: str) -> None:
    ANSWERS[name] = answers = asked(name, filled)
    assert failures(answers) == []
    empty = {place for place, rows in places(answers).items() if not rows}
    assert empty - EMPTY.keys() - PERHAPS.keys() == set(), "nothing to see there"
    print(summary_line(answers))


def test_months_are_asked_of_roll_ups_without_an_error(filled: Filled) -> None:
    to_ms = moments(filled)[-1] // MS
    for name in boards.BOARDS:
        for days in LONG_DAYS:
            _, answers = run_board(loaded(name), AskedAt.of(filled, to_ms), Range(to_ms - days * 86_400_000, to_ms))
            assert failures(answers) == [], (name, days)


def test_no_query_of_an_alarm_fails(filled: Filled) -> None:
    answers = [answer for at in moments(filled) for answer in run_alarms(filled.reader, at // MS)]
    assert failures(answers) == []
    assert any(answer.rows for answer in answers)
    print(summary_line(answers))


def test_the_list_of_what_may_be_empty_is_not_stale() -> None:
    """After the boards' own cases: it takes their answers."""
    if ANSWERS.keys() != set(boards.BOARDS):
        pytest.skip("not all boards were asked")
    found = places([answer for answers in ANSWERS.values() for answer in answers])
    assert {place for place in EMPTY if found.get(place, True)} == set(), "there, or gone: take it out of the list"
    assert PERHAPS.keys() - found.keys() == set(), "gone: take it out of the list"


@pytest.mark.parametrize(("word", "other"), [("rsrp_dbm", "rsrp_dbmw"), ("path", "modem")], ids=["field", "tag"])
def test_a_field_or_a_tag_that_no_probe_writes_is_found_out(filled: Filled, word: str, other: str) -> None:
    """As if the schema's name had changed, and not what writes it."""
    name = "probe"
    whole = {place for place, rows in places(asked(name, filled)).items() if rows}
    renamed = asked(name, filled, {word: other})
    still = {place for place, rows in places(renamed).items() if rows}
    errors = [answer for answer in renamed if answer.error]
    print(f"{word} → {other}: {len(whole - still)} of {len(whole)} empty, {len(errors)} errors")
    assert whole - still or errors
