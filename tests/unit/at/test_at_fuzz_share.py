"""A fixed small share of the fuzzer (tests/bench/fuzz_at.py feeds as much as one likes)."""

from __future__ import annotations

import pytest
from at_fuzzing import WAYS, Source


@pytest.mark.parametrize(("way", "at_least_bytes"), list(zip(WAYS, (400_000, 60_000), strict=True)))
def test_every_invariant_holds_and_what_is_clean_is_read_rightly_again(way: str, at_least_bytes: int) -> None:
    counts = WAYS[way](Source(3), at_least_bytes)
    assert counts.fed_bytes >= at_least_bytes
    assert counts.findings == []
    assert counts.rounds > 20
    # A channel has a deadline, which a busy machine may miss each time.
    assert counts.responses > counts.rounds / 10 or way != "splitter and dialogue", (
        "too little of it was answers at all"
    )
