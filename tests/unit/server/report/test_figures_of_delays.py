"""Tails of round trips and waits, each number worked by hand."""

import numpy as np
import pytest

from tandem_server.analysis.estimates import Histogram, histogram, pooled
from tandem_server.analysis.material import Bins, Material
from tandem_server.analysis.measured import Download, Setting
from tandem_server.report.figures.figure import every, make
from tandem_server.report.figures.sheet import rows

NAN, NONE = float("nan"), np.empty(0)
FIGURES = {figure.name: figure for figure in every()}


def seen(**counts: float) -> Histogram:
    """``ms_3=2``: twice 3 ms; ``longer=1``."""
    ms = [NAN if name == "longer" else float(name.removeprefix("ms_")) for name in counts]
    return histogram(np.array(ms), np.array([*counts.values()], float))


def download(run: str, size: int | None = 4 << 20, mobility: str = "low") -> Download:
    operators = {"a": "Blue", "b": "Red"}
    of = Setting(run, "x", "s", "", {}, {}, ("a", "b"), mobility, 0.0, 9.0, operators, "default")
    return Download(of, run, "single", "mptcp", "a", "", size, None, 1e6, 1.0, 1.0, {}, {}, {}, {}, {})


def bins(run: str, path: str | None, **told: Histogram) -> Bins:
    return Bins(run, path, NONE, NONE, NONE, **told)


@pytest.fixture
def material() -> Material:
    """Two downloads of four packets each; one packet of the second was still waiting when its capture ended."""
    waits = seen(ms_0=2, ms_1=1, ms_2=1), seen(ms_0=1, ms_10=2, longer=1)
    rtts = seen(ms_40=3, ms_45=1), seen(ms_40=1, ms_100=3)
    found = [bins(f"r{n}", None, waits=one) for n, one in enumerate(waits)]
    found += [bins(f"r{n}", "b", rtts=one) for n, one in enumerate(rtts)]
    return Material(operators={"a": "Blue", "b": "Red"}, downloads=[download("r0"), download("r1")], bins=found)


def drawn(name: str, m: Material) -> list[dict]:
    made = make(FIGURES[name], m)
    assert made.sheet is not None, made.lacks
    return rows(made.sheet)


def points(name: str, m: Material) -> dict[tuple[str, str], list[tuple[float, float, int]]]:
    found: dict = {}
    for row in drawn(name, m):
        found.setdefault((row["panel"], row["series"]), []).append((row["x"], row["y"], row["n"]))
    return found


def test_the_tail_of_waits_holds_those_that_were_never_over(material):
    tail = [(1, 4 / 8, 8), (2, 3 / 8, 8), (10, 1 / 8, 8)]
    assert points("chen-out-of-order", material) == {("Blue + Red, default", "4 MB"): tail}
    note = make(FIGURES["chen-out-of-order"], material).sheet.note
    assert "longer than was captured: 1;" in note


def test_the_tail_of_a_paths_round_trips_and_waits_by_mobility_class(material):
    # 8 samples: 40, 40, 40, 40, 45, 100, 100, 100; nothing took longer than the last.
    tail = [(40, 4 / 8, 8), (45, 3 / 8, 8)]
    assert points("chen-rtt", material) == {("Blue + Red, default, 4 MB", "Red"): tail}
    # Of eight packets three came in order.
    less = [(1, 4 / 8, 8), (2, 5 / 8, 8), (10, 7 / 8, 8)]
    assert points("mohan-7c", material) == {("", "low speed"): less}


def test_means_over_connections_with_their_standard_errors(material):
    told = {row["quantity"]: row for row in drawn("chen-table-delays", material)}
    # 0, 0, 0.5, 1.5 of four; 0, 9.5, 9.5 of the three known.
    means = [2 / 4, 19 / 3]
    waits = told["out-of-order delay, ms"]
    assert (waits["mean"], waits["n"]) == (pytest.approx(sum(means) / 2), 2)
    assert waits["se"] == pytest.approx((means[1] - means[0]) / 2)  # of two: half their difference
    assert told["out of order, %"]["mean"] == pytest.approx((50 + 75) / 2)
    assert told["RTT, Red, ms"]["mean"] == pytest.approx(((3 * 39.5 + 44.5) / 4 + (39.5 + 3 * 99.5) / 4) / 2)


def test_a_download_over_one_path_and_what_was_not_captured_have_none(material):
    material.bins = [one for one in material.bins if one.path is not None]
    assert "captures of every path" in make(FIGURES["chen-out-of-order"], material).lacks
    material.bins = [bins("r0", None)]
    assert make(FIGURES["chen-rtt"], material).lacks.startswith("round-trip times or waits of packets in captures")


def test_of_many_values_two_hundred_are_told_and_each_is_exact():
    one = histogram(np.arange(5000.0), np.ones(5000))
    told = one.above()
    assert len(told) <= 200
    assert told[0] == (1, 4998 / 5000)
    assert all(share == pytest.approx((4999 - ms) / 5000) for ms, share in told)
    assert told[-1][0] == 4999
    assert pooled([one, one]).n == 10_000
    assert pooled([]).mean_ms() is None
