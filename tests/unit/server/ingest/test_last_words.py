"""What a silent probe said last: out of a real database, and what is made of it."""

import json
import time
from typing import Any

from support.serve_on_loopback import command
from tandem_server.ledger.last_words import LastWords, reasons, text

NS = 1_000_000_000


def sent(server: Any, *lines: str) -> None:
    status, _, answer = server.gateway("POST", "/v1/records", "\n".join(lines).encode())
    assert (status, answer["rejected"]) == (200, [])


def test_what_it_said_last_is_told_with_why_it_may_be_silent(server: Any) -> None:
    now = time.time_ns()
    seq = iter(range(1, 100))

    def line(what: str, fields: str, ago_s: float) -> str:
        number = next(seq)
        return f"{what},boot=last {fields},seq={number}i,monotonic_ns={number}i {now - int(ago_s * NS)}"

    sent(
        server,
        line("health", "undervoltage=false,disk_free_bytes=20000000000i", 70),
        line("health", "undervoltage=true", 10),
        line("radio,path=a,operator=A,rat=LTE", 'state="connected",rsrp_dbm=-92.5', 11),
        line("radio,path=b,operator=B,rat=LTE", 'state="connected",rsrp_dbm=-80.0', 12),
        line("radio,path=b,operator=B", 'state="port_lost"', 9),
        line("modem_health,path=b,operator=B", 'state="lost",state_code=2i', 8),
        line("sim_usage,path=a,operator=A", "used_bytes=5i,left_bytes=0i", 20),
        line("event,kind=undervoltage", 'detail="too low",state="begins"', 10),
        line("event,kind=modem_lost,path=b,operator=B", 'detail="gone"', 9),
    )
    status, printed, _ = command("probe", "last", "probe-1", "--config", server.folder / "server.toml", "--json")
    assert status == 0
    told = json.loads(printed)
    assert told["health"]["undervoltage"] is True
    assert told["health"]["disk_free_bytes"] == 20_000_000_000, "a field that was told earlier"
    assert told["radio"]["a"]["rsrp_dbm"] == -92.5
    assert [event["kind"] for event in told["events"]][:2] == ["modem_lost", "undervoltage"]
    assert [reason.split()[1] for reason in told["reasons"]] == ["supply's", "SIM's", "modem"]
    status, printed, _ = command("probe", "last", "probe-1", "--config", server.folder / "server.toml")
    assert status == 0
    assert "path a: connected, RSRP -92.5 dBm, plan 0.00 GB left" in printed
    assert "modem_lost b gone" in printed


def test_a_probe_that_is_not_there_or_never_spoke(server: Any) -> None:
    config = server.folder / "server.toml"
    status, _, errors = command("probe", "last", "never-added", "--config", config)
    assert (status, "no probe 'never-added'; hint:" in errors) == (2, True)
    assert command("probe", "add", "mute", "--config", config)[0] == 0
    status, printed, _ = command("probe", "last", "mute", "--config", config)
    assert (status, printed) == (1, "mute: it never sent a record that is kept\n")
    command("probe", "revoke", "mute", "--config", config)


def event(kind: str, ago_s: float, state: str | None = None) -> dict[str, Any]:
    return {"at_utc_ns": 1000 * NS - int(ago_s * NS), "kind": kind, "path": None, "state": state, "detail": None}


NO_CELL = {"a": {"state": "searching"}}


def test_reasons() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, "nothing foretold it"),
        ({"events": [event("collector_stop", 1)]}, "ended in order"),
        ({"events": [event("collector_start", 1), event("collector_stop", 9)]}, "nothing foretold it"),
        ({"events": [event("undervoltage", 20, "begins")]}, "supply's voltage"),
        ({"events": [event("undervoltage", 20, "ends"), event("undervoltage", 60, "begins")]}, "nothing foretold it"),
        ({"health": {"disk_free_bytes": 10_000_000}}, "disk was nearly full"),
        ({"health": {"processor_temperature_degc": 84.0}}, "hot: 84"),
        ({"radio": {**NO_CELL, "b": {"state": "connected", "rsrp_dbm": -119.0}}}, "no network served"),
        ({"radio": {**NO_CELL, "b": {"state": "connected", "rsrp_dbm": -80.0}}}, "nothing foretold it"),
        ({"sims": {"a": {"left_bytes": 0}}}, "plan of path a is used up"),
        ({"modems": {"b": {"state": "recovering"}}}, "modem of path b was lost"),
    ]
    for said, word in cases:
        made = LastWords(1000 * NS, **said)
        (found,) = reasons(made)
        assert word in found
        assert found in "\n".join(text("probe-1", made, 2000 * NS))
