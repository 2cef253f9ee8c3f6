"""A campaign in a running collector, with doubles: begun over the status socket by movement and by hand, and told in manifests."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from doubles import Rehearsal, manifests
from https_gateway import Gateway

from tandem.app.status_socket import ask
from tandem.cli.main import main
from tandem.schema.campaign_queue import FORMAT, SETTLED, Pushed, queue_told
from tandem.schema.record import Record

MOVED = """\
format = "tandem-campaign-file/1"
name = "own"
title = "t"
roles = ["left", "right"]
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
within_s = 30
[[step]]
name = "told"
experiment = "download"
repetitions = 2
[step.parameters]
kind = "tcp"
path = "right"
bytes = 1000
[step.trigger]
on = "hand"
labels = ["walking"]
"""
INSTEAD = {"scheduler": {"asked": "minsrtt", "used": "stock"}}


def asked(folder: Path, **request: Any) -> dict[str, Any]:
    (answer,) = ask(folder / "status.sock", {"op": "campaign", **request}, 10.0)
    return answer


def begin(folder: Path, text: str = MOVED, **more: Any) -> dict[str, Any]:
    steps = ["moved", "told"]
    return asked(folder, action="begin", text=text, file="own.toml", steps=steps, substitutes=INSTEAD, **more)


@pytest.fixture
def collector(tmp_path: Path, gateway: Gateway):
    made = Rehearsal(tmp_path, gateway)
    made.start()
    yield made
    made.stop()


def test_movement_begins_the_campaigns_run_and_none_of_the_collectors_own(collector, tmp_path, gateway):
    answer = begin(tmp_path, paths={"left": "b"})
    assert answer["type"] == "campaign"
    assert answer["campaign"]["paths"] == {"left": "b", "right": "a"}
    collector.pollers["a"].poll(-95.0)
    collector.pollers["a"].poll(-70.0)  # moving
    gateway.until(lambda: len(gateway.manifests) == 3)
    campaigns = collector.supervisor.campaigns.campaigns
    collector.until(lambda: campaigns.status()["runs"] == {"ok": 1})
    found = manifests(tmp_path)
    assert {m["trigger"] for m in found} == {"campaign"}
    assert {m["campaign"]["step"] for m in found} == {"moved"}
    assert all(m["campaign"]["substituted"] == INSTEAD for m in found)
    assert all(gateway.manifests[m["id"]] == m for m in found)
    assert asked(tmp_path, action="status")["campaign"]["steps"]["moved"] == {"made": 1, "of": 1}


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
@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        ({"action": "jump"}, "action is none of"),
        ({"action": "begin", "text": 5}, "begin needs text"),
        ({"action": "begin", "text": "x", "file": "f.toml", "steps": []}, "f.toml:1: no TOML"),
        ({"action": "begin", "text": MOVED, "file": "f", "steps": [], "paths": {"left": "z"}}, "'z' is no path"),
        ({"action": "tell", "label": 5}, "label is no text"),
        ({"action": "tell", "label": "x"}, "no campaign is under way"),
    ],
)
def test_what_cannot_be_is_refused_and_the_collector_lives(tmp_path, request_, reason):
    answer = asked(tmp_path, **request_)
    assert answer["type"] == "refused"
    assert reason in answer["reason"]
    assert asked(tmp_path, action="status")["campaign"] is None


def test_it_is_gone_on_with_by_the_next_life(tmp_path, gateway):
    first = Rehearsal(tmp_path, gateway)
    first.start()
    begin(tmp_path)
    first.stop()
    second = Rehearsal(tmp_path, gateway)
    second.start()
    told = asked(tmp_path, action="status")["campaign"]
    second.stop()
    assert (told["name"], told["state"]) == ("own", "waiting")


TRIGGERED = """\
format = "tandem-campaign-file/1"
name = "triggered"
title = "t"
roles = ["left", "right"]
[[step]]
name = "s"
experiment = "download"
[step.parameters]
kind = "tcp"
path = "left"
bytes = 1000
[step.trigger]
"""


def around_now() -> str:
    """A span of the day, UTC, with an hour on both sides of now."""
    now = int(time.time() // 60) % 1440
    begin, end = (now - 60) % 1440, (now + 60) % 1440
    return f"{begin // 60:02}:{begin % 60:02}-{end // 60:02}:{end % 60:02}"


def record(kind: str, tags: dict[str, Any], fields: dict[str, Any]) -> Record:
    return Record.make(kind, tags, fields, time.monotonic_ns())


@pytest.mark.parametrize(
    ("trigger", "waits"),
    [
        ('on = "event"\nevent = "handover"\nwithin_s = 60', "waits for handover"),
        ('on = "place"\nlatitude_deg = 60.2\nlongitude_deg = 24.9\nradius_m = 500', "where the probe is is not known"),
        ('on = "speed_class"\nspeed_class = "low"', "waits for speed class low"),
        ('on = "window"\nbetween = "{now}"', None),
        ('on = "periodic"\nevery_s = 3600', None),
        ('on = "always"', None),
    ],
)
def test_each_trigger_begins_a_run_of_the_running_collector(collector, tmp_path, trigger, waits):
    text = TRIGGERED + trigger.replace("{now}", around_now())
    asked(tmp_path, action="begin", text=text, file="t.toml", steps=["s"])
    campaigns = collector.supervisor.campaigns.campaigns
    if waits is not None:
        collector.until(lambda: waits in campaigns.status().get("said", ""))
        if "event" in trigger:
            told = record("event", {"kind": "handover", "path": "a"}, {"detail": "x"})
        elif "place" in trigger:
            told = record("position", {}, {"latitude_deg": 60.2001, "longitude_deg": 24.9001})
        else:
            collector.detectors.speed_class = "low"
            told = record("event", {"kind": "mobility_start", "path": "a"}, {"detail": "x"})
            collector.detectors.mobile_since_ns = time.monotonic_ns()
        collector.supervisor.collector.put([told])
    collector.until(lambda: campaigns.status()["runs"] == {"ok": 1})
    assert {m["campaign"]["name"] for m in manifests(tmp_path)} >= {"triggered"}


def test_a_poisson_step_waits_its_drawn_gap_in_the_running_collector(collector, tmp_path):
    asked(tmp_path, action="begin", text=TRIGGERED + 'on = "poisson"\nmean_s = 5000', file="t.toml", steps=["s"])
    campaigns = collector.supervisor.campaigns.campaigns
    collector.until(lambda: "next start in " in campaigns.status().get("said", ""))


class Pushing:
    """What the gateway's double says of the queue: one campaign."""

    def __init__(self, gateway: Gateway, text: str, **more: Any) -> None:
        how = {"short": False, "label": None, "paths": {}, "allow_substitutes": True, "priority": 50, **more}
        self.one = Pushed("push-0123456789ab", "triggered", "t.toml", pushed_utc_ns=1, **how)
        self.text, self.reports = text, list[dict[str, Any]]()
        self.withdraw, self.raw = False, None
        gateway.queue = self.answer

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, Any, dict[str, str]]:
        if method == "PUT":
            self.reports.append(json.loads(body))
            return 200, {"ok": True, "withdraw": self.withdraw}, {}
        if self.raw is not None:
            return 200, self.raw, {}
        if path == "/v1/campaigns":
            settled = bool(self.reports) and self.reports[-1]["state"] in SETTLED
            return 200, queue_told([] if settled else [self.one]), {}
        return 200, {"format": FORMAT, "text": self.text}, {}

    @property
    def states(self) -> list[str]:
        return [report["state"] for report in self.reports]


@pytest.fixture
def pushed_to(tmp_path: Path, gateway: Gateway) -> Iterator[Any]:
    """Starts a collector to which something is pushed."""
    made: list[Rehearsal] = []

    def start() -> Rehearsal:
        made.append(Rehearsal(tmp_path, gateway))
        made[-1].start()
        return made[-1]

    yield start
    for one in made:
        one.stop()


def test_what_the_server_pushed_is_run_and_told(tmp_path, gateway, pushed_to):
    pushing = Pushing(gateway, TRIGGERED + 'on = "always"', priority=70)
    pushed_to()
    gateway.until(lambda: "done" in pushing.states)
    assert pushing.states[-1] == "done"
    assert pushing.reports[-1]["steps"] == {"s": {"made": 1, "of": 1}}
    (made,) = manifests(tmp_path)
    assert made["campaign"]["push"] == pushing.one.id
    told = asked(tmp_path, action="status")
    assert (told["campaign"]["push"], told["campaign"]["priority"], told["campaign"]["state"]) == (
        pushing.one.id,
        70,
        "done",
    )


def test_a_run_of_a_withdrawn_one_is_ended(tmp_path, gateway):
    pushing = Pushing(gateway, TRIGGERED.replace("bytes = 1000", "seconds = 3600") + 'on = "always"')
    collector = Rehearsal(tmp_path, gateway, "long")
    collector.start()
    try:
        gateway.until(lambda: "running" in pushing.states)
        collector.until(lambda: collector.supervisor.pairs.running)
        pushing.withdraw = True
        pushing.one = Pushed(**{**{f: getattr(pushing.one, f) for f in pushing.one.__slots__}, "withdraw": True})
        collector.supervisor.campaigns._queue.soon()
        gateway.until(lambda: "withdrawn" in pushing.states)
        assert not collector.supervisor.pairs.running
        (made,) = manifests(tmp_path)
        assert made["failure"]["reason"] == "stopped"
    finally:
        collector.stop()


@pytest.mark.parametrize(
    "raw",
    [{"format": FORMAT, "campaigns": "no"}, [], {"format": FORMAT, "campaigns": [{"id": "../x"}]}, "x" * 5_000_000],
)
def test_a_server_that_says_nonsense_is_one_line_and_the_collector_lives(tmp_path, gateway, pushed_to, caplog, raw):
    pushing = Pushing(gateway, "")
    pushing.raw = raw
    collector = pushed_to()
    queue = lambda: asked(tmp_path, action="status")["queue"]  # noqa: E731
    collector.until(lambda: queue()["trouble"] is not None)
    assert "cannot be used" in queue()["trouble"]
    (line,) = [r.getMessage() for r in caplog.records if "queue of campaigns" in r.getMessage()]
    assert len(line) < 500


def test_idle_while_nothing_is_measured_and_held_while_something_is(tmp_path, gateway, capsys, monkeypatch):
    collector = Rehearsal(tmp_path, gateway, "long")
    (tmp_path / "config.toml").write_text((Path(__file__).parent / "good.toml").read_text())
    config = ["--config", str(tmp_path / "config.toml")]
    monkeypatch.setattr("tandem.app.config.load", lambda _file: collector.config)
    assert main(["campaign", "idle", *config, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"held": None, "collector": False}
    collector.start()
    try:
        assert main(["campaign", "idle", *config]) == 0
        asked(tmp_path, action="begin", text=TRIGGERED + 'on = "always"', file="t.toml", steps=["s"])
        collector.until(lambda: collector.supervisor.pairs.running)
        capsys.readouterr()
        assert main(["campaign", "idle", *config, "--json"]) == 1
        assert json.loads(capsys.readouterr().out)["held"].startswith("campaign triggered: ")
        assert collector.supervisor.exporter.held()
        collector.supervisor.pairs.stop()
        collector.until(lambda: not collector.supervisor.pairs.running)
        assert main(["campaign", "idle", *config, "--wait", "20"]) == 0
    finally:
        collector.stop()
