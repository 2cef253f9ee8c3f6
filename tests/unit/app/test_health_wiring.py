"""Health as a whole: a Pi's files in, records in the database and the status out; what is wrong begins and ends."""

from dataclasses import replace
from pathlib import Path

from doubles import Rehearsal, points
from https_gateway import Gateway

from tandem.app.config_plan import PlanConfig
from tandem.app.health.roots import Roots
from tandem.app.status_socket import ask
from tandem.cli.view.plain import summary
from tandem.schema.metrics import MODEM_STATES


def machine(root: Path) -> Roots:
    files = {
        "sys/class/thermal/thermal_zone0/type": "cpu-thermal",
        "sys/class/thermal/thermal_zone0/temp": "47712",
        "sys/class/hwmon/hwmon0/name": "rpi_volt",
        "sys/class/hwmon/hwmon0/in0_lcrit_alarm": "1",
        "proc/uptime": "86521.33 341022.12",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{text}\n")
    return Roots(sys=root / "sys", proc=root / "proc", etc=root / "etc", vcio=root / "vcio")


def test_health_of_machine_modems_and_sims_reaches_the_database_and_the_status(
    tmp_path: Path, gateway: Gateway
) -> None:
    roots = machine(tmp_path / "machine")
    collector = Rehearsal(tmp_path, gateway)
    plan = PlanConfig(10**10, 1, 1.0)
    paths = tuple(replace(p, plan=plan) if p.name == "a" else p for p in collector.config.paths)
    collector.rewired(replace(collector.config, paths=paths), roots=roots).start()
    collector.pollers["a"].poll(-90.0)
    collector.pollers["b"].poll(None, failure="no_answer")
    gateway.until(lambda: {"software", "sim_usage", "modem_health"} <= {p.measurement for p in points(gateway)})
    (status,) = ask(tmp_path / "status.sock", {"op": "status"})
    assert status["health"]["processor_temperature_degc"] == 47.712
    assert status["health"]["boot_count"] == 1
    assert status["sims"]["a"]["plan_bytes"] == 10**10
    assert status["sims"]["b"]["plan_bytes"] is None
    assert any("the supply's voltage is too low" in line for line in status["wrong"])
    assert "  - the supply's voltage is too low" in summary(status)
    assert collector.stop()
    found = points(gateway)
    health = [p for p in found if p.measurement == "health"]
    assert health[0].fields["undervoltage"] is True
    assert int(health[0].fields["undervoltage_seen"]) == 1
    assert health[0].fields["uptime_s"] == 86521.33
    assert int(health[0].fields["spool_limit_bytes"]) > int(health[0].fields["spool_bytes"])
    (temperature, *_) = [p for p in found if p.measurement == "temperature"]
    assert temperature.tags["sensor"] == "cpu-thermal"
    modems = [p for p in found if p.measurement == "modem_health"]
    counted = [
        {path: sum(int(p.fields[name]) for p in modems if p.tags["path"] == path) for path in ("a", "b")}
        for name in ("polls_ok", "polls_failed")
    ]
    assert counted == [{"a": 1, "b": 0}, {"a": 0, "b": 1}]
    assert all(MODEM_STATES[int(p.fields["state_code"])] == p.fields["state"] for p in modems)
    events = [(p.tags["kind"], p.fields.get("state")) for p in found if p.measurement == "event"]
    assert events.count(("undervoltage", "begins")) == 1
    assert ("undervoltage", "ends") not in events
