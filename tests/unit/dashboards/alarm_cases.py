"""What is written each minute for a probe that is wrong and for one that is fine, alarm by alarm."""

from collections.abc import Callable
from dataclasses import dataclass

from tandem.schema.metrics import MODEM_STATES
from tandem_server.schema.measurements import PROBE_STATES

Written = list[tuple[str, dict[str, str], dict[str, object]]]
GB = 2**30


@dataclass(frozen=True)
class Case:
    """What is written each minute (its number) for a probe, or for the server as a whole; ``wrong`` and ``fine``.

    ``told``: by the probe, so that a silent one keeps its alarm. ``labels``: of what fires, beside ``probe``.
    """

    wrong: Callable[[int], Written]
    fine: Callable[[int], Written]
    told: bool = True
    labels: tuple[tuple[str, str], ...] = ()
    probe: bool = True


def one(measurement, tags=None, /, **fields):
    return lambda minute: [(measurement, tags or {}, {k: v(minute) if callable(v) else v for k, v in fields.items()})]


def state(name, since_s=lambda minute: 60.0 * minute):
    return one("probe_state", state_code=PROBE_STATES.index(name), since_s=since_s, last_seen_s=3.0)


def unheard(seconds):
    return lambda _: [
        ("expected", {}, {"seen": 0}),
        ("probe_state", {}, {"state_code": PROBE_STATES.index("silent"), "since_s": seconds, "last_seen_s": seconds}),
    ]


def sim(**fields):
    return one("sim_usage", {"path": "a", "operator": "A"}, reset_in_s=86_400.0, plan_bytes=10 * GB, **fields)


def modem(name):
    code = MODEM_STATES.index(name)
    tags = {"path": "a", "operator": "A", "driver": "quectel"}
    return one("modem_health", tags, state=name, state_code=code, state_since_s=lambda minute: 60.0 * minute)


def ledger(**fields):
    return one("ledger", {"campaign": "chen"}, runs_complete=5, **fields)


def disk(used):
    return one("server_disk", {"place": "traces"}, used_bytes=used * GB, free_bytes=(100 - used) * GB)


CASES: dict[str, Case] = {
    "probe-silent": Case(unheard(1900.0), unheard(1700.0), told=False),
    "probe-gone": Case(unheard(86_500.0), unheard(80_000.0), told=False),
    "probe-never-came": Case(state("never_seen", 700_000.0), state("never_seen", 500_000.0), told=False),
    "probe-not-measuring": Case(state("online_not_measuring"), state("idle"), told=False),
    "probe-not-uploading": Case(state("not_uploading"), state("measuring"), told=False),
    "probe-spool": Case(
        one("health", spool_bytes=85, spool_limit_bytes=100), one("health", spool_bytes=75, spool_limit_bytes=100)
    ),
    "probe-records-lost": Case(
        one("spool", spool="s", dropped=lambda minute: 40 * (minute > 1)),
        one("spool", spool="s", dropped=lambda minute: 40 * (minute <= 1)),  # a new card counts from 0 again
    ),
    "probe-undervoltage": Case(one("health", undervoltage_seen=1), one("health", undervoltage_seen=lambda m: int(m == 1))),
    "probe-clock": Case(one("clock", age_s=lambda minute: 3600.0 + 60 * minute), one("clock", age_s=64.0)),
    "probe-disk": Case(
        one("health", disk_used_bytes=29 * GB, disk_free_bytes=GB), one("health", disk_used_bytes=8 * GB, disk_free_bytes=GB)
    ),
    "probe-hot": Case(
        one("health", processor_temperature_degc=82.5),
        one("health", processor_temperature_degc=lambda minute: 85.0 if minute % 5 == 0 else 70.0),
    ),
    "card-worn": Case(
        one("card", {"device": "mmcblk0"}, life_used_a_percent=90),
        one("card", {"device": "mmcblk0"}, life_used_a_percent=10),
        labels=(("device", "mmcblk0"),),
    ),
    "modem-lost": Case(modem("lost"), modem("recovering"), labels=(("path", "a"),)),
    "modem-recovering": Case(modem("recovering"), modem("usable"), labels=(("path", "a"),)),
    "plan-over": Case(
        sim(expected_bytes=12 * GB, basis_days=5), sim(expected_bytes=12 * GB, basis_days=2), labels=(("path", "a"),)
    ),
    "plan-used-up": Case(
        sim(used_bytes=98 * GB // 10), sim(used_bytes=8 * GB), labels=(("path", "a"),)
    ),
    "ledger-missing": Case(
        ledger(runs_missing=2, runs_waiting=0), ledger(runs_missing=0, runs_waiting=3), False, (("campaign", "chen"),)
    ),
    "ledger-late": Case(
        ledger(runs_waiting=1, incomplete_s=130_000.0),
        ledger(runs_waiting=1, incomplete_s=9_000.0),
        False,
        (("campaign", "chen"),),
    ),
    "trace-never-comes": Case(
        one("server_traces", unfinished=1, unfinished_oldest_s=130_000.0),
        one("server_traces", unfinished=1, unfinished_oldest_s=600.0),
        told=False,
    ),
    "gateway-rejecting": Case(
        one("gateway", {"process": "1"}, requests=9, lines_rejected=lambda minute: int(minute == 2)),
        one("gateway", {"process": "1"}, requests=9, lines_rejected=0),
    ),
    "gateway-overloaded": Case(
        one("gateway", {"process": "1"}, requests=9, answers_503=4),
        one("gateway", {"process": "1"}, requests=9, answers_503=0),
        probe=False,
    ),
    "database-failing": Case(
        one("gateway_process", {"process": "1"}, writes_failed=2),
        one("gateway_process", {"process": "1"}, writes_failed=0),
        probe=False,
    ),
    "server-disk": Case(disk(93), disk(70), labels=(("place", "traces"),), probe=False),
}  # fmt: skip
"""All but ``server-dead``, whose fault is that nothing is written."""
