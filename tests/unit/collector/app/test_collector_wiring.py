"""The collector as a whole, with doubles for modems, kernel and experiment: records, status, disks, starts and ends."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from doubles import Rehearsal, account, kinds, points
from good_config import good

from tandem.app.config_schema import PathConfig, RecoveryConfig, RoundTripConfig
from tandem.app.daemon import modems
from tandem.app.daemon.modems import ModemActions, modem_poller
from tandem.app.daemon.status import StatusModel
from tandem.app.daemon.status_socket import ask
from tandem.app.daemon.supervisor import Supervisor
from tandem.app.runs.executor import RunScheduler
from tandem.app.runs.request import Plan, PlannedRun, RunRequest
from tandem.cli.view.text import summary
from tandem.experiment.base import MissingRequirementError
from tandem.modem.reset import ALL_STEPS, CannotStepError, UsbPlace
from tandem.mptcp.paths import PathEvent
from tandem.schema.record import Record
from tandem.spool import Spool, SpoolFullError


def test_polls_become_records_in_the_database_and_the_account_adds_up(tmp_path, gateway):
    collector = Rehearsal(tmp_path, gateway).start()
    for n in range(5):
        collector.pollers["a"].poll(-95.0 - n)
        collector.pollers["b"].poll(None, failure="no_answer", late_ns=150_000_000 if n == 2 else 0)
    gateway.until(lambda: sum(p.measurement == "radio" for p in points(gateway)) == 10)
    assert collector.stop()
    found = points(gateway)
    counts = Counter(p.measurement for p in found)
    assert counts["radio"] == 10
    assert counts["health"] >= 1
    assert counts["usage"] >= 2
    assert kinds(gateway) == {"collector_start": 1, "collector_stop": 1, "path_up": 1, "path_down": 1}
    assert sorted(gateway.lines) == list(range(1, len(found) + 1))
    told = account(tmp_path)
    assert told["records"]["made"] == told["records"]["sent"] == len(found)
    assert told["records"]["pending"] == 0
    assert told["records"]["by_measurement"] == counts
    assert told["polls"]["a"]["made"] == 5
    assert told["polls"]["b"] == {
        "made": 5, "late": 1, "failed": 5, "skipped": 0, "late_ms_p50": 0.0, "late_ms_p99": 150.0, "late_ms_max": 150.0,
    }  # fmt: skip
    assert told["usage"]["a"]["control_bytes"] > 0
    assert collector.paths.removed
    assert all(p.stopped for p in collector.pollers.values())
    assert not (tmp_path / "status.sock").exists()


def test_round_trips_are_off_and_where_they_are_on_their_records_go_the_way_of_all(tmp_path, gateway):
    off = Rehearsal(tmp_path / "off", gateway)
    assert off.config.round_trip.enabled is False
    collector = Rehearsal(tmp_path / "on", gateway)
    collector.rewired(replace(collector.config, round_trip=RoundTripConfig(enabled=True, period_s=0.2))).start()
    answers = collector.supervisor.service
    collector.until(lambda: answers.status()["round_trips"]["b"]["outcome"] == "unserved")  # no endpoint here
    collector.pollers["a"].poll(-70.0)  # a run begins
    assert collector.stop()
    found = [p for p in points(gateway) if p.measurement == "round_trip"]
    told = {(p.tags["path"], p.tags["operator"], p.fields["outcome"]) for p in found}
    assert told == {("a", "A", "unserved"), ("b", "B", "unserved")}
    assert "rtt_ms" not in found[0].fields


def test_a_full_disk_stops_no_poll_and_loses_nothing_while_memory_lasts(tmp_path, gateway, monkeypatch, caplog):
    collector = Rehearsal(tmp_path, gateway).start()
    append, full, refused = Spool.append, [True], []

    def refusing(self: Spool, records: list[Record], dropped: int = 0) -> None:
        if full[0]:
            refused.append(len(records))
            raise SpoolFullError("/x: disk is full; hint: free disk space")
        append(self, records, dropped)

    monkeypatch.setattr(Spool, "append", refusing)
    for n in range(50):
        collector.pollers["a"].poll(-95.0 - n % 5)
    collector.until(lambda: collector.supervisor.service.status()["trouble"] is not None)
    assert "disk is full" in collector.supervisor.service.status()["trouble"]
    collector.until(lambda: collector.supervisor.service.status()["polls"]["made"] == 50)
    before = len(refused)
    collector.until(lambda: len(refused) > before + 1)  # one more commit that fails must not be one more line
    full[0] = False
    gateway.until(lambda: sum(p.measurement == "radio" for p in points(gateway)) == 50)
    assert collector.stop()
    assert len([r for r in caplog.records if "free disk space" in r.message]) == 1
    assert account(tmp_path)["records"]["dropped"] == 0


def test_a_disk_that_cannot_be_read_ends_no_measuring(tmp_path, gateway, monkeypatch):
    def refusing(_self: Spool) -> int:
        raise SpoolFullError("/x: disk I/O error; hint: free disk space")

    monkeypatch.setattr(Spool, "used_bytes", refusing)
    collector = Rehearsal(tmp_path, gateway).start()
    collector.pollers["a"].poll(-95.0)
    gateway.until(lambda: {"radio", "health"} <= {p.measurement for p in points(gateway)})
    told = next(p for p in points(gateway) if p.measurement == "health").fields
    assert "spool_bytes" not in told
    assert told["spool_limit_bytes"] == collector.config.spool_limit_bytes
    assert collector.stop()


def test_what_the_machine_lacks_stops_the_start_and_leaves_nothing_behind(tmp_path, gateway):
    collector = Rehearsal(tmp_path, gateway)
    collector.paths.refusal = "ip rule add: Operation not permitted; hint: run as root"
    with pytest.raises(MissingRequirementError, match="hint: run as root"):
        collector.supervisor.start()
    assert not (tmp_path / "status.sock").exists()
    Spool(tmp_path / "spool", "boot").close()  # its lock is free again


def test_two_collectors_in_one_folder_are_one_too_many(tmp_path, gateway):
    collector = Rehearsal(tmp_path, gateway).start()
    second = Supervisor(collector.config, collector.hardware)
    with pytest.raises(MissingRequirementError, match="another collector"):
        second.start()
    (status,) = ask(tmp_path / "status.sock", {"op": "status"})  # the first still answers
    assert status["probe"] == "probe-1"
    collector.stop()


def test_the_status_tells_what_people_want_to_know(tmp_path, gateway):
    collector = Rehearsal(tmp_path, gateway, "long").start()
    (before,) = ask(tmp_path / "status.sock", {"op": "status"})
    collector.detectors.speed_class = "high"
    collector.pollers["a"].poll(-70.0)
    collector.pollers["b"].poll(None, failure="port_lost")
    collector.until_sampled()
    # The run comes of the first poll alone.
    collector.until(lambda: collector.supervisor.service.status()["modems"]["b"]["state"] is not None)
    (status,) = ask(tmp_path / "status.sock", {"op": "status"})
    assert (before["speed_class"], status["speed_class"], status["mobile"]) == (None, "high", True)
    assert status["mobile_since_s"] >= 0
    assert "(driving)" in summary(status)
    modems = status["modems"]
    assert (modems["a"]["rsrp_dbm"], modems["a"]["history_rsrp_dbm"]) == (-70.0, [-70.0])
    assert (modems["b"]["state"], modems["b"]["history_rsrp_dbm"]) == ("port_lost", [None])
    assert status["run"]["of"] == 3
    (run,) = status["run"]["runs"]
    assert run["subflows"][0]["history_bit_per_s"] == [8000, 8000, 8000]
    assert "mobility_start" in [e["kind"] for e in status["events"]]
    assert collector.stop()
    assert [p.fields.get("speed_class") for p in points(gateway) if p.measurement == "health"][-1] == "high"


def test_states_of_paths_are_shown_and_their_changes_become_events(tmp_path, gateway):
    collector = Rehearsal(tmp_path, gateway)
    collector.paths.changes = [
        PathEvent("path_state", "b", "eth2 has 192.168.8.100, as path a", state="colliding"),
        PathEvent("subflow_restored", "b", "after 21 ms", took_ms=21.5),
    ]
    collector.start()
    (status,) = ask(tmp_path / "status.sock", {"op": "status"})
    assert status["paths"]["a"]["state"] == "up"
    collector.paths.wake()
    gateway.until(lambda: kinds(gateway)["subflow_restored"] == 1)
    assert collector.stop()
    told = {p.tags["kind"]: p for p in points(gateway) if p.measurement == "event"}
    assert told["path_state"].fields["state"] == "colliding"
    assert told["path_state"].tags["path"] == "b"
    assert told["subflow_restored"].fields["took_ms"] == 21.5


# --- the ladder wired into the collector: a silent modem's steps, its recovery and its giving up reach the database as events


class Actions:
    """Only ``possible`` can be done here."""

    def __init__(self, *possible: str, meanwhile: Callable[[], None] = lambda: None) -> None:
        self.possible, self.meanwhile = possible, meanwhile
        self.done: list[str] = []

    def seen(self) -> None:
        pass

    def do(self, step: str) -> str:
        self.done.append(step)
        self.meanwhile()
        if step not in self.possible:
            raise CannotStepError("no port")
        return "radio switched off and on"


def web(path: PathConfig) -> PathConfig:
    return replace(path, modem=replace(path.modem, port="http://192.168.8.1", usb=None))


def began_again(scheduler: RunScheduler) -> bool:
    try:
        return bool(scheduler.request("download", {}))
    except ValueError:
        return False


def test_no_run_begins_while_a_modem_is_interrupted_and_no_modem_is_while_a_run_goes_on(tmp_path, gateway):
    collector, refused = Rehearsal(tmp_path, gateway, "long"), []

    def measure() -> None:
        if collector.supervisor.scheduler.running:
            return
        with pytest.raises(ValueError, match="a modem is being recovered; try again when it has ended"):
            collector.supervisor.scheduler.request("download", {})
        refused.append(len(actions["a"].done))

    actions = {"a": Actions("cfun", meanwhile=measure), "b": Actions()}
    settings = RecoveryConfig(True, 0.2, ("at", "cfun"), 600.0)
    collector.rewired(replace(collector.config, recovery=settings), actions=lambda path, _poller: actions[path.name])
    collector.start()
    pair = collector.supervisor.service.request("download", {})
    collector.pollers["a"].poll(None, failure="no_answer")
    collector.until(lambda: actions["a"].done == ["at"])
    assert not collector.supervisor.scheduler.hold()
    collector.supervisor.scheduler.cancel(pair)
    collector.until(lambda: refused == [2])
    collector.until(lambda: began_again(collector.supervisor.scheduler))
    assert collector.stop()


def test_each_kind_of_modem_is_taken_up_its_own_ladder(tmp_path, gateway):
    actions = {"a": Actions(), "b": Actions()}
    collector = Rehearsal(tmp_path, gateway)
    paths = tuple(web(path) if path.name == "b" else path for path in collector.config.paths)
    config = replace(collector.config, paths=paths, recovery=RecoveryConfig(True, 0.2, ALL_STEPS, 600.0))
    collector.rewired(config, actions=lambda path, _poller: actions[path.name]).start()
    collector.pollers["a"].poll(None, failure="no_answer")
    collector.until(lambda: actions["a"].done == ["at", "cfun", "usb", "power"])
    collector.pollers["b"].poll(None, failure="busy")
    collector.until(lambda: actions["b"].done == ["session", "reboot", "usb", "power"])
    assert collector.stop()


# --- what the status object tells of a run's subflows, and of events


@pytest.fixture
def live(tmp_path):
    return StatusModel(good(file=tmp_path / "config.toml"), lambda ns: ns, lambda: None)


RUN = PlannedRun("run-1", "mptcp", ("a", "b"))


def begin(live: StatusModel, **more: Any) -> Plan:
    request = RunRequest("single", "campaign", 8.0, None, 0.0, "a", ("a", "b"), **more)
    plan = Plan("pair-1", request, 1, (RUN,))
    live.group_started(plan)
    live.run_started(plan, RUN)
    return plan


def sampled(live: StatusModel, *subflows: dict[str, Any]) -> list[dict[str, Any]]:
    told = [{"subflow": str(n), "path": p, **s} for n, (p, s) in enumerate(zip("ab", subflows, strict=False))]
    live.run_sampled(RUN, {"connection": {"bytes": 1}, "subflows": told})
    shown: list[dict[str, Any]] = live.status()["run"]["runs"][0]["subflows"]
    return shown


def test_shares_are_of_the_last_second_and_absent_while_nothing_comes(live):
    begin(live, campaign={"name": "cordero-2022", "step": "one"})
    assert live.status()["run"]["campaign"] == "cordero-2022"
    assert [s["share"] for s in sampled(live, {"goodput_bit_per_s": 0.0}, {"goodput_bit_per_s": 0.0})] == [None, None]
    assert [s["share"] for s in sampled(live, {"goodput_bit_per_s": 3e6}, {"goodput_bit_per_s": 1e6})] == [0.75, 0.25]
    for _ in range(10):
        shown = sampled(live, {"goodput_bit_per_s": 1e6}, {"goodput_bit_per_s": 3e6})
    assert [s["share"] for s in shown] == [0.25, 0.75]


def test_the_rtt_is_that_of_the_end_which_knows_it(live):
    begin(live)
    for fields, rtt_ms in (
        ({"bytes_received": 9000, "bytes_sent": 100, "rtt_ms": 21.0, "rcv_rtt_ms": 84.5}, 84.5),
        ({"bytes_received": 100, "bytes_sent": 9000, "rtt_ms": 21.0, "rcv_rtt_ms": 84.5}, 21.0),
        ({"bytes_received": 9000, "bytes_sent": 100, "rtt_ms": 21.0}, None),
        ({"bytes_received": 9000, "rcv_rtt_ms": "hostile"}, None),
    ):
        (shown,) = sampled(live, fields)
        assert shown["rtt_ms"] == rtt_ms


def test_an_event_keeps_its_state(live):
    live.happened(Record.make("event", {"kind": "undervoltage"}, {"state": "ends", "detail": "was: low"}, 5))
    (event,) = live.status()["events"]
    assert (event["kind"], event["state"], event["detail"]) == ("undervoltage", "ends", "ends, was: low")


def test_a_web_server_is_reset_where_its_network_interface_is(tmp_path, monkeypatch):
    asked: list[str] = []

    def place(port: str) -> UsbPlace:
        asked.append(port)
        return UsbPlace("1-1.4")

    monkeypatch.setattr(modems, "usb_place", place)
    monkeypatch.setattr(modems, "usb_reset", lambda found: f"{found.path} reset")
    path = web(good(file=tmp_path / "c.toml").paths[1])
    poller = modem_poller(path, 1.0, lambda _thing: None, lambda _path: None)
    try:
        assert ModemActions(path, poller).do("usb") == "1-1.4 reset"
        assert ModemActions(replace(path, interface=None, usb="1-1.4:1.0"), poller).do("usb") == "1-1.4 reset"
    finally:
        poller.stop()
    assert asked == [path.interface, "1-1.4"]
