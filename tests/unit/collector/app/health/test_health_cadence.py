"""How often each record of health is made, over two simulated hours; and a plan's warning through all of it."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from good_config import GOOD

from tandem.app.config import parse
from tandem.app.config_schema import PlanConfig
from tandem.app.daemon.accounts import Account
from tandem.app.health.machine import Roots
from tandem.app.health.reports import Reports
from tandem.export.clock import Clock, Reading
from tandem.schema.record import Record

NOON_NS = int(datetime(2026, 11, 21, 12, tzinfo=UTC).timestamp()) * 10**9
S = 10**9


def reports(folder: Path, used_gb: int, *, known: bool = True) -> Reports:
    """Of a probe whose path a has a plan of 10 GB and used so many a day this month, or whose clock was never set."""
    days = ", ".join(f'"2026-11-{day:02}": {{"received": {used_gb * 10**9}, "sent": 0}}' for day in range(1, 21))
    (folder / "account.json").write_text(
        f'{{"format": "tandem-account/1", "paths": {{"a": {{{days}}}}}, "counters": {{}}}}'
    )
    for name in ("sys", "proc"):
        (folder / name).mkdir()
    (folder / "proc" / "uptime").write_text("5.00 5.00\n")
    config = parse(GOOD, folder / "config.toml")
    plan = PlanConfig(10**10, 1, 1.0)
    config = replace(config, paths=tuple(replace(p, plan=plan) if p.name == "a" else p for p in config.paths))
    clock = Clock(folder / "boots.json", "boot-1", lambda: NOON_NS if known else 0, lambda: 0)
    if known:
        clock.take(Reading("chrony", 0, NOON_NS, 10_000_000))
    account = Account(folder, {}, "boot-1", lambda: NOON_NS if known else None)
    roots = Roots(folder / "sys", folder / "proc", folder / "etc", folder / "vcgencmd")
    return Reports(config, clock, account, roots, 0)


def made(one: Reports, seconds: int) -> list[Record]:
    """What a tick a second brings."""
    records: list[Record] = []
    for second in range(seconds + 1):
        if one.tick(second * S):
            records += one.report({}, {}, {}, second * S)
    return records


def test_each_record_is_made_as_often_as_is_said(tmp_path):
    records = made(reports(tmp_path, 0), 7200)
    counts = Counter(record.measurement for record in records)
    assert counts["health"] == 721
    assert counts["modem_health"] == counts["sim_usage"] == 2 * 121  # two paths with modems
    assert counts["software"] == 3
    whole = [record for record in records if record.measurement == "health" and "uptime_s" in record.fields]
    assert len(whole) == 121
    assert all("disk_free_bytes" in record.fields for record in records if record.measurement == "health")
    assert counts["event"] == 0


def test_a_plan_that_will_not_last_is_one_event_and_stays_in_what_is_wrong(tmp_path):
    one = reports(tmp_path, 1)
    events = [record for record in made(one, 600) if record.measurement == "event"]
    assert [(e.tags["kind"], e.tags["path"], e.fields["state"]) for e in events] == [("plan_over", "a", "begins")]
    assert one.status["wrong"] == ["path a: the SIM's plan is used up: 20 GB of 10 GB (new on 01 December)"]
    assert one.status["sims"]["a"]["left_bytes"] == 0


def test_while_the_time_is_not_known_no_plan_is_judged(tmp_path):
    one = reports(tmp_path, 1, known=False)
    counts = Counter(record.measurement for record in made(one, 120))
    assert counts["sim_usage"] == counts["event"] == 0
    assert counts["health"] == 13
    assert one.status["sims"] == {}


def test_a_full_disk_stops_no_report(tmp_path, caplog):
    one = reports(tmp_path, 0)

    def full() -> None:
        raise OSError(28, "No space left on device")

    one._account.save = full
    assert Counter(r.measurement for r in made(one, 60))["health"] == 7
    assert "No space left" in caplog.text
