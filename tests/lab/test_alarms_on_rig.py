"""Every alarm whose fault the incident run plays fires on what collector and server wrote then, and not for what was well.

The run takes two minutes. So what is compressed there is compressed here: a rule's condition is evaluated at the time of its fault on the
real database, as the account that boards have, and its ``for`` is waited through by evaluating the same minute again and again; the
limits of days and half hours, where there are such, become seconds (``LIMITS``), as the server's own tolerances are in that run.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import pytest
from filled_database import Filled
from incident_second_probe import NAME

from support.grafana_alerting import Rule, asker, rules
from support.grafana_templates import Told, message
from support.running_kit import PROBE
from tandem_dashboards.alarms import alarms
from tandem_dashboards.alarms.alarm import Threshold
from tandem_dashboards.alarms.provisioning import rules_document
from tandem_dashboards.influx import Influx

pytestmark = [pytest.mark.lab, pytest.mark.slow]


@dataclass(frozen=True)
class Fault:
    """``when``: ``begin`` or ``end`` of a span of the run, or a query for the points that show the fault; ``after_s`` later. The labels
    that fire; ``well``: of the same rule at one of these times, which do not."""

    when: str
    fires: dict[str, str]
    well: dict[str, str] | None
    after_s: float = 0.001


LIMITS = {"probe-silent": 12.0, "probe-gone": 14.0, "probe-undervoltage": 1.0}
"""In seconds, and (undervoltage) rounds of ten seconds: the supply is too low for eleven seconds."""


def in_state(name: str) -> str:
    return f'SELECT "state_code" FROM "probe_state" WHERE "probe" = \'{NAME}\' AND "state" = \'{name}\''  # noqa: S608


FAULTS = {
    "probe-silent": Fault("begin gateway_cut", {"probe": NAME}, {"probe": PROBE}),
    "probe-gone": Fault("begin gateway_cut", {"probe": NAME}, {"probe": PROBE}),
    "probe-not-uploading": Fault(in_state("not_uploading"), {"probe": NAME}, {"probe": PROBE}),
    "probe-not-measuring": Fault(in_state("online_not_measuring"), {"probe": NAME}, {"probe": PROBE}),
    "probe-spool": Fault('SELECT max("spool_bytes") FROM "health"', {"probe": PROBE}, None),
    "probe-records-lost": Fault("end all", {"probe": PROBE}, {"probe": NAME}),
    "probe-undervoltage": Fault("end undervoltage", {"probe": PROBE}, {"probe": NAME}, 10),
    "modem-recovering": Fault(
        'SELECT last("state_code") FROM "modem_health" WHERE "state" = \'recovering\'',
        {"path": "a", "probe": PROBE},
        {"path": "b", "probe": PROBE},
    ),
    "plan-used-up": Fault("end all", {"path": "b", "probe": PROBE}, {"path": "a", "probe": PROBE}),
    "gateway-rejecting": Fault("end refused", {"probe": NAME}, {"probe": PROBE}, 15),
    "ledger-missing": Fault("end all", {"campaign": "", "probe": PROBE}, {"campaign": "compressed", "probe": PROBE}),
    "server-disk": Fault("end disk_full", {"place": "traces"}, {"place": "registry"}),
}
"""What the run plays."""

NOT_PLAYED = {
    "probe-never-came": "a week",
    "probe-clock": "an hour without a source; one that never had any is not uploading",
    "probe-disk": "the probe's disk stays wide",
    "probe-hot": "ten minutes of heat",
    "card-worn": "no card there tells its wear",
    "modem-lost": "the ladder cures the modem",
    "plan-over": "three whole days, before which no forecast is alarmed",
    "ledger-late": "a day and a half",
    "trace-never-comes": "a day and a half",
    "gateway-overloaded": "the gateway is cut off, not overloaded",
    "database-failing": "the database answers all the time",
}
"""Nor are they for the wrong: of these no rule may fire at any time of the run. Their cases: tests/unit/dashboards/alarm_cases.py."""


@pytest.fixture(scope="module")
def database(filled: Filled):
    return filled.reader


def compressed(rule: Rule) -> Rule:
    """With the limit of the compressed run, where it has one."""
    limit = LIMITS.get(rule.labels["alarm"])
    node = rule.nodes[rule.condition]
    if limit is None or not isinstance(node, Threshold):
        return rule
    nodes = {**rule.nodes, rule.condition: replace(node, limit=limit)}
    return replace(rule, nodes=nodes)


RULES = {rule.labels["alarm"]: compressed(rule) for rule in rules(rules_document())}


def moments(filled: Filled, when: str, after_s: float = 0.0) -> list[int]:
    """UTC ms, see ``Fault``."""
    edge, _, span = when.partition(" ")
    if edge == "SELECT":
        (found,) = filled.store.query(when)
        utc_ns = [int(row[0]) for row in found.rows]
    else:
        told = filled.incidents.spans[span]
        utc_ns = [told.begin_utc_ns if edge == "begin" else told.end_utc_ns]
    return [int(one / 10**6 + after_s * 1000) for one in utc_ns]


def at(filled: Filled, when: str, after_s: float = 0.0) -> int:
    return moments(filled, when, after_s)[-1]


def outcomes(rule: Rule, database: Influx, at_ms: int) -> dict[tuple, str]:
    return {result.labels: result.outcome for result in rule.watch().results(asker(database), at_ms)}


def key(labels: dict[str, str]) -> tuple:
    return tuple(sorted(labels.items()))


@pytest.mark.parametrize("alarm", FAULTS)
def test_the_fault_is_told_after_the_rules_time_and_what_is_well_is_not(alarm, filled, database) -> None:
    rule, fault = RULES[alarm], FAULTS[alarm]
    watch = rule.watch()
    for at_ms in moments(filled, fault.when, fault.after_s):
        results = watch.results(asker(database), at_ms)
        found = {result.labels: result.outcome for result in results}
        assert found.get(key(fault.fires)) == "Alerting", found
        # While a fault of one lasts the other may have one too: how they meet is the machine's pace.
        if fault.well is None or found.get(key(fault.well), "Normal") == "Normal":
            break
    else:
        pytest.fail(f"{fault.well} is told as well, all the time")
    for minute in range(rule.for_s // 60):
        watch.take(results, at_ms + minute * 60_000)
        assert key(fault.fires) not in watch.firing
    watch.take(results, at_ms + rule.for_s * 1000)
    assert key(fault.fires) in watch.firing
    state = watch.states[key(fault.fires)]
    title, text = message([Told(rule, state.labels, state.values, at_ms)])
    print(f"{title}\n{text}")
    assert "[no value]" not in text
    assert "NaN" not in text


def told_of(alarms: Iterable[str], database: Influx, at_ms: int) -> list[tuple[str, dict]]:
    found = [(alarm, outcomes(RULES[alarm], database, at_ms)) for alarm in alarms]
    return [(alarm, told) for alarm, told in found if not set(told.values()) <= {"Normal", "NoData"}]


def test_before_anything_is_wrong_nothing_is_told(filled, database) -> None:
    """The collector runs, and the second probe is just registered."""
    assert told_of(FAULTS, database, at(filled, 'SELECT first("spool_bytes") FROM "health"', 1.0)) == []


def test_what_is_not_played_is_not_told_at_any_time(filled, database) -> None:
    begin, end = filled.incidents.spans["all"].begin_utc_ns, filled.incidents.spans["all"].end_utc_ns
    times = [(begin + (end - begin) * part // 10) // 10**6 for part in range(1, 11)]
    assert [told for at_ms in times for told in told_of(NOT_PLAYED, database, at_ms)] == []


def test_the_server_is_dead_once_it_writes_nothing_and_nothing_else_is_told_then(filled, database) -> None:
    alive, dead = at(filled, "end all"), at(filled, "end all", 700)
    rule = RULES["server-dead"]
    assert set(outcomes(rule, database, alive).values()) == {"Normal"}
    watch = rule.watch()
    for minute in range(3):
        watch.tick(asker(database), dead + minute * 60_000)
    assert watch.firing == {()}
    assert "The server writes nothing any more" in message([Told(rule, (), {}, dead)])[1]
    quiet = [r for name, r in RULES.items() if name != "server-dead" and r.no_data == "KeepLast"]
    later = {r.uid: set(outcomes(r, database, dead).values()) for r in quiet}
    assert all("Alerting" not in found for found in later.values()), later


def test_each_alarm_is_played_or_it_is_said_why_not() -> None:
    assert {a.key for a in alarms()} == {*FAULTS, *NOT_PLAYED, "server-dead"}
    assert not FAULTS.keys() & NOT_PLAYED.keys()
