"""Queries of roll-ups use the names that roll-ups have, and charts of them windows no narrower than theirs."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tandem.schema.rollups import RESOLUTIONS
from tandem_dashboards.expressions import greatest, last, mean, total
from tandem_dashboards.grafana.times import Range, interval_ms
from tandem_dashboards.influxql import INTERVAL, select
from tandem_dashboards.kinds import time_series
from tandem_dashboards.panel import ROLLED_POINTS
from tandem_dashboards.shown import shown
from tandem_dashboards.vocabulary import RESOLUTION, ROLLED, UnknownNameError


def test_what_raw_records_and_rollups_share_is_asked_by_resolution():
    asked = select(mean("rsrp_dbm"), of="radio", by=["probe"], policy=RESOLUTION)
    assert 'FROM "${resolution:raw}"."radio"' in asked.text
    with pytest.raises(UnknownNameError, match=r"radio \(raw and rolled up\) has no field 'rsrp_dbm_min'"):
        select(mean("rsrp_dbm_min"), of="radio", policy=RESOLUTION)
    with pytest.raises(UnknownNameError, match=r"has no tag 'boot'; it has probe, path, operator, rat"):
        select(mean("rsrp_dbm"), of="radio", by=["boot"], policy=RESOLUTION)


def test_what_only_rollups_have_keeps_the_units_and_grades_of_its_field():
    asked = select(greatest("rsrp_dbm_max"), total("records"), of="radio", policy=ROLLED)
    as_shown = shown(asked.output("rsrp_dbm_max"))
    assert (as_shown.unit, len(as_shown.steps)) == ("dBm", 3)
    assert shown(asked.output("records")).unit == "none"
    with pytest.raises(UnknownNameError, match=r"radio \(rolled up\) has no field 'rsrp_code'"):
        select(last("rsrp_code"), of="radio", policy="hour")


def test_what_is_not_rolled_up_says_why():
    with pytest.raises(UnknownNameError, match=r"position is not rolled up \(coverage has it"):
        select(last("latitude_deg"), of="position", policy=RESOLUTION)


@pytest.mark.parametrize(("finer", "coarser"), list(pairwise(RESOLUTIONS)))
def test_no_window_is_narrower_than_the_rollup_that_serves_the_range(finer, coarser):
    shortest = Range(0, finer.below_s * 1000)
    assert interval_ms(shortest, ROLLED_POINTS) >= coarser.step_s * 1000


def test_a_panel_over_rollups_has_few_points():
    asked = select(mean("rsrp_dbm"), of="radio", every=INTERVAL, policy=RESOLUTION)
    assert time_series("RSRP", "What it shows.", asked).to_sdk(1, 0, 0).max_data_points == ROLLED_POINTS
    raw = select(mean("rsrp_dbm"), of="radio", every=INTERVAL)
    assert time_series("RSRP", "What it shows.", raw).to_sdk(1, 0, 0).max_data_points is None
