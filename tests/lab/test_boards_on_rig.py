"""Every query of every board, as the reader, on what an incident run of the real kit left: no error, and rows where there must be some."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from filled_database import Filled

from support.running_kit import PROBE
from tandem_dashboards import boards
from tandem_dashboards.cli import summary_line
from tandem_dashboards.grafana.macros import Range, range_of
from tandem_dashboards.influx import Influx
from tandem_dashboards.query_runner import Answer, run_alarms, run_board

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.timeout(600)]

MS = 10**6
Place = tuple[str, str, str, str]
"""Board, what it is (panel, variable, annotation), its name, the letter of a panel's query."""

_GAIN = "Gain and benefit by primary operator", "Gain and benefit by mobility state"
_T_R = "Time until the RTT is back (t_R), of each run", "t_R of each event, the last day"
MAY_BE_EMPTY: set[Place] = {
    *(("tandem-multipath", "panel", name, "B") for name in _GAIN),  # no run of the rig falls back to TCP
    # t_R wants two seconds of round trips before an event: captured runs of the rig last five, and an event need not fall so.
    *(("tandem-multipath", "panel", name, "A") for name in _T_R),
    # How fast is told after a minute of moving: about as long as the run moves.
    ("tandem-probe", "panel", "Movement", "B"),
    ("tandem-fleet", "panel", "Probes now, by state", "B"),  # idle: only when the server looks between two runs
}


@dataclass
class AtInstant:
    """A database asked as if it were another instant: queries say ``now()`` of what is shown as now. ``now_ms``: since 1970."""

    influx: Influx
    now_ms: int

    def query(self, influxql: str) -> list[dict[str, Any]]:
        return self.influx.query(influxql.replace("now()", f"{self.now_ms}ms"))


def until(filled: Filled, utc_ns: int) -> Range:
    """From the begin of the incident run to that instant."""
    return Range(filled.incidents.spans["all"].begin_utc_ns // MS, utc_ns // MS)


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


def asked(name: str, filled: Filled) -> list[Answer]:
    """All answers to all queries of a board, at every look."""
    answers = []
    for span, chosen in looks(board := loaded(name), filled):
        answers += run_board(board, AtInstant(filled.reader, span.to_ms), span, chosen)[1]
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
    answers = asked(name, filled)
    assert failures(answers) == []
    empty = {place for place, rows in places(answers).items() if not rows}
    assert empty - MAY_BE_EMPTY == set(), "nothing to see there"
    print(summary_line(answers))


def test_no_query_of_an_alarm_fails(filled: Filled) -> None:
    answers = [answer for at in moments(filled) for answer in run_alarms(filled.reader, at // MS)]
    assert failures(answers) == []
    assert any(answer.rows for answer in answers)
    print(summary_line(answers))
