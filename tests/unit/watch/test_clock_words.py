"""How ``tandem status`` tells of the clock."""

from typing import Any

import pytest

from tandem.cli.view.figures import clock_words
from tandem.cli.view.plain import summary

GOOD = {"synchronised": True, "vouched": True, "source": "chrony", "error_ms": 12.3, "age_s": 2.0}
GOOD |= {"system_error_ms": 0.1, "steps": []}


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (GOOD, "chrony, within 12 ms"),
        (GOOD | {"vouched": False, "age_s": 3700.0}, "chrony, within 12 ms, last vouched for 1:01:40 ago"),
        (GOOD | {"system_error_ms": 5e6}, "chrony, within 12 ms; the system's clock is 5000 s off"),
        (GOOD | {"steps": [{}, {}]}, "chrony, within 12 ms; set 2 times"),
        (GOOD | {"source": "system", "error_ms": None}, "the system's clock as it stands, nobody vouches for it"),
        ({"synchronised": False, "trouble": "no chronyd answers"}, "no chronyd answers"),
        ({}, "not synchronised: records wait for their time"),
    ],
)  # fmt: skip
def test_words(state: dict[str, Any], words: str) -> None:
    assert clock_words(state) == words


def test_the_status_has_a_line_of_it() -> None:
    assert "clock: chrony, within 12 ms" in summary({"clock": GOOD}).splitlines()
