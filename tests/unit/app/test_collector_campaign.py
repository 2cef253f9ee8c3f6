"""A campaign in a running collector, with doubles: begun over the status socket by movement and by hand, and told in manifests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from doubles import Rehearsal, manifests
from https_gateway import Gateway

from tandem.app.status_socket import ask

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
