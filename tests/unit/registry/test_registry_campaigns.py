"""The probes' queues: pushed once, told of any number of times, withdrawn; by several processes."""

import sqlite3
import subprocess
import sys

import pytest
from old_registry import to_version

from tandem.schema.campaign_queue import MOST_QUEUED, Report
from tandem_server.registry import QueueFull, Registry

HOW = {"short": False, "label": None, "paths": {}, "allow_substitutes": False}


@pytest.fixture
def registry(tmp_path):
    with Registry(tmp_path / "registry.sqlite") as opened:
        opened.probes.add("probe-1")
        opened.probes.add("probe-2")
        yield opened


def push(registry, *probes, name="own", priority=50, text="t"):
    return registry.campaigns.push(probes or ["probe-1"], name, f"{name}.toml", text, priority=priority, **HOW)


def states(registry):
    return [row.state for row in registry.campaigns.all()]


def test_each_probe_has_its_own_row_and_its_queue_in_turn(registry):
    first, other = push(registry, "probe-1", "probe-2")
    (second,) = push(registry, priority=80, text=None)
    assert [one.id for one in registry.campaigns.of_probe("probe-1")] == [second.pushed.id, first.pushed.id]
    assert [one.id for one in registry.campaigns.of_probe("probe-2")] == [other.pushed.id]
    assert registry.campaigns.text(first.pushed.id, "probe-1") == ("t",)
    assert registry.campaigns.text(second.pushed.id, "probe-1") == (None,)
    assert registry.campaigns.text(first.pushed.id, "probe-2") is None


def test_reports_may_come_any_number_of_times_and_a_settled_one_stays(registry):
    (row,) = push(registry)
    campaign = row.pushed.id
    running = Report("running", None, {"s": {"made": 1, "of": 3}}, {"ok": 1})
    seen = [registry.campaigns.report(campaign, "probe-1", running) for _ in range(3)]
    assert seen[0] == seen[1] == seen[2]
    assert seen[0].progress == {"steps": {"s": {"made": 1, "of": 3}}, "runs": {"ok": 1}}
    registry.campaigns.report(campaign, "probe-1", Report("done"))
    assert registry.campaigns.report(campaign, "probe-1", running).state == "done"
    assert registry.campaigns.of_probe("probe-1") == []
    assert registry.campaigns.report(campaign, "probe-2", running) is None
    assert registry.campaigns.report("push-000000000000", "probe-1", running) is None


def test_a_queued_one_is_withdrawn_at_once_another_when_the_probe_says_so(registry):
    (queued,), (taken,), (done,) = push(registry), push(registry), push(registry)
    registry.campaigns.report(taken.pushed.id, "probe-1", Report("running"))
    registry.campaigns.report(done.pushed.id, "probe-1", Report("done"))
    registry.campaigns.withdraw([r.pushed.id for r in (queued, taken, done)])
    assert states(registry) == ["withdrawn", "running", "done"]
    assert [(one.id, one.withdraw) for one in registry.campaigns.of_probe("probe-1")] == [(taken.pushed.id, True)]
    # The probe took the first before it was withdrawn, and its word was late.
    late = registry.campaigns.report(queued.pushed.id, "probe-1", Report("taken"))
    assert (late.state, late.pushed.withdraw) == ("withdrawn", True)
    registry.campaigns.report(taken.pushed.id, "probe-1", Report("withdrawn"))
    assert states(registry) == ["withdrawn", "withdrawn", "done"]


def test_a_full_queue_takes_no_more_for_anybody(registry):
    push(registry, *["probe-1"] * MOST_QUEUED)
    with pytest.raises(QueueFull, match="probe-1 has 100"):
        push(registry, "probe-2", "probe-1")
    assert registry.campaigns.of_probe("probe-2") == []


def test_a_push_of_another_process_is_seen(registry):
    code = (
        "import sys; from pathlib import Path; from tandem_server.registry import Registry\n"
        "r = Registry(Path(sys.argv[1]))\n"
        "r.campaigns.push(['probe-1'], 'x', 'x.toml', 't', short=False, label=None, paths={}, allow_substitutes=False, priority=1)"
    )
    assert registry.campaigns.all() == []
    subprocess.run([sys.executable, "-c", code, str(registry.file)], check=True)
    assert states(registry) == ["queued"]


def test_a_registry_of_the_first_version_gets_the_table(tmp_path):
    file = tmp_path / "old.sqlite"
    with Registry(file) as made:
        token = made.probes.add("probe-1")
    with sqlite3.connect(file) as old:
        to_version(old, 1)
    with Registry(file) as opened:
        assert opened.probes.of_token(token) == "probe-1"
        push(opened)
        assert states(opened) == ["queued"]
