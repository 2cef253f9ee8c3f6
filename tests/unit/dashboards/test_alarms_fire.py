"""Every alarm on a real InfluxDB, asked as the account that boards have: one probe that is wrong and one that is not, minute by minute.

The same figures as collector and server write them, checked against the schema; the incident run has its own (tests/lab).
"""

import json
import time
from collections.abc import Callable

import pytest
from alarm_cases import CASES, Written

from support.grafana_alerting import asker, rules
from support.grafana_templates import Told, message
from tandem.schema.line_protocol import Point
from tandem.schema.metrics import MEASUREMENTS
from tandem.schema.record import check
from tandem_dashboards.alarms import alarms
from tandem_dashboards.alarms.provisioning import rules_document
from tandem_dashboards.cli import main
from tandem_dashboards.influx import Influx as Reading
from tandem_server.schema.measurements import check_server, encode_point
from tandem_server.store import PrivateInflux
from tandem_server.store.private import account_password

RULES = {rule.labels["alarm"]: rule for rule in rules(rules_document())}


class World:
    """Sixty days of the database for each test, so that none sees another's points; time goes on by ``minute``."""

    taken = 0

    def __init__(self, store, asked, key) -> None:
        World.taken += 1
        self.store, self.asked, self.rule = store, asked, RULES[key]
        self.minute, self.watch = 0, self.rule.watch()
        self.begin_ns = (time.time_ns() // (60 * 10**9) - 60 * 24 * 60 * World.taken) * 60 * 10**9

    @property
    def at_ms(self):
        return self.begin_ns // 10**6 + self.minute * 60_000

    def goes_on(self, minutes, **said: Callable[[int], Written]):
        """So many minutes, each evaluated at its end; what each probe (``server``: the server) says. What changed."""
        changes = []
        for _ in range(minutes):
            self.minute += 1
            self._write(said)
            changes += self.watch.tick(asker(self.asked), self.at_ms)
        return changes

    @property
    def firing(self):
        return self.watch.firing

    def _write(self, said) -> None:
        lines = []
        for who, says in said.items():
            tags = {} if who == "server" else {"probe": who}
            seen: dict[tuple[str, tuple], dict] = {} if who == "server" else {("expected", ()): {"seen": 1}}
            for measurement, more, fields in says(self.minute):
                seen[measurement, tuple(more.items())] = fields
            for (measurement, more), fields in seen.items():
                lines.append(self._line(measurement, {**tags, **dict(more)}, fields))
        assert self.store.write(lines) == []

    def _line(self, measurement, tags, fields) -> str:
        if measurement in MEASUREMENTS:
            tags = {"boot": f"boot-{self.minute // 1000}", **tags}
        if measurement == "gateway" and "probe" not in tags:
            tags["probe"] = "kit-1"
        (check if measurement in MEASUREMENTS else check_server)(measurement, tags, fields)
        return encode_point(Point(measurement, tags, fields, self.begin_ns + self.minute * 60 * 10**9))


@pytest.fixture(scope="module")
def running(influx_binary, tmp_path_factory):
    with PrivateInflux(influx_binary, tmp_path_factory.mktemp("alarms"), 0) as private, private.client() as store:
        password = account_password(private.folder, "reader")
        with Reading(private.url, private.database, "reader", password) as reading:
            yield store, reading


@pytest.fixture
def world(running, request):
    return World(*running, request.param)


def silent(_):
    return [("expected", {}, {"seen": 0})]


def labels_of(case):
    own = (*case.labels, ("probe", "kit-1")) if case.probe else case.labels
    return tuple(sorted(own))


@pytest.mark.parametrize(("world", "key"), [(key, key) for key in CASES], indirect=["world"])
def test_it_fires_for_the_probe_that_is_wrong_after_its_time_and_ends_when_that_is_well(world, key) -> None:
    case, needed = CASES[key], world.rule.for_s // 60 + 2
    if case.probe:
        before = world.goes_on(max(0, world.rule.for_s // 60 - 1), **{"kit-1": case.wrong, "kit-2": case.fine})
        assert not any(change.after == "Alerting" for change in before)
        world.goes_on(needed + 2, **{"kit-1": case.wrong, "kit-2": case.fine})
    else:
        world.goes_on(needed + 2, server=case.wrong)
    assert world.firing == {labels_of(case)}
    state = world.watch.states[labels_of(case)]
    _, text = message([Told(world.rule, state.labels, state.values, state.since_ms)])
    assert "[no value]" not in text
    assert "NaN" not in text
    if world.rule.no_data == "KeepLast":
        world.goes_on(15)  # the server stops: what fired stays
        assert world.firing == {labels_of(case)}
    if key == "probe-records-lost":
        world.minute += 24 * 60
    minutes = 190 if key == "probe-undervoltage" else 35  # one round a minute here, six there
    says = {"kit-1": case.fine, "kit-2": case.fine} if case.probe else {"server": case.fine}
    well = world.goes_on(minutes, **says)
    assert world.firing == frozenset()
    assert [change.labels for change in well if change.resolved] == [labels_of(case)]
    assert world.goes_on(15) == [], "a server that stops changes nothing"


@pytest.mark.parametrize(
    ("world", "key"), [(key, key) for key, case in CASES.items() if case.told and case.probe], indirect=["world"]
)
def test_a_probe_that_stops_talking_takes_nothing_back_until_it_is_taken_out(world, key) -> None:
    case = CASES[key]
    world.goes_on(world.rule.for_s // 60 + 4, **{"kit-1": case.wrong, "kit-2": case.fine})
    assert world.firing == {labels_of(case)}
    changes = world.goes_on(100, **{"kit-1": silent, "kit-2": case.fine})
    assert (changes, world.firing) == ([], {labels_of(case)})
    (over,) = world.goes_on(14, **{"kit-2": case.fine})
    assert (over.resolved, over.reason) == (True, "MissingSeries")


@pytest.mark.parametrize("world", ["server-dead"], indirect=True)
def test_a_server_of_which_a_part_writes_nothing_is_dead_and_one_that_lost_a_minute_is_not(world) -> None:
    def served(_):
        return [("gateway_process", {"process": "1"}, {"uptime_s": 60.0})]

    assert world.goes_on(10, **{"kit-1": lambda _: []}, server=served) == []
    assert world.goes_on(3) == []
    assert world.goes_on(4, **{"kit-1": silent}, server=served) == []
    for half in ({}, {"kit-1": silent}, {"server": served}):  # all of it, the gateway, the worker
        changes = world.goes_on(9, **half)
        assert [change.after for change in changes] == ["Pending", "Alerting"]
        assert "Server is dead" in message([Told(world.rule, (), {}, world.at_ms)])[1]
        (over,) = world.goes_on(1, **{"kit-1": silent}, server=served)
        assert over.resolved


def test_a_database_that_does_not_answer_is_one_alarm_not_twenty() -> None:
    def away(_):
        return {"error": "connection refused"}

    fired = set()
    for key, rule in RULES.items():
        watch = rule.watch()
        for minute in range(rule.for_s // 60 + 2):
            fired |= {
                key for change in watch.tick(away, minute * 60_000) if change.after in ("Alerting", "Error", "NoData")
            }
    assert fired == {"server-dead"}


def test_the_command_line_lists_each_alarm_with_its_tolerance(capsys) -> None:
    assert main(["alarms", "--json"]) == 0
    listed = {one["alarm"]: one for one in json.loads(capsys.readouterr().out)["alarms"]}
    assert listed.keys() == RULES.keys()
    assert (listed["probe-spool"]["for_s"], listed["probe-spool"]["severity"]) == (300, "critical")
    assert main(["alarms"]) == 0
    assert "  probe-spool          critical limit" in capsys.readouterr().out


def test_every_alarm_has_its_case() -> None:
    assert {alarm.key for alarm in alarms()} == {*CASES, "server-dead"}
