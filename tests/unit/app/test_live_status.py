"""What the status object tells of a run's subflows, and of events."""

from pathlib import Path
from typing import Any

import pytest
from good_config import GOOD

from tandem.app.config import parse
from tandem.app.live import Live
from tandem.app.plan import Plan, PlannedRun, Wish
from tandem.schema.record import Record

CONFIG = GOOD


@pytest.fixture
def live(tmp_path: Path) -> Live:
    return Live(parse(CONFIG, tmp_path / "config.toml"), lambda ns: ns, lambda: None)


RUN = PlannedRun("run-1", "mptcp", ("a", "b"))


def begin(live: Live, **more: Any) -> Plan:
    wish = Wish("single", "campaign", 8.0, None, 0.0, "a", ("a", "b"), **more)
    plan = Plan("pair-1", wish, 1, (RUN,))
    live.pair_started(plan)
    live.run_started(plan, RUN)
    return plan


def sampled(live: Live, *subflows: dict[str, Any]) -> list[dict[str, Any]]:
    told = [{"subflow": str(n), "path": p, **s} for n, (p, s) in enumerate(zip("ab", subflows, strict=False))]
    live.run_sampled(RUN, {"connection": {"bytes": 1}, "subflows": told})
    shown: list[dict[str, Any]] = live.status()["run"]["runs"][0]["subflows"]
    return shown


def test_shares_are_of_the_last_second_and_absent_while_nothing_comes(live: Live) -> None:
    begin(live)
    assert [s["share"] for s in sampled(live, {"goodput_bit_per_s": 0.0}, {"goodput_bit_per_s": 0.0})] == [None, None]
    assert [s["share"] for s in sampled(live, {"goodput_bit_per_s": 3e6}, {"goodput_bit_per_s": 1e6})] == [0.75, 0.25]
    for _ in range(10):
        shown = sampled(live, {"goodput_bit_per_s": 1e6}, {"goodput_bit_per_s": 3e6})
    assert [s["share"] for s in shown] == [0.25, 0.75]


@pytest.mark.parametrize(
    ("fields", "rtt_ms"),
    [
        ({"bytes_received": 9000, "bytes_sent": 100, "rtt_ms": 21.0, "rcv_rtt_ms": 84.5}, 84.5),
        ({"bytes_received": 100, "bytes_sent": 9000, "rtt_ms": 21.0, "rcv_rtt_ms": 84.5}, 21.0),
        ({"bytes_received": 9000, "bytes_sent": 100, "rtt_ms": 21.0}, None),
        ({"bytes_received": 9000, "rcv_rtt_ms": "hostile"}, None),
    ],
)
def test_the_rtt_is_that_of_the_end_which_knows_it(live: Live, fields: dict[str, Any], rtt_ms: float | None) -> None:
    begin(live)
    (shown,) = sampled(live, fields)
    assert shown["rtt_ms"] == rtt_ms


def test_a_campaigns_run_names_it(live: Live) -> None:
    begin(live)
    assert live.status()["run"]["campaign"] is None
    begin(live, campaign={"name": "cordero-2022", "step": "one"})
    assert live.status()["run"]["campaign"] == "cordero-2022"


def test_an_event_keeps_its_state(live: Live) -> None:
    live.happened(Record.make("event", {"kind": "undervoltage"}, {"state": "ends", "detail": "was: low"}, 5))
    (event,) = live.status()["events"]
    assert (event["kind"], event["state"], event["detail"]) == ("undervoltage", "ends", "ends, was: low")
