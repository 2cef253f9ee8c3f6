"""The probes' queues: pushed once, told of any number of times, withdrawn; by several processes."""

import pytest
from old_registry import WITH_FORMS, to_version

from tandem.schema.campaign_queue import MOST_QUEUED
from tandem_server.registry import QueueFull, Registry

HOW = {"form": "paper", "label": None, "paths": {}, "allow_substitutes": False}


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


def test_a_queue_of_before_keeps_its_forms(tmp_path):
    with Registry(tmp_path / "r.sqlite") as made:
        for probe, form in (("probe-1", "paper"), ("probe-2", "short")):
            made.probes.add(probe)
            made.campaigns.push([probe], "own", "own.toml", "t", priority=50, **{**HOW, "form": form})
        with made._write() as connection:
            to_version(connection, WITH_FORMS - 1)
    with Registry(tmp_path / "r.sqlite") as opened:
        assert [row.pushed.form for row in opened.campaigns.all()] == ["paper", "short"]


def test_a_full_queue_takes_no_more_for_anybody(registry):
    push(registry, *["probe-1"] * MOST_QUEUED)
    with pytest.raises(QueueFull, match="probe-1 has 100"):
        push(registry, "probe-2", "probe-1")
    assert registry.campaigns.of_probe("probe-2") == []
