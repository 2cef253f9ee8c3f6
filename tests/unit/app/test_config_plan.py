"""``[path.plan]``: what a SIM may carry, and for every mistake the line and the mend."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tandem.app.config import ConfigError, parse
from tandem.app.config_plan import PlanConfig

GOOD = (Path(__file__).parent / "good.toml").read_text()
FILE = Path("/etc/tandem/config.toml")


def with_plan(lines: str) -> str:
    """The second path's table is the last before [runs]."""
    before, after = GOOD.split("[runs]", 1)
    return f"{before}{lines}\n[runs]{after}"


def test_a_plan_is_taken_with_defaults() -> None:
    first, second = parse(with_plan("[path.plan]\nbytes = 10_000_000_000"), FILE).paths
    assert first.plan is None
    assert second.plan == PlanConfig(10**10, reset_day=1, warn_share=1.0)
    assert second.modem is not None
    told = parse(with_plan("[path.plan]\nbytes = 1\nreset_day = 31\nwarn_share = 0.8"), FILE).paths[1].plan
    assert told == PlanConfig(1, 31, 0.8)


BAD = [
    ("[path.plan]", "[path.plan]", "[path.plan] has no 'bytes'; mend: add it: what the SIM may carry"),
    ("[path.plan]\nbytes = 0", "bytes = 0", "path.plan.bytes: 0 is below 1"),
    ('[path.plan]\nbytes = "10 GB"', "10 GB", "path.plan.bytes: '10 GB' is not a whole number; mend: what the SIM may"),
    ("[path.plan]\nbytes = 9\nreset_day = 32", "reset_day", "path.plan.reset_day: 32 is above 31"),
    ("[path.plan]\nbytes = 9\nwarn_share = 80", "warn_share", "path.plan.warn_share: 80 is above 1"),
    ("[path.plan]\nbytes = 9\nreset = 3", "reset", "unknown key 'reset' in [path.plan]; mend: known are bytes, reset_"),
]


@pytest.mark.parametrize(("lines", "where", "what"), BAD)
def test_a_bad_line_is_named_with_its_mend(lines: str, where: str, what: str) -> None:
    text = with_plan(lines)
    with pytest.raises(ConfigError) as caught:
        parse(text, FILE)
    message = str(caught.value)
    assert what in message
    match = re.match(r"/etc/tandem/config\.toml:(\d+): .+; mend", message)
    assert match is not None, message
    assert where in text.splitlines()[int(match[1]) - 1], message


def test_a_plan_that_is_no_table_is_named() -> None:
    with pytest.raises(ConfigError, match=re.escape("'plan' is no table; mend: begin it with [path.plan]")):
        parse(GOOD.replace('operator = "B"', 'operator = "B"\nplan = 5'), FILE)
