"""How much of its time a campaign measures: by hand, and against the collector's own estimate of every campaign that is shipped."""

from __future__ import annotations

from typing import Any

import pytest

from tandem.app.campaign.estimate import estimate
from tandem.schema.campaign import Campaign
from tandem.schema.campaign_reader import parse
from tandem_hardware.duty import duty, run
from tandem_hardware.power_cli import CAMPAIGNS

SECONDS_AGREE = 0.05
"""Of the collector's estimate: each step's seconds are as near as that."""
BYTES_AGREE = 0.001


def campaign(trigger: str, *, budget: str = "", steps: int = 1) -> Campaign:
    """Steps that take 40 s and move 1 MB over each path, 18 s of quiet between."""
    head = 'format = "tandem-campaign-file/1"\nname = "c"\ntitle = "t"\nroles = ["a", "b"]\nseed = 1\nquiet_s = 18\n'
    one = '[[step]]\nname = "s{n}"\nexperiment = "own"\nrepetitions = 9\nseconds = 40\nbytes = 1_000_000\n[step.trigger]\n'
    body = "".join(one.format(n=n) + trigger + "\n" for n in range(steps))
    return parse(f"{head}{budget}\n{body}", "c.toml")


@pytest.mark.parametrize(
    ("trigger", "more", "share", "runs"),
    [
        # 40 s and 2 s around it, then 18 s: one a minute, 120 in two hours, 42 s of each minute.
        ('on = "always"', {}, 0.7, 120),
        # Two such steps share the same time: no more than one run at a time.
        ('on = "always"', {"steps": 2}, 0.7, 120),
        # 60 runs a day: 60 x 42 / 7200.
        ('on = "always"', {"budget": "[budget]\nday_runs = 60"}, 0.35, 60),
        # 30 MB a day at 1 MB a run: 30 x 42 / 7200.
        ('on = "always"', {"budget": "[budget]\nday_bytes = 30_000_000"}, 0.175, 30),
        # Every 300 s: 24 x 42 / 7200.
        ('on = "periodic"\nevery_s = 300', {}, 0.14, 24),
        ('on = "poisson"\nmean_s = 300', {}, 0.14, 24),
        # At most every 120 s: 60.
        ('on = "always"\ngap_s = 120', {}, 0.35, 60),
        # Ten a day: 10 x 42 / 7200.
        ('on = "mobility_start"\nexpected_per_day = 10', {}, 0.058333, 10),
        # A window of an hour within the two hours on: 60 runs.
        ('on = "window"\nbetween = "08:00-09:00"', {}, 0.35, 60),
    ],
)
def test_the_share_by_hand(trigger: str, more: dict[str, Any], share: float, runs: float) -> None:
    found = duty(campaign(trigger, **more), 2.0)
    assert found.share == pytest.approx(share, abs=1e-5)
    assert found.runs_per_day == pytest.approx(runs)
    assert found.bytes_per_day == pytest.approx(runs * 1e6)
    assert found.assumed == ()


def test_what_nothing_tells_is_taken_as_often_as_it_may_and_said() -> None:
    found = duty(campaign('on = "mobility_start"'), 2.0)
    assert found.share == pytest.approx(0.7)
    assert found.assumed == ("s0",)


@pytest.mark.parametrize("form", ["paper", "short", "pilot"])
@pytest.mark.parametrize("path", sorted(CAMPAIGNS.glob("*.toml")), ids=lambda path: path.stem)
def test_the_small_sum_agrees_with_the_collectors_estimate(path: Any, form: str) -> None:
    one = parse(path.read_text(encoding="utf-8"), path.name, form=form)
    for step, wanted in zip(one.steps, estimate(one).steps, strict=True):
        took = run(one, step)
        seconds = (wanted.seconds - (step.run_count - 1) * one.quiet_s) / step.run_count
        assert took.seconds == pytest.approx(seconds, rel=SECONDS_AGREE), step.name
        moved = [wanted.bytes_by_role.get(role, 0) / step.run_count for role in one.roles]
        assert took.bytes == pytest.approx(moved, rel=BYTES_AGREE, abs=1), step.name
