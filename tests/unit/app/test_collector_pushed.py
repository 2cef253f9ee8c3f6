"""What the server pushed, in a running collector with doubles, over real HTTPS."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from doubles import Rehearsal, manifests
from https_gateway import Gateway
from test_collector_campaign import TRIGGERED, asked

from tandem.schema.campaign_queue import FORMAT, SETTLED, Pushed, queue_told


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
    collector = Rehearsal(tmp_path, gateway, "long").start()
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
