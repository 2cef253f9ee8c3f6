"""The ledger's running sums: a registry of before gets them, and several processes may open it meanwhile."""

import io
import sqlite3
import subprocess
import sys

import pytest
from old_registry import to_version

from tandem.schema.trace import offer_of
from tandem_server.registry import JudgedRun, Registry

BEFORE = 5


def old(file):
    """Two runs, a session of one of them and one of a run that never came, and a trace, as the version before left them."""
    with Registry(file) as registry:
        registry.probes.add("probe-1")
        for number in (1, 2):
            registry.runs.put(f"run-{number}", "probe-1", {"kind": "mptcp", "result": {"bytes": 1}})
        registry.sessions.open("probe-1", "run-1", "mptcp", 1, 60)
        registry.sessions.open("probe-1", "run-lone", "mptcp", 1, 60)
    connection = sqlite3.connect(file)
    with connection:
        to_version(connection, BEFORE)
        connection.execute(
            "INSERT INTO traces VALUES ('probe-1', 'captures/x', 'run-1', 'aa', 7, 1, 'probe-1/captures/x', 'identity', 5)"
        )
    connection.close()


def test_a_registry_of_before_has_every_run_to_be_looked_at(tmp_path):
    old(tmp_path / "r.sqlite")
    with Registry(tmp_path / "r.sqlite") as registry:
        (one,) = registry.ledger_runs.sums()
        assert (one.probe, one.campaign, one.state, one.runs) == ("probe-1", "", "uncounted", 3)
        due = registry.ledger_runs.due(1, 10)
        assert {row.run for row in due} == {"run-1", "run-2", "run-lone"}
        assert registry.traces.sums() == {"probe-1": (1, 7, 5)}
        done = [
            JudgedRun("probe-1", row.run, row.touched, "c", "complete", False, 4, 4, 1, 1, False, False, 9, 0, None)
            for row in due
        ]
        registry.ledger_runs.keep(done)
        (one,) = registry.ledger_runs.sums()
        assert (one.campaign, one.state, one.runs) == ("c", "complete", 3)
        assert (one.records_arrived, one.files_received) == (12, 3)


def test_several_processes_open_an_old_one_at_once(tmp_path):
    old(tmp_path / "r.sqlite")
    program = "import sys; from pathlib import Path; from tandem_server.registry import Registry; Registry(Path(sys.argv[1])).close()"
    started = [subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "r.sqlite")]) for _ in range(3)]
    assert [one.wait(180) for one in started] == [0, 0, 0]
    with Registry(tmp_path / "r.sqlite") as registry:
        assert sum(one.runs for one in registry.ledger_runs.sums()) == 3


def test_what_happened_while_a_run_was_judged_is_not_lost(tmp_path):
    with Registry(tmp_path / "r.sqlite") as registry:
        registry.probes.add("probe-1")
        registry.runs.put("run-1", "probe-1", {"kind": "mptcp"})
        (row,) = registry.ledger_runs.due(1, 10)
        registry.runs.put("run-1", "probe-1", {"kind": "tcp"})  # another promise, meanwhile
        judged = JudgedRun("probe-1", "run-1", row.touched, "", "complete", False, 1, 1, 0, 0, False, False, 9, 0, None)
        registry.ledger_runs.keep([judged])
        assert [one.state for one in registry.ledger_runs.sums()] == ["uncounted"]
        (again,) = registry.ledger_runs.due(1, 10)
        assert again.touched > row.touched


def test_the_hand_out_checks_session_is_no_run(tmp_path):
    with Registry(tmp_path / "r.sqlite") as registry:
        registry.probes.add("probe-1")
        for run in ("preflight", "run-1"):
            registry.sessions.open("probe-1", run, "any", 1, 60)
        assert [one.run for one in registry.sessions.lone()] == ["run-1"]
        assert [one.run for one in registry.ledger_runs.due(1, 10)] == ["run-1"]
        assert [one.run for one in registry.sessions.all()] == ["preflight", "run-1"]


@pytest.mark.parametrize("version", [1, 2, 7])
def test_a_registry_of_any_version_gets_what_it_lacks(tmp_path, version):
    file = tmp_path / "r.sqlite"
    with Registry(file) as made:
        token = made.probes.add("probe-1")
        with made._write() as connection:
            to_version(connection, version)
    with Registry(file) as opened:
        assert opened.probes.of_token(token) == "probe-1"
        assert opened.enrolments.all() == opened.campaigns.all() == opened.traces.received() == []
        assert opened.enrolments.invite("probe-2", 60, None).code
        how = {"form": "paper", "label": None, "paths": {}, "allow_substitutes": False, "priority": 1}
        assert opened.campaigns.push(["probe-1"], "own", "own.toml", "t", **how)
        offer = offer_of(io.BytesIO(b"packets"), "a.pcap", None, "identity", 4096)
        opened.trace_offers.offer("probe-1", offer, 10)
        row = opened.trace_offers.finish("probe-1", offer, "probe-1/a.pcap", "identity", offer.bytes)
        assert opened.traces.received() == [row]
