"""A campaign in a running collector, with doubles: begun over the status socket by movement and by hand, and told in manifests."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from doubles import Rehearsal, manifests, points
from good_config import GOOD

from tandem.app.daemon.status_socket import ask
from tandem.cli.main import main
from tandem.schema.record import Record

HEAD = """\
format = "tandem-campaign-file/1"
name = "own"
title = "t"
roles = ["left", "right"]
"""
STEP = """
[[step]]
name = "told"
experiment = "download"
repetitions = 2
[step.parameters]
kind = "tcp"
path = "right"
bytes = 1000
[step.trigger]
"""
ONCE = HEAD + STEP.replace("repetitions = 2", "repetitions = 1")
MOVED = f"""{HEAD}
[requires]
scheduler = "minsrtt"
[[step]]
name = "moved"
experiment = "download"
[step.parameters]
pairing = "sequential"
bytes = 1000
pause_s = 0
[step.trigger]
on = "mobility_start"
within_s = 300
{STEP}
on = "hand"
labels = ["walking"]
"""
INSTEAD = {"scheduler": {"asked": "minsrtt", "used": "stock"}}


def asked(folder: Path, **request: Any) -> dict[str, Any]:
    (answer,) = ask(folder / "status.sock", {"op": "campaign", **request}, 60.0)
    return answer


def begin(folder: Path, text: str = MOVED, **more: Any) -> dict[str, Any]:
    steps = ["moved", "told"]
    return asked(folder, action="begin", text=text, file="own.toml", steps=steps, substitutes=INSTEAD, **more)


@pytest.fixture
def collector(tmp_path, gateway):
    made = Rehearsal(tmp_path, gateway).start()
    yield made
    made.stop()


def test_movement_begins_the_campaigns_run_and_none_of_the_collectors_own(collector, tmp_path, gateway):
    assert begin(tmp_path, paths={"left": "b"})["campaign"]["paths"] == {"left": "b", "right": "a"}
    collector.pollers["a"].poll(-95.0)
    collector.pollers["a"].poll(-70.0)  # moving
    gateway.until(lambda: len(gateway.manifests) == 3)
    campaigns = collector.supervisor.campaigns.campaigns
    collector.until(lambda: campaigns.status()["runs"] == {"ok": 1})
    found = manifests(tmp_path)
    brief = collector.supervisor.service.status()["campaign"]
    assert [brief[key] for key in ("name", "state", "made", "of")] == ["own", "waiting", 1, 3]
    assert {(m["trigger"], m["campaign"]["step"]) for m in found} == {("campaign", "moved")}
    assert all(m["campaign"]["substituted"] == INSTEAD and gateway.manifests[m["id"]] == m for m in found)
    assert asked(tmp_path, action="status")["campaign"]["steps"]["moved"] == {"made": 1, "of": 1}
    gateway.until(lambda: sum(p.measurement == "run" for p in points(gateway)) == 3)
    assert {p.tags.get("campaign") for p in points(gateway) if p.measurement in ("run", "run_begun")} == {"own"}


@pytest.mark.usefixtures("collector")
def test_by_hand_with_a_label_over_the_socket(tmp_path, gateway):
    begin(tmp_path)
    assert "'swimming' is none of walking" in asked(tmp_path, action="tell", label="swimming")["reason"]
    begin(tmp_path, label="walking")  # the same campaign is under way: told
    gateway.until(lambda: len(gateway.manifests) == 1)
    (made,) = manifests(tmp_path)
    assert (made["campaign"]["label"], made["paths"], made["campaign"]["number"]) == ("walking", ["b"], 0)
    assert "under way" in begin(tmp_path)["reason"]
    assert asked(tmp_path, action="stop") == {"type": "campaign", "stopped": "own"}


@pytest.mark.usefixtures("collector")
def test_what_cannot_be_is_refused_and_the_collector_lives(tmp_path):
    refused = [
        ({"action": "jump"}, "action is none of"),
        ({"action": "begin", "text": 5}, "begin needs text"),
        ({"action": "begin", "text": "x", "file": "f.toml", "steps": []}, "f.toml:1: no TOML"),
        ({"action": "begin", "text": MOVED, "file": "f", "steps": [], "paths": {"left": "z"}}, "'z' is no path"),
        ({"action": "tell", "label": 5}, "label is no text"),
        ({"action": "tell", "label": "x"}, "no campaign is under way"),
    ]
    answers = [(asked(tmp_path, **request), reason) for request, reason in refused]
    assert [(a, reason) for a, reason in answers if a["type"] != "refused" or reason not in a["reason"]] == []
    assert asked(tmp_path, action="status")["campaign"] is None


def moved(kind: str) -> Record:
    return Record.make("event", {"kind": kind, "path": "a"}, {"detail": "x"}, time.monotonic_ns())


@pytest.mark.parametrize(
    ("trigger", "waits"),
    [
        ('on = "event"\nevent = "handover"\nwithin_s = 600', "waits for handover"),
        ('on = "place"\nlatitude_deg = 60.2\nlongitude_deg = 24.9\nradius_m = 500', "where the probe is is not known"),
        ('on = "speed_class"\nspeed_class = "low"', "waits for speed class low"),
    ],
)
def test_each_trigger_begins_a_run_of_the_running_collector(collector, tmp_path, trigger, waits):
    """Those that wait for something that happens; the others go by the clock alone, as the scheduler's own tests have it."""
    asked(tmp_path, action="begin", text=ONCE + trigger, file="t.toml", steps=["told"])
    campaigns = collector.supervisor.campaigns.campaigns
    collector.until(lambda: waits in campaigns.status().get("said", ""))
    told = moved("handover")
    if "place" in trigger:
        told = Record.make("position", {}, {"latitude_deg": 60.2001, "longitude_deg": 24.9001}, time.monotonic_ns())
    elif "speed" in trigger:
        told, collector.detectors.speed_class = moved("mobility_start"), "low"
        collector.detectors.mobile_since_ns = time.monotonic_ns()
    collector.supervisor.main_loop.put([told])
    collector.until(lambda: campaigns.status()["runs"] == {"ok": 1})
    assert {m["campaign"]["name"] for m in manifests(tmp_path)} >= {"own"}


def test_idle_while_nothing_is_measured_and_held_while_something_is(tmp_path, gateway, capsys, monkeypatch):
    collector = Rehearsal(tmp_path, gateway, "long")
    (tmp_path / "config.toml").write_text(GOOD)
    config = ["--config", str(tmp_path / "config.toml")]
    monkeypatch.setattr("tandem.app.config.load", lambda _file: collector.config)
    assert main(["campaign", "idle", *config, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"held": None, "collector": False}
    collector.start()
    try:
        assert main(["campaign", "idle", *config]) == 0
        asked(tmp_path, action="begin", text=ONCE + 'on = "always"', file="t.toml", steps=["told"])
        collector.until(lambda: collector.supervisor.scheduler.running)
        capsys.readouterr()
        assert main(["campaign", "idle", *config, "--json"]) == 1
        assert json.loads(capsys.readouterr().out)["held"].startswith("campaign own: ")
        assert collector.supervisor.exporter.held()
        collector.supervisor.scheduler.stop()
        collector.until(lambda: not collector.supervisor.scheduler.running)
        assert main(["campaign", "idle", *config, "--wait", "60"]) == 0
    finally:
        collector.stop()
