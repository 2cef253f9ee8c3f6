"""A run that is steered: events and samples in, orders, records, manifest and what was learned out. Kernel and experiment are doubles."""

import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from doubles import FakePaths

from tandem.app.runs.steering import FILE, STEP_S, SteeredRun, SteeringPart, load_history
from tandem.cli.main import main
from tandem.experiment.base import MissingRequirementError
from tandem.mptcp.recovery import History
from tandem.schema.record import Record

NS = 1_000_000_000


def event(kind: str, path: str = "a", at_ns: int | None = None, **fields: Any) -> Record:
    return Record.make("event", {"kind": kind, "path": path, "operator": "A"}, fields, at_ns or time.monotonic_ns())


def sample(at_ns: int, a: int, b: int, **more: Any) -> dict[str, Any]:
    rows = [{"subflow": n, "path": p, "bytes_received": c, **more} for n, p, c in (("1", "a", a), ("2", "b", b))]
    return {"monotonic_ns": at_ns, "connection": {"bytes": a + b}, "subflows": rows}


class Bench:
    """One run with its orders; ``refusal``: what the kernel says to each."""

    def __init__(self, policy: str = "drop") -> None:
        self.paths, self.decided = FakePaths(), []
        self.run = SteeredRun(policy, ["a", "b"], History(), self.paths, lambda _path, d: self.decided.append(d))
        self.run.start()

    def end(self) -> list[tuple[str, str]]:
        self.run.stop()
        return [(d.path, d.action) for d in self.decided]


def test_a_drop_makes_the_path_backup_and_the_end_restores_it():
    bench = Bench()
    bench.run.noted(event("signal_drop", change_db=-9.0))
    bench.run.noted(event("mobility_start", change_db=9.0))
    assert bench.end() == [("a", "backup"), ("a", "restore")]
    assert bench.paths.orders == [("a", True, False), ("a", False, False)]
    told = bench.run.as_json()
    assert (told["policy"], [d["action"] for d in told["decisions"]]) == ("drop", ["backup", "restore"])
    assert [(e["kind"], e["change_db"]) for e in told["events"]] == [("signal_drop", -9.0)]


def test_an_order_that_the_kernel_refuses_is_told_and_the_run_goes_on():
    bench = Bench()

    def refuse(name: str, backup: bool, *, again: bool = False) -> None:
        raise MissingRequirementError(f"{name} {backup} {again}: not permitted; hint: NET_ADMIN")

    bench.paths.set_backup = refuse
    bench.run.noted(event("signal_drop", change_db=-9.0))
    bench.run.noted(event("signal_drop", "b", change_db=-9.0))
    assert bench.end() == [("a", "refused"), ("b", "refused")]


def test_samples_that_are_none_do_no_harm():
    bench = Bench("off")
    for broken in (
        {},
        {"monotonic_ns": True, "subflows": []},
        {"monotonic_ns": 1, "connection": [], "subflows": ["x", {"path": ["a"]}, {"path": "a", "bytes_received": "9", "rcv_rtt_ms": "1"}]},
        sample(10**30, 5, 5),
        sample(10**400, 5, 5),
    ):  # fmt: skip
        bench.run.sampled(broken)
    begun = bench.run.begin_ns
    bench.run.sampled(sample(begun + NS // 10, 100, 10, rcv_rtt_ms=40.0))
    bench.run.sampled(sample(begun + NS // 10 + 1, 150, 10, rcv_rtt_ms=60.0))
    bench.end()
    told = bench.run.as_json()
    assert (told["rtt_ms"], told["step_s"]) == ({"a": [60.0], "b": [60.0]}, STEP_S)
    assert json.loads(json.dumps(told, allow_nan=False)) == told


def test_a_long_run_is_told_in_longer_steps():
    bench = Bench("off")
    begun = bench.run.begin_ns
    for n in range(2000):
        bench.run.sampled(sample(begun + n * NS, n * 100, n * 10, rcv_rtt_ms=40.0))
    bench.end()
    told = bench.run.as_json()
    assert told["step_s"] == 4 * STEP_S
    assert sum(told["received_bytes"]["a"]) == 1999 * 100
    assert len(told["received_bytes"]["a"]) <= 1200
    assert set(told["rtt_ms"]["b"]) == {40.0}


def part(folder: Path) -> SteeringPart:
    return SteeringPart(SimpleNamespace(folder=folder, paths=()), FakePaths(), lambda _records: None)


def steady_run(made: SteeringPart, experiment: str) -> dict[str, Any]:
    """Sixty seconds of samples; after ten path a drops for four."""
    run = made.begin("off", experiment, ["a", "b"])
    begun, a = run.begin_ns, 0
    made.noted(event("signal_drop", at_ns=begun + 10 * NS, change_db=-9.0, speed_class="low"))
    for n in range(600):
        a += 0 if 100 <= n < 140 else 1000
        run.sampled(sample(begun + n * NS // 10, a, n * 1000))
    return made.end(run)


def test_a_download_that_was_left_alone_teaches_and_a_player_does_not(tmp_path):
    made = part(tmp_path)
    told = steady_run(made, "dash")
    assert [e["kind"] for e in told["events"]] == ["signal_drop"]
    assert not (tmp_path / FILE).exists()
    steady_run(made, "download")
    (row,) = load_history(tmp_path / FILE).rows()
    assert (row["class"], row["seen"], row["seen_alone"]) == ("signal_drop/9 dB/low", 1, 1)
    assert steady_run(made, "download")["history"].keys() == {"signal_drop/9 dB/low"}
    assert load_history(tmp_path / FILE).rows()[0]["seen"] == 2
    assert {file.name for file in tmp_path.iterdir()} == {FILE}


def test_a_broken_history_is_replaced_by_what_is_learned_next(tmp_path, caplog):
    (tmp_path / FILE).write_text('{"format": "tandem-steer')
    steady_run(part(tmp_path), "download")
    assert "begins anew" in caplog.text
    assert load_history(tmp_path / FILE).rows()[0]["seen"] == 1


# --- the commands -----------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def recorded(tmp_path):
    """A probe's folder with one run under ``off`` and one by TCP."""
    steering = steady_run(part(tmp_path), "download")
    steering["rtt_ms"] = {"a": [200.0 if 20 <= n < 28 else 50.0 for n in range(120)], "b": [50.0] * 120}
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs/run-1.json").write_text(json.dumps({"id": "run-1", "steering": steering}))
    (tmp_path / "runs/run-2.json").write_text(json.dumps({"id": "run-2"}))
    return tmp_path


def test_recorded_runs_are_played_to_every_policy(recorded, capsys):
    assert main(["steering", "simulate", str(recorded), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert "estimate" in told["estimate"]
    assert [one.split(":")[0] for one in told["left_out"]] == ["run-2.json"]
    by_policy = {row["policy"]: row for row in told["overall"]}
    assert {p: row["backup"] for p, row in by_policy.items()} == {"off": 0, "drop": 1, "handover": 0, "learned": 1}
    a = by_policy["drop"]["paths"]["a"]
    assert a["backup_s"] == pytest.approx(7.0)
    assert a["estimated_foregone_bytes"] == pytest.approx(30_000, abs=1_000)  # three of seven seconds
    assert (a["rtt_peak_s"], a["estimated_avoided_rtt_peak_s"]) == (pytest.approx(4.0), pytest.approx(4.0))
    assert by_policy["drop"]["paths"]["b"]["backup_s"] == 0
    decisions = told["runs"][0]["policies"]["drop"]["decisions"]
    assert [(d["action"], d["at_s"]) for d in decisions] == [("backup", 10.0), ("restore", 17.0)]
    assert main(["steering", "simulate", str(recorded), "--policy", "drop"]) == 0
    assert "1 orders" in capsys.readouterr().out


def test_what_was_learned_is_shown(recorded, capsys):
    assert main(["steering", "history", "--file", str(recorded / FILE)]) == 0
    assert "signal_drop/9 dB/low" in capsys.readouterr().out
    assert main(["steering", "history", "--file", str(recorded / FILE), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["classes"][0]["seen"] == 1
    assert main(["steering", "history", "--file", str(recorded / "none")]) == 0
    assert "nothing was learned yet" in capsys.readouterr().out


def test_a_folder_without_runs_and_a_broken_history_are_refused_in_one_line(recorded, tmp_path_factory, capsys):
    empty = tmp_path_factory.mktemp("empty")
    (empty / "h.json").write_text("{")
    cases = [
        ["simulate", str(empty)],
        ["simulate", str(empty / "none")],
        ["simulate", str(recorded), "--history", str(empty / "none")],
        ["simulate", str(recorded), "--history", str(empty / "h.json")],
        ["history", "--file", str(empty / "h.json")],
    ]
    for words in cases:
        assert main(["steering", *words]) == 2
        error = capsys.readouterr().err
        assert (error.count("\n"), "hint: " in error) == (1, True), error


@pytest.mark.parametrize("actions", [["confirmed"], ["toggled", "confirmed"], ["toggled"] * 3 + ["unconfirmed"]])
def test_what_the_path_receives_confirms_the_order_or_repeats_it(actions):
    bench = Bench()
    bench.run.noted(event("service_lost", state="no_service"))  # of no predicted end: what is received decides alone
    begun = time.monotonic_ns()
    for n in range(400):  # forty seconds
        # Nothing more comes; or until the order is given again; or whatever is ordered.
        received = {1: 0, 2: 900 * min(n, 45), 4: 900_000 * n}[len(actions)]
        bench.run.sampled(sample(begun + n * NS // 10, received, n * 9000))
    assert [action for path, action in bench.end() if path == "a"] == ["backup", *actions, "restore"]
    assert len([order for order in bench.paths.orders if order[2]]) == actions.count("toggled")
