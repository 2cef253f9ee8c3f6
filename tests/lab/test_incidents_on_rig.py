"""What the incident run leaves in the database, as probe and server wrote it: all that is measured, and every fault that was played."""

from __future__ import annotations

from typing import Any

import pytest
from filled_database import Filled
from incident_run import PLAN_BYTES, SPOOL_BYTES
from incident_second_probe import NAME

from support.running_kit import PROBE
from tandem.schema.metrics import MEASUREMENTS
from tandem_server.schema.measurements import SERVER_MEASUREMENTS

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.timeout(600)]

NOT_THERE: dict[str, str] = {}
"""Measurements that a run of two minutes does not fill, and what they take."""
POLICIES = ("kept", "minute", "hour")

EVENTS = {
    "collector_start", "collector_stop", "handover", "mobility_start", "mobility_stop", "modem_back", "modem_lost", "path_state",
    "path_up", "plan_over", "position_fix", "recovered", "recovery_step", "service_back", "service_lost", "signal_drop",
    "spool_dropped", "trace_received", "undervoltage",
}  # fmt: skip


def rows(filled: Filled, statement: str, **values: str) -> list[dict[str, Any]]:
    """Rows with their tags; what a row has not is left out."""
    found = []
    for series in filled.store.query(statement, values or None):
        for row in series.rows:
            told = dict(zip(series.columns, row, strict=True))
            found.append({**series.tags, **{name: value for name, value in told.items() if value is not None}})
    return found


def within(filled: Filled, span: str, more_s: float = 0.0) -> str:
    """As a condition of a query. ``more_s``: after its end."""
    one = filled.incidents.spans[span]
    return f"time >= {one.begin_utc_ns} AND time <= {one.end_utc_ns + int(more_s * 1e9)}"


def points(filled: Filled, policy: str, measurement: str) -> int:
    found = rows(filled, f'SELECT count(*) FROM "{policy}"."{measurement}"')  # noqa: S608
    return max((int(v) for row in found for k, v in row.items() if k.startswith("count_")), default=0)


def test_every_measurement_is_there(filled: Filled) -> None:
    there = {row["name"] for row in rows(filled, "SHOW MEASUREMENTS")}
    wanted = {*MEASUREMENTS, *SERVER_MEASUREMENTS}
    assert wanted - there == set(NOT_THERE)
    for name in sorted(wanted & there):
        counted = [points(filled, policy, name) for policy in POLICIES]
        print(f"{name:18}", *(f"{policy} {count:6}" for policy, count in zip(POLICIES, counted, strict=True)))
        assert any(counted), name


def test_every_kind_of_event_that_was_played(filled: Filled) -> None:
    kinds = {row["kind"] for row in rows(filled, 'SELECT count("seq") FROM "event" GROUP BY "kind"')}
    assert EVENTS - kinds == set()


def test_two_boots_of_one_probe(filled: Filled) -> None:
    boots = rows(filled, 'SELECT count("state") FROM "radio" GROUP BY "boot"')
    assert len(boots) == 2
    assert all(row["count"] >= 4 for row in boots)


def test_the_probe_went_along_the_route(filled: Filled) -> None:
    (extent,) = rows(filled, 'SELECT spread("latitude_deg") AS north, spread("longitude_deg") AS east FROM "position"')
    assert extent["north"] > 0.001
    assert extent["east"] > 0.005


def test_the_faults_show_where_they_should(filled: Filled) -> None:
    (low,) = rows(
        filled,
        f'SELECT count("undervoltage") FROM "health" WHERE "undervoltage" = true AND {within(filled, "undervoltage", 11)}',  # noqa: S608
    )
    assert low["count"] >= 1
    modems = rows(
        filled,
        """SELECT "state" FROM "modem_health" WHERE "path" = 'a' AND """ + within(filled, "modem_hangs"),  # noqa: S608
    )
    assert "recovering" in {row["state"] for row in modems}
    spool = rows(
        filled,
        f'SELECT "spool_bytes", "spool_limit_bytes" FROM "health" WHERE "probe" = \'{PROBE}\' AND {within(filled, "gateway_cut", 12)}',  # noqa: S608
    )
    assert max(row["spool_bytes"] for row in spool) > 0.8 * SPOOL_BYTES
    assert {row["spool_limit_bytes"] for row in spool} == {SPOOL_BYTES}
    sims = rows(filled, """SELECT "used_bytes", "plan_bytes" FROM "sim_usage" WHERE "path" = 'b'""")
    assert sims[-1]["used_bytes"] > sims[-1]["plan_bytes"] == PLAN_BYTES
    clocks = rows(filled, f'SELECT "synchronised" FROM "clock" WHERE "probe" = \'{NAME}\'')  # noqa: S608
    assert [row["synchronised"] for row in clocks] == [False, True]
    disks = rows(
        filled,
        """SELECT "free_bytes", "used_bytes" FROM "server_disk" WHERE "place" = 'traces' AND """  # noqa: S608
        + within(filled, "disk_full"),
    )
    assert min(row["free_bytes"] / (row["free_bytes"] + row["used_bytes"]) for row in disks) < 0.05
    refused = rows(filled, f'SELECT sum("lines_rejected") FROM "gateway" WHERE "probe" = \'{NAME}\'')  # noqa: S608
    assert refused[0]["sum"] == 3


def test_the_states_of_the_probes(filled: Filled) -> None:
    def states(probe: str, span: str) -> set[str]:
        told = f'SELECT "state" FROM "probe_state" WHERE "probe" = $probe AND {within(filled, span)}'  # noqa: S608
        return {row["state"] for row in rows(filled, told, probe=probe)}

    assert "measuring" in states(PROBE, "all")
    assert "not_uploading" in states(NAME, "clock_unset")
    assert "online_not_measuring" in states(NAME, "second_online")
    assert "silent" in states(NAME, "second_silent")
    assert states("probe-3", "all") == {"never_seen"}


def test_a_run_lacks_records_and_the_ledger_says_so(filled: Filled) -> None:
    told = rows(filled, f'SELECT * FROM "ledger" WHERE {within(filled, "all")}')  # noqa: S608
    assert max(row.get("runs_missing", 0) for row in told) >= 1


def test_operators_are_told_apart(filled: Filled) -> None:
    verdicts = rows(filled, 'SELECT "verdict_code" FROM "verdict" GROUP BY "operator", "role", "verdict"')
    primary = {row["operator"]: row["verdict"] for row in verdicts if row["role"] == "primary"}
    assert primary == {"A": "native", "B": "stripped"}
