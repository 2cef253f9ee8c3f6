"""What a bench made of the links is a run's shape where the run says none of its own and lies wholly within."""

from types import SimpleNamespace
from typing import Any

import pytest

from tandem_server.analysis.papers.material import setting
from tandem_server.analysis.truth import TrueShape, Truth

SLOWER = {"wifi": {"rtt_ms": 100.0, "down_loss_percent": 0.0}, "a": {"rtt_ms": 0.0}}


def shape_of(start_s: float, end_s: float, **manifest: Any) -> dict[str, Any]:
    truth = Truth(shapes=[TrueShape(10.0, 20.0, SLOWER)])
    clock = SimpleNamespace(seconds=lambda utc_ns, _monotonic_ns, _boot: None if utc_ns is None else utc_ns / 1e9)
    e: Any = SimpleNamespace(
        campaign=SimpleNamespace(truth=truth), clock=clock, recorded=SimpleNamespace(radio={}), found_mobility=[]
    )
    run: Any = SimpleNamespace(id="r", campaign="adarsh-controlled", step="downloads")
    told = {"started_utc_ns": round(start_s * 1e9), "ended_utc_ns": round(end_s * 1e9), **manifest}
    return dict(setting(e, run, told).shape)


@pytest.mark.parametrize(
    ("start_s", "end_s", "expected"),
    [(10.0, 20.0, SLOWER), (12.0, 13.0, SLOWER), (9.9, 15.0, {}), (15.0, 20.1, {}), (30.0, 31.0, {})],
)
def test_of_a_run_that_lies_wholly_within(start_s: float, end_s: float, expected: dict[str, Any]) -> None:
    assert shape_of(start_s, end_s) == expected


def test_the_runs_own_shape_goes_before_it() -> None:
    own = {"shape": {"a": {"asked": {"up_bit_per_s": 2e6}}}}
    assert shape_of(12.0, 13.0, conditions=own) == {"a": {"up_bit_per_s": 2e6}}
