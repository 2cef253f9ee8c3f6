"""From what was found to lines: each fault fails its own line and no other; what a sheet for the box may not hold."""

import copy
import ipaddress
import re
from dataclasses import replace
from typing import Any

from good_config import FILE, GOOD
from hypothesis import given
from hypothesis import strategies as st

from tandem.app.config import parse
from tandem.app.health.machine import Room
from tandem.app.preflight.check import handshakes
from tandem.app.preflight.checks import Facts, Measured, Server, lines
from tandem.app.preflight.lines import TITLES, Line, fails, passes, ready, said, settled

PLAN = 'driver = "auto"\n[path.plan]\nbytes = 10_000_000_000\n'
BY_USB = GOOD.replace('interface = "wwan1"', 'usb = "1-1.3"').replace('port = "/dev/ttyUSB6"', 'usb = "1-1.3"')
CONFIG = BY_USB.replace('driver = "auto"\n', PLAN) + '[position]\nmode = "coarse"\n'


def modem(**more: Any) -> dict[str, Any]:
    sim = {"state": "ready", "named": True, "failure": None, "age_s": 1.0}
    heard = {"state": "connected", "rat": "LTE", "rsrp_dbm": -92.0, "rsrq_db": -9.0, "sinr_db": 14.0, "rssi_dbm": -63.0}
    return {"driver": "quectel", "model": "EC25", "failure": None, "age_s": 0.4, "sim": sim, **heard, **more}


UNKNOWN = "the server does not know it"
NATIVE = {"primary": {"verdict": "native"}, "join": {"verdict": "native"}}
ROW = {"ok": True, "bytes": 200_000, "goodput_bit_per_s": 5e6, "failure": None}


SUPPLY = ("undervoltage", "undervoltage_since_boot", "throttled", "throttled_since_boot")
SILENT = {"rat": None, "rsrp_dbm": None}


class Kit:
    """Everything is well; a test makes one thing worse."""

    def __init__(self) -> None:
        self.config = parse(CONFIG, FILE)
        self.collector: str | None = None
        self.status: dict[str, Any] = {
            "uptime_s": 60.0,
            "modems": {"a": modem(), "b": modem()},
            "paths": {p: {"state": "up", "interface": f"wwan{p}"} for p in "ab"},
            "clock": {"vouched": True, "source": "chrony", "error_ms": 3.2, "trouble": None},
            "position": {"state": "fix", "satellites_used": 9},
            "health": {**dict.fromkeys(SUPPLY, False), "spool_oldest_s": 1.0},
            "cards": {},
            "spool": {"made": 100, "sent": 98, "pending": 2, "rejected": 0, "dropped": 0},
            "trouble": None,
        }
        self.sims = {"a": {"left_bytes": 9e9, "expected_bytes": 1e9, "sure": True, "reset": "2026-12-01"}}
        self.disk: Room | str = Room(20 * 10**9, 10**9, 10**6, 10**3)
        self.server = Server(None, None, False, "0.1.0", "good", "probe-1", "0.1.0", None, 0.3, "1")
        self.no_metrics_save: str | None = "1"
        self.measured = Measured(None, {p: dict(ROW) for p in "ab"}, {p: copy.deepcopy(NATIVE) for p in "ab"})
        self.tunnel: tuple[bool, str] | None = True, "fresh"
        self.vlc: str | None = ""

    def modem(self, path: str, **more: Any) -> None:
        self.status["modems"][path] = modem(**more)

    def without_data(self, path: str, state: str = "up") -> None:
        self.status["paths"][path]["state"] = state
        self.measured.downloads.pop(path)
        self.measured.verdicts.pop(path)

    def nothing_over(self, path: str) -> None:
        self.measured.downloads[path].update(ok=False, failure="timeout")
        self.measured.verdicts.pop(path)

    def at_server(self, trouble: str | None = None, nothing_comes: str | None = None, **more: Any) -> None:
        """What the collector says of it, why no download is begun, and what is found of the server itself."""
        self.server = replace(self.server, **more)
        if trouble is not None:
            self.status["trouble"] = trouble
        if nothing_comes is not None:
            for row in self.measured.downloads.values():
                row.update(ok=False, failure=nothing_comes)
            self.measured.verdicts.clear()

    def gateway_down(self) -> None:
        self.server = Server("over a: refused; over b: refused")
        self.status["trouble"] = "a: refused; b: refused"

    def in_the_past(self) -> None:
        self.status["clock"].update(vouched=False, trouble="x")
        self.at_server("the server's certificate is not yet valid", "certificate")
        self.server = Server("not yet valid", control="not yet valid", untimely=True)

    def disk_full(self) -> None:
        self.disk = Room(10**8, 20 * 10**9, 10**6, 10**3)
        self.status["trouble"] = "the disk is full: records wait in memory"

    def hung_collector(self) -> None:
        self.collector = "it hangs"
        self.status.clear()
        self.measured = Measured(held="the collector does not answer", unanswered=True)
        self.sims.clear()

    def without_network(self) -> None:
        for path in "ab":
            self.without_data(path, "down")
        self.server = Server("no path is up", "no path is up")
        self.status["trouble"] = "no path works"

    def lines(self) -> list[Line]:
        facts = Facts(self.config, self.status, self.disk, self.collector, self.server, self.measured)
        facts.vlc, facts.no_metrics_save, facts.sims = self.vlc, self.no_metrics_save, self.sims
        facts.tunnel, facts.running = self.tunnel, "0.1.0" if self.status else None
        return settled(lines(facts))

    def roots(self) -> set[str]:
        return {line.label for line in self.lines() if line.state == "fail"}


def test_a_good_kit_is_ready_and_every_line_says_something():
    found = Kit().lines()
    assert ready(found)
    assert {line.state for line in found} == {"pass", "skipped"}
    assert all(line.finding for line in found)
    told = {line.label: line.finding for line in found}
    assert told["budget:b"] == "at most 323 MB a day (day_bytes is not set); no plan is set ([path.plan])"
    assert told["uploads"].startswith(
        '0 MB wait; captures and results stay on the kit, every path has a SIM; [traces] over = "any" sends them'
    )


NO_PIN = {"state": "the SIM wants its PIN", "named": None, "failure": None}
SEARCHING = {"state": "searching", **SILENT, "rsrq_db": None, "sinr_db": None, "rssi_dbm": None}
NOT_VOUCHED = {"vouched": False, "trouble": "no chronyd answers; hint: x"}
REVOKED = {"token": UNKNOWN, "probe": None, "expected": None}
FAULTS: dict[str, tuple[Any, set[str]]] = {
    "the modem never spoke": (lambda k: k.modem("a", age_s=None), {"modem:a"}),
    "the modem hangs": (lambda k: k.modem("a", state="no_answer", **SILENT, sim={"failure": "no answer"}), {"modem:a"}),
    "the modem is unplugged": (
        lambda k: (k.modem("b", state="port_lost", **SILENT, sim=None), k.without_data("b", "down")),
        {"modem:b"},
    ),
    "another SIM": (lambda k: k.status["modems"]["a"]["sim"].update(named=False), {"sim:a"}),
    "no PIN": (lambda k: k.modem("a", state="no_service", rat=None, sim=NO_PIN), {"sim:a"}),
    "not registered": (lambda k: (k.modem("a", **SEARCHING), k.without_data("a", "no_address")), {"registered:a"}),
    "far from the cell": (lambda k: k.modem("a", rsrp_dbm=-118.0), {"levels:a"}),
    "no address": (lambda k: k.without_data("a", "no_address"), {"path:a"}),
    "nothing comes over a path": (lambda k: k.nothing_over("a"), {"data:a"}),
    "an operator strips the options": (
        lambda k: k.measured.verdicts["a"]["primary"].update(verdict="stripped", detail="went missing"),
        {"mptcp:a"},
    ),
    "a campaign holds": (
        lambda k: setattr(k, "measured", Measured(held="campaign x: a run is due")),
        {"data:a", "data:b"},
    ),
    "nobody vouches for the time": (
        lambda k: (k.status["clock"].update(NOT_VOUCHED), k.at_server("the clock is not synchronised")),
        {"clock"},
    ),
    "the clock is off the server's": (lambda k: k.at_server(clock_off_s=-4000.0), {"clock"}),
    "the clock is in the past, so that the certificate does not hold": (lambda k: k.in_the_past(), {"clock"}),
    "no gpsd": (lambda k: k.status["position"].update(state="no_gpsd"), {"gps"}),
    "a weak supply": (lambda k: k.status["health"].update(undervoltage_since_boot=True), {"power"}),
    "hot": (lambda k: k.status["health"].update(throttled=True), {"power"}),
    "a full disk": (lambda k: k.disk_full(), {"disk"}),
    "no inodes": (lambda k: setattr(k, "disk", Room(10**10, 10**9, 10, 10**6)), {"disk"}),
    "no folder": (lambda k: setattr(k, "disk", "No such file or directory"), {"disk"}),
    "a worn card": (lambda k: k.status["cards"].update(mmcblk0={"life_used_a_percent": 100}), {"disk"}),
    "a backlog": (lambda k: k.status["health"].update(spool_oldest_s=9000.0), {"spool"}),
    "the gateway is down": (lambda k: k.gateway_down(), {"server"}),
    "the gateway is down, and nothing comes over a path": (
        lambda k: (k.gateway_down(), k.nothing_over("b")),
        {"server", "data:b"},
    ),
    "the endpoint is down": (
        lambda k: k.at_server(nothing_comes="control channel: refused", control="a: refused; b: refused"),
        {"server"},
    ),
    "the token was revoked": (
        lambda k: k.at_server("HTTP 401: no good token; hint: x", "control channel: HTTP 401", **REVOKED),
        {"token"},
    ),
    "this kernel's transfers inherit": (lambda k: setattr(k, "no_metrics_save", "0"), {"metrics"}),
    "the server's transfers inherit": (lambda k: k.at_server(no_metrics_save="0"), {"metrics"}),
    "the token of another kit": (lambda k: k.at_server(probe="probe-7"), {"token"}),
    "the SIM's plan is used up": (lambda k: k.sims["a"].update(left_bytes=0), {"budget:a"}),
    "the SIM's plan will not last": (lambda k: k.sims["a"].update(expected_bytes=2e10), {"budget:a"}),
    "the server's budget is used up": (
        lambda k: k.at_server(nothing_comes="control channel: HTTP 429", budget="HTTP 429: today's bytes are used up"),
        {"budget"},
    ),
    "another version": (lambda k: k.at_server(expected="0.2.0"), {"version"}),
    "no collector": (lambda k: setattr(k, "collector", "none runs"), {"collector"}),
    "a hung collector": (lambda k: k.hung_collector(), {"collector"}),
    "a VLC that lacks its plugins": (lambda k: setattr(k, "vlc", "no plugins"), {"player"}),
    "no tunnel": (lambda k: setattr(k, "tunnel", (False, "never")), {"tunnel"}),
    "no network at all": (lambda k: k.without_network(), {"path:a", "path:b"}),
}


def test_a_fault_fails_its_own_line_and_no_other_also_where_no_collector_runs():
    wrong: dict[str, Any] = {}
    for fault, (make, expected) in FAULTS.items():
        kit = Kit()
        make(kit)
        lines = kit.lines()
        without_hint = [line.label for line in lines if line.state == "fail" and not line.hint]
        if kit.roots() != expected or ready(lines) or without_hint:
            wrong[fault] = kit.roots(), ready(lines), without_hint
        kit.collector = kit.collector or "none runs"
        if kit.roots() != expected | {"collector"}:
            wrong[f"{fault}, without a collector"] = kit.roots()
    assert wrong == {}


def test_every_line_there_is_has_a_fault_here():
    assert {label.partition(":")[0] for _, labels in FAULTS.values() for label in labels} == set(TITLES) - {"uploads"}


@given(st.sampled_from(["modems", "paths", "clock", "position", "health", "spool"]))
def test_what_an_older_collector_does_not_tell_fails_and_does_not_break(missing):
    kit = Kit()
    del kit.status[missing]
    assert not ready(kit.lines())


def test_handshakes_of_the_tunnel():
    key = "A" * 43 + "="
    for shown, fresh in ((f"{key}\t1100\n", True), (f"{key}\t1000\n", False), ("", False), ("nonsense\t1199", False)):
        assert handshakes(shown, 1200.0)[0] is fresh


def test_an_access_point_and_a_pin_are_named_with_what_sets_them():
    kit = Kit()
    kit.config = parse(CONFIG.replace("[runs]", '[path.modem.connection]\napn = "web.b"\n[runs]'), FILE)
    kit.nothing_over("b")
    kit.modem("a", state="no_service", rat=None, sim=NO_PIN)
    told = {line.label: line.hint or "" for line in kit.lines() if line.state == "fail"}
    assert told["data:b"].startswith(
        "is web.b the APN of this SIM? apn of path b in tandem_paths, or tandem_path_settings"
    )
    assert told["sim:a"].startswith("./kit fleet secret probe-1 secret_pin_a -i DIR, then the probe playbook")


def states(lines: list[Line]) -> dict[str, str]:
    return {line.label: line.state for line in lines}


def test_what_fails_because_of_another_line_is_told_as_that():
    lines = settled(
        [
            fails("data", "no", "?", "a", [[("path", "a")], [("server", None)]]),
            fails("path", "no", "?", "a", [[("registered", "a")]]),
            fails("registered", "no", "antenna", "a"),
            passes("server", "yes"),
        ]
    )
    assert states(lines) == {"registered:a": "fail", "path:a": "follows", "data:a": "follows", "server": "pass"}
    assert {line.label: line.because for line in lines if line.because} == {
        "path:a": (("registered", "a"),),
        "data:a": (("path", "a"),),
    }
    assert [line.label for line in lines] == ["registered:a", "path:a", "data:a", "server"]


def test_an_accepted_line_holds_nothing_up_and_two_that_blame_each_other_both_fail():
    lines = [fails("path", "no", "?", "a"), fails("data", "no", "?", "a", [[("path", "a")]]), passes("server", "yes")]
    assert not ready(settled(lines))
    accepted = settled(lines, ["path:a"])
    assert states(accepted) == {"path:a": "accepted", "data:a": "accepted", "server": "pass"}
    assert ready(accepted)
    assert not ready(settled([*lines, fails("gps", "no", "?")], ["path:a"]))
    lines = settled(
        [fails("clock", "no", "?", None, [[("server", None)]]), fails("server", "no", "?", None, [[("clock", None)]])]
    )
    assert states(lines) == {"clock": "fail", "server": "fail"}


LABELS = st.tuples(st.sampled_from(list(TITLES)), st.sampled_from([None, "a", "b"]))


@given(st.dictionaries(LABELS, st.lists(st.lists(LABELS, max_size=3), max_size=3), min_size=1, max_size=12))
def test_whatever_blames_whatever_something_is_left_to_mend(causes):
    lines = settled([fails(name, "no", "mend it", path, groups) for (name, path), groups in causes.items()])
    assert len(lines) == len(causes)
    assert any(line.state == "fail" for line in lines)
    for line in lines:
        assert (line.state == "follows") == bool(line.because)
        assert set(line.because) <= set(causes)


@given(
    st.text(max_size=60),
    st.one_of(
        st.ip_addresses(v=4),
        st.ip_addresses(v=6),
        st.from_regex(r"[0-9]{14,20}", fullmatch=True),
        st.from_regex(r"89[0-9]{16,18}", fullmatch=True),
    ),
    st.sampled_from([" ", ", ", " (", ": "]),
)
def test_no_address_and_no_identity_is_said(words, identity, between):
    shown = said(f"{words}{between}{identity} and more")
    assert str(identity) not in shown or len(str(identity)) < 5  # "::" may stand in any text
    assert re.search(r"[0-9]{14,}", shown) is None
    for word in re.split(r"[\s,()]+", shown):
        try:
            assert ipaddress.ip_address(word).version == 6
            assert len(word) < 5
        except ValueError:
            continue


def test_what_is_said_keeps_times_and_versions_and_is_one_harmless_line():
    for text in ("EC25 (quectel) at USB 1-1.2:1.3", "since 12:30:05", "6.12.34+rpt-rpi-v8, 0.1.0", "http://x:8443"):
        assert said(text) == text
    assert said("a\n\x1b[31mb\x00  c") == "a [31mb c"
    assert len(said("x" * 10_000)) == 300
