"""A drive that somebody else logged, through the database: bins, kilometres and handover rates as the log itself has them.

The log is read here by itself, line by line, and counted by other means than the server's.
"""

import csv
import math
import os
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest
from riding import HOUR, S, driven

from tandem_server.derived.series import DerivedSeries
from tandem_server.registry import Debounce
from tandem_server.schema.derived import RSRP_EDGES_DBM

FOLDER = Path(os.environ.get("TANDEM_SHARED", Path(__file__).parents[5] / "shared")) / "data" / "drives"
LOGS = ("drive-download-a.csv", "drive-video-b.csv", "static-download-a.csv")
START = 1_576_368_000 // 86_400 * 86_400 * S


def seconds_of(log):
    """One row a second, the last of those that there are; ``t`` from midnight of the log's day."""
    found = {}
    with log.open() as file:
        for row in csv.DictReader(file):
            day, clock = row["Timestamp"].split("_")
            at = datetime.strptime(f"{day} {clock}", "%Y.%m.%d %H.%M.%S").replace(tzinfo=UTC)
            midnight = datetime(at.year, at.month, at.day, tzinfo=UTC)
            if "-" in (row["RSRP"], row["RAWCELLID"]):
                continue
            place = {"latitude": float(row["Latitude"]), "longitude": float(row["Longitude"])}
            told = {"rsrp": float(row["RSRP"]), "eci": int(row["RAWCELLID"]), **place}
            found[int((at - midnight).total_seconds())] = told
    return [{"t": t, **found[t]} for t in sorted(found)]


def metres(a, b):
    """Flat, which is right to a millimetre over a second's way."""
    east = math.radians(b["longitude"] - a["longitude"]) * math.cos(math.radians(a["latitude"]))
    return 6_371_000 * math.hypot(east, math.radians(b["latitude"] - a["latitude"]))


@pytest.mark.parametrize("name", LOGS)
def test_a_drive_is_counted_as_its_log_has_it(registry, store, name):
    log = FOLDER / name
    if not log.is_file():
        pytest.skip(f"no drive logs in {FOLDER} (set TANDEM_SHARED to the folder that holds data/drives)")
    seconds = seconds_of(log)
    ride = driven(seconds, START)
    for i in range(0, len(ride.lines), 5000):
        assert store.write(ride.lines[i : i + 5000]) == []
    DerivedSeries(registry, store, Debounce(0)).once(START + (seconds[-1]["t"] // 3600 + 3) * HOUR)

    def asked(of, measurement="coverage_day", policy="hour"):
        (found,) = store.query(f'SELECT {of} FROM "{policy}"."{measurement}"')  # noqa: S608  constants of this test
        return found.rows[0][1]

    def total(field, **where):
        return asked(f'sum("{field}")', **where)

    assert total("polls") == total("rsrp_dbm_count") == len(seconds)
    assert total("rsrp_dbm_sum") == pytest.approx(sum(s["rsrp"] for s in seconds))
    for low, high in zip((-math.inf, *RSRP_EDGES_DBM), (*RSRP_EDGES_DBM, math.inf), strict=True):
        name_of = f"rsrp_m{-low}_m{-high}" if math.isfinite(low + high) else ""
        name_of = name_of or (f"rsrp_from_m{-low}" if math.isfinite(low) else f"rsrp_below_m{-high}")
        in_bin = sum(low <= s["rsrp"] < high for s in seconds)
        rows = store.query(f'SELECT sum("{name_of}") FROM "hour"."coverage_day"')  # noqa: S608  likewise
        assert (rows[0].rows[0][1] if rows else 0) == in_bin, name_of
    # Whole seconds between rows, as far as polls are successive: 2.5 s stand for a longer gap, and for the last.
    gaps = [b["t"] - a["t"] for a, b in pairwise(seconds)]
    assert total("time_s") == pytest.approx(sum(min(gap, 2.5) for gap in gaps) + 2.5)
    changes = sum(a["eci"] != b["eci"] for a, b in pairwise(seconds))
    driving = name.startswith("drive")
    if changes:
        assert total("handovers") == changes
    joined = [(a, b) for a, b in pairwise(seconds) if b["t"] - a["t"] <= 10]
    way = sum(metres(a, b) for a, b in joined)
    if driving:
        assert way > 10_000
        assert total("way_m") == pytest.approx(way, rel=0.02)
        per_km = asked('sum("way_handovers") / sum("way_m") * 1000')
        assert per_km == pytest.approx(changes / way * 1000, rel=0.02)
        per_hour = asked('sum("handovers") / sum("time_s") * 3600')
        assert per_hour == pytest.approx(changes / sum(min(gap, 2.5) for gap in gaps) * 3600, rel=0.01)
        # By far the most of the way is on the move, in many areas; and their sum is the whole.
        moving = store.query('SELECT sum("way_m") FROM "hour"."area_day" WHERE "mobility" != \'still\'')
        assert moving[0].rows[0][1] > 0.8 * way
        areas = store.query('SELECT sum("polls") FROM "hour"."area_day" GROUP BY "area"')
        assert len(areas) > 8
        assert sum(series.rows[0][1] for series in areas) == len(seconds)
    else:
        ways = store.query('SELECT sum("way_m") FROM "hour"."coverage_day"')
        assert not ways or (ways[0].rows[0][1] or 0) < 200
