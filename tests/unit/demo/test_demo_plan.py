"""The first paired run fits into the first still phase, whatever the duration."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem_bench.demo.plan import OVERHEAD_S, PlanError, plan


@given(still_s=st.floats(30, 900), paths=st.integers(1, 4))
def test_first_pair_ends_within_the_first_still_phase(still_s: float, paths: int) -> None:
    planned = plan(still_s, still_s * 4, paths)
    runs = paths + 1
    end = planned.first_start_s + runs * (planned.first_seconds + OVERHEAD_S) + (runs - 1) * planned.first_pause_s
    assert planned.first_seconds >= 2.0
    if planned.first_seconds > 2.0:
        assert end <= still_s + 0.4


@pytest.mark.parametrize(
    ("still_s", "duration_s", "least_s"),
    [(45.0, 180.0, 8.0), (15.0, 60.0, 2.0), (0.0, 180.0, 2.0)],
    ids=["long enough for slow start", "a minute", "a start on the move"],
)
def test_the_first_runs_have_their_least_length(still_s: float, duration_s: float, least_s: float) -> None:
    assert plan(still_s, duration_s, 2).first_seconds >= least_s


@pytest.mark.parametrize("duration_s", [30.0, 45.0, 60.0, 180.0])
def test_where_all_is_still_the_pair_ends_well_before_the_end(duration_s: float) -> None:
    planned = plan(duration_s, duration_s, 2)
    end = planned.first_start_s + 3 * (planned.first_seconds + OVERHEAD_S) + 2 * planned.first_pause_s
    assert end <= duration_s - 4


def test_too_short_a_rehearsal_is_refused_with_the_least_that_works() -> None:
    with pytest.raises(PlanError, match=r"give at least \d+"):
        plan(1.0, 5.0, 2)
