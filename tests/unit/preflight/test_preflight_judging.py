"""From what was found to lines: each fault fails its own line and no other."""

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tandem.app.config import Config, parse
from tandem.app.health.storage import Room
from tandem.app.preflight.facts import Disk, Measured, Server, Tunnel
from tandem.app.preflight.lines import Line, ready, settled
from tandem.app.preflight.machine import collector_line, machine_lines
from tandem.app.preflight.modems import modem_lines
from tandem.app.preflight.network import measured_lines, path_lines, plan_lines, server_lines, tunnel_lines
from tandem.app.preflight.tunnel import judged

CONFIG = """
[probe]
name = "probe-1"
[server]
gateway = "https://server.test:8443"
control = "https://server.test:8444"
measurement = "http://server.test:8480"
token_file = "token"
[position]
mode = "coarse"
[[path]]
name = "a"
operator = "A"
interface = "wwan0"
[path.modem]
port = "/dev/ttyUSB2"
[path.plan]
bytes = 10_000_000_000
[[path]]
name = "b"
operator = "B"
usb = "1-1.3"
[path.modem]
usb = "1-1.3"
"""


def config() -> Config:
    return parse(CONFIG, Path("/etc/tandem/config.toml"))


def modem(**more: Any) -> dict[str, Any]:
    sim = {"state": "ready", "named": True, "failure": None, "age_s": 1.0}
    heard = {"state": "connected", "rat": "LTE", "rsrp_dbm": -92.0, "rsrq_db": -9.0, "sinr_db": 14.0, "rssi_dbm": -63.0}
    return {"driver": "quectel", "model": "EC25", "failure": None, "age_s": 0.4, "sim": sim, **heard, **more}


UNKNOWN = "the server does not know it"
NATIVE = {"primary": {"verdict": "native"}, "join": {"verdict": "native"}}
ROW = {"ok": True, "bytes": 200_000, "goodput_bit_per_s": 5e6, "failure": None}


class Kit:
    """Everything is well; a test makes one thing worse."""

    def __init__(self) -> None:
        self.config = config()
        self.collector: str | None = None
        self.status: dict[str, Any] = {
            "uptime_s": 60.0,
            "modems": {"a": modem(), "b": modem()},
            "paths": {p: {"state": "up", "interface": f"wwan{p}"} for p in "ab"},
            "clock": {"vouched": True, "source": "chrony", "error_ms": 3.2, "trouble": None},
            "position": {"state": "fix", "satellites_used": 9},
            "health": {
                "undervoltage": False,
                "undervoltage_since_boot": False,
                "throttled": False,
                "throttled_since_boot": False,
                "spool_oldest_s": 1.0,
            },
            "cards": {},
            "spool": {"made": 100, "sent": 98, "pending": 2, "rejected": 0, "dropped": 0},
            "trouble": None,
        }
        self.sims = {"a": {"left_bytes": 9e9, "expected_bytes": 1e9, "sure": True, "reset": "2026-12-01"}}
        self.disk = Disk(Room(20 * 10**9, 10**9, 10**6, 10**3))
        self.server = Server(None, None, False, "0.1.0", "good", "probe-1", "0.1.0", None, 0.3)
        self.measured = Measured(None, {p: dict(ROW) for p in "ab"}, {p: copy.deepcopy(NATIVE) for p in "ab"})
        self.tunnel: Tunnel | None = Tunnel(True, "fresh")

    def unmeasured(self, path: str) -> None:
        self.measured.downloads.pop(path)
        self.measured.verdicts.pop(path)

    def nothing_comes(self, failure: str) -> None:
        for row in self.measured.downloads.values():
            row.update(ok=False, failure=failure)
        self.measured.verdicts.clear()

    def lines(self) -> list[Line]:
        return settled(
            [
                collector_line(self.collector, self.status),
                *modem_lines(self.config, self.status),
                *path_lines(self.config, self.status),
                *measured_lines(self.config, self.measured, self.server),
                *machine_lines(self.config, self.status, self.disk, self.server.clock_off_s),
                *server_lines(self.config, self.server, "0.1.0" if self.status else None),
                *plan_lines(self.config, self.sims),
                *tunnel_lines(self.tunnel),
            ]
        )

    def roots(self) -> set[str]:
        return {line.label for line in self.lines() if line.state == "fail"}


def test_a_good_kit_is_ready_and_every_line_says_something() -> None:
    lines = Kit().lines()
    assert ready(lines)
    assert {line.state for line in lines} == {"pass", "skipped"}
    assert all(line.finding for line in lines)


FAULTS: dict[str, tuple[Any, set[str]]] = {
    "the modem never spoke": (lambda k: k.status["modems"]["a"].update(age_s=None), {"modem:a"}),
    "the modem hangs": (
        lambda k: (
            k.status["modems"].update(
                a=modem(state="no_answer", rat=None, rsrp_dbm=None, sim={"failure": "no answer"})
            ),
        ),
        {"modem:a"},
    ),
    "the modem is unplugged": (
        lambda k: (
            k.status["modems"].update(b=modem(state="port_lost", rat=None, rsrp_dbm=None, sim=None)),
            k.status["paths"]["b"].update(state="down"),
            k.unmeasured("b"),
        ),
        {"modem:b"},
    ),
    "another SIM": (lambda k: k.status["modems"]["a"]["sim"].update(named=False), {"sim:a"}),
    "no PIN": (
        lambda k: k.status["modems"].update(
            a=modem(
                state="no_service", rat=None, sim={"state": "the SIM wants its PIN", "named": None, "failure": None}
            )
        ),
        {"sim:a"},
    ),
    "not registered": (
        lambda k: (
            k.status["modems"].update(
                a=modem(state="searching", rat=None, rsrp_dbm=None, rsrq_db=None, sinr_db=None, rssi_dbm=None)
            ),
            k.status["paths"]["a"].update(state="no_address"),
            k.unmeasured("a"),
        ),
        {"registered:a"},
    ),
    "far from the cell": (lambda k: k.status["modems"]["a"].update(rsrp_dbm=-118.0), {"levels:a"}),
    "no address": (
        lambda k: (
            k.status["paths"]["a"].update(state="no_address"),
            k.unmeasured("a"),
        ),
        {"path:a"},
    ),
    "nothing comes over a path": (
        lambda k: (k.measured.downloads["a"].update(ok=False, failure="timeout"), k.measured.verdicts.pop("a")),
        {"data:a"},
    ),
    "an operator strips the options": (
        lambda k: k.measured.verdicts["a"]["primary"].update(verdict="stripped", detail="went missing"),
        {"mptcp:a"},
    ),
    "a campaign holds": (
        lambda k: setattr(k, "measured", Measured(held="campaign x: a run is due")),
        {"data:a", "data:b"},
    ),
    "nobody vouches for the time": (
        lambda k: (
            k.status["clock"].update(vouched=False, trouble="no chronyd answers; mend: x"),
            k.status.update(trouble="the clock is not synchronised"),
        ),
        {"clock"},
    ),
    "the clock is off the server's": (
        lambda k: setattr(k, "server", replace(k.server, clock_off_s=-4000.0)),
        {"clock"},
    ),
    "the clock is in the past, so that the certificate does not hold": (
        lambda k: (
            k.status["clock"].update(vouched=False, trouble="x"),
            k.status.update(trouble="the server's certificate is not yet valid"),
            setattr(k, "server", Server("not yet valid", control="not yet valid", untimely=True)),
            k.nothing_comes("certificate"),
        ),
        {"clock"},
    ),
    "no gpsd": (lambda k: k.status["position"].update(state="no_gpsd"), {"gps"}),
    "a weak supply": (lambda k: k.status["health"].update(undervoltage_since_boot=True), {"power"}),
    "hot": (lambda k: k.status["health"].update(throttled=True), {"power"}),
    "a full disk": (
        lambda k: (
            setattr(k, "disk", Disk(Room(10**8, 20 * 10**9, 10**6, 10**3))),
            k.status.update(trouble="the disk is full: records wait in memory"),
        ),
        {"disk"},
    ),
    "no inodes": (lambda k: setattr(k, "disk", Disk(Room(10**10, 10**9, 10, 10**6))), {"disk"}),
    "no folder": (lambda k: setattr(k, "disk", Disk(None, "No such file or directory")), {"disk"}),
    "a worn card": (lambda k: k.status["cards"].update(mmcblk0={"life_used_a_percent": 100}), {"disk"}),
    "a backlog": (lambda k: k.status["health"].update(spool_oldest_s=9000.0), {"spool"}),
    "the gateway is down": (
        lambda k: (
            setattr(k, "server", Server("over a: refused; over b: refused")),
            k.status.update(trouble="a: refused; b: refused"),
        ),
        {"server"},
    ),
    "the gateway is down, and nothing comes over a path": (
        lambda k: (
            setattr(k, "server", Server("over a: refused; over b: refused")),
            k.status.update(trouble="a: refused; b: refused"),
            k.measured.downloads["b"].update(ok=False, failure="timeout"),
            k.measured.verdicts.pop("b"),
        ),
        {"server", "data:b"},
    ),
    "the endpoint is down": (
        lambda k: (
            setattr(k, "server", replace(k.server, control="a: refused; b: refused")),
            k.nothing_comes("control channel: refused"),
        ),
        {"server"},
    ),
    "the token was revoked": (
        lambda k: (
            setattr(k, "server", replace(k.server, token=UNKNOWN, probe=None, expected=None)),
            k.status.update(trouble="HTTP 401: no good token; mend: x"),
            k.nothing_comes("control channel: HTTP 401"),
        ),
        {"token"},
    ),
    "the token of another kit": (lambda k: setattr(k, "server", replace(k.server, probe="probe-7")), {"token"}),
    "the SIM's plan is used up": (lambda k: k.sims["a"].update(left_bytes=0), {"budget:a"}),
    "the SIM's plan will not last": (lambda k: k.sims["a"].update(expected_bytes=2e10), {"budget:a"}),
    "the server's budget is used up": (
        lambda k: (
            setattr(k, "server", replace(k.server, budget="HTTP 429: today's bytes are used up")),
            k.nothing_comes("control channel: HTTP 429"),
        ),
        {"budget"},
    ),
    "another version": (lambda k: setattr(k, "server", replace(k.server, expected="0.2.0")), {"version"}),
    "no collector": (lambda k: setattr(k, "collector", "none runs"), {"collector"}),
    "a hung collector": (
        lambda k: (
            setattr(k, "collector", "it hangs"),
            k.status.clear(),
            setattr(k, "measured", Measured(held="the collector does not answer", unanswered=True)),
            k.sims.clear(),
        ),
        {"collector"},
    ),
    "no tunnel": (lambda k: setattr(k, "tunnel", Tunnel(False, "never")), {"tunnel"}),
    "no network at all": (
        lambda k: (
            [k.status["paths"][p].update(state="down") for p in "ab"],
            setattr(k, "server", Server("no path is up", "no path is up")),
            k.measured.downloads.clear(),
            k.measured.verdicts.clear(),
            k.status.update(trouble="no path works"),
        ),
        {"path:a", "path:b"},
    ),
}


def test_a_fault_fails_its_own_line_and_no_other_also_where_no_collector_runs() -> None:
    wrong: dict[str, Any] = {}
    for fault, (make, expected) in FAULTS.items():
        kit = Kit()
        make(kit)
        lines = kit.lines()
        without_mend = [line.label for line in lines if line.state == "fail" and not line.mend]
        if kit.roots() != expected or ready(lines) or without_mend:
            wrong[fault] = kit.roots(), ready(lines), without_mend
        kit.collector = kit.collector or "none runs"
        if kit.roots() != expected | {"collector"}:
            wrong[f"{fault}, without a collector"] = kit.roots()
    assert wrong == {}


def test_every_line_there_is_has_a_fault_here() -> None:
    from tandem.app.preflight.lines import TITLES

    assert {label.partition(":")[0] for _, labels in FAULTS.values() for label in labels} == set(TITLES)


@given(st.sampled_from(["modems", "paths", "clock", "position", "health", "spool"]))
def test_what_an_older_collector_does_not_tell_fails_and_does_not_break(missing: str) -> None:
    kit = Kit()
    del kit.status[missing]
    assert not ready(kit.lines())


def test_handshakes_of_the_tunnel() -> None:
    key = "A" * 43 + "="
    assert judged(f"{key}\t1000\n", 1100.0).answered
    assert not judged(f"{key}\t1000\n", 1200.0).answered
    assert not judged(f"{key}\t0\n", 1200.0).answered
    assert not judged("", 1200.0).answered
    assert not judged("nonsense\t12", 13.0).answered
