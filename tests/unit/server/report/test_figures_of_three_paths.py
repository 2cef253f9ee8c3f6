"""Cordero's figures of rounds over three paths: beside those of two, each number worked by hand."""

import pytest

from tandem_server.analysis.material import Material
from tandem_server.analysis.measured import BandwidthRound, DelayRound, Setting
from tandem_server.report.figures.figure import every, make
from tandem_server.report.figures.sheet import rows

FIGURES = {figure.name: figure for figure in every() if figure.name.startswith("cordero-")}


def of(paths: int) -> Setting:
    return Setting("r", "cordero-remote", "remote", "", {}, {}, tuple("abc"[:paths]), None, 0.0, 9.0)


def bandwidth(goodput: float, *alone: float) -> BandwidthRound:
    rates, total, best = dict(zip("abc", alone, strict=False)), sum(alone), max(alone)
    benefit = (goodput - best) / (total - best)
    return BandwidthRound(of(len(alone)), "oneway", "cubic", max(alone) / min(alone), 1.0, rates, goodput, benefit)


def delay(paths: int, share: float) -> DelayRound:
    return DelayRound(of(paths), 1000, 0.5, 0.25, share, 30.0, 29.0, "acknowledged")


@pytest.fixture
def both() -> Material:
    """10 and 5 Mbit/s; 10, 5 and 5 Mbit/s."""
    two, three = bandwidth(12e6, 10e6, 5e6), bandwidth(18e6, 10e6, 5e6, 5e6)
    return Material(bandwidth=[two, three], delay=[delay(2, 0.6), delay(3, 0.4)])


def drawn(name: str, m: Material) -> dict[str, list[dict]]:
    made = make(FIGURES[name], m)
    assert made.sheet is not None, made.lacks
    found: dict[str, list[dict]] = {}
    for row in rows(made.sheet):
        found.setdefault(row["panel"], []).append(row)
    return found


def test_two_and_three_paths_have_panels_of_their_own(both):
    panels = drawn("cordero-5", both).items()
    found = {panel: [(r["x"], r["y"]) for r in told if r["mark"] == "curve"] for panel, told in panels}
    assert found == {"two paths": [(2, 2 / 5)], "three paths": [(2, 8 / 10)]}
    for name in ("cordero-tdi", "cordero-7", "cordero-8", "cordero-9a", "cordero-10"):
        panels = drawn(name, both)
        assert {panel.split(":")[0] for panel in panels} == {"two paths", "three paths"}, name


def test_the_bound_of_three_paths_is_the_sum_of_their_rates(both):
    two, three = drawn("cordero-6", both).values()
    assert [(r["x"], r["y"]) for r in two if r["mark"] == "curve"] == [(2, 12 / 5)]
    assert next((r["x"], r["y"]) for r in two if r["series"] == "1 + BWR") == (2, 3)
    # ΣC is 4 times the slowest's; MPTCP had 18 of 20 Mbit/s.
    assert [(r["x"], r["y"]) for r in three if r["mark"] == "curve"] == [(4, 18 / 5)]
    assert next((r["x"], r["y"]) for r in three if r["series"] == "ΣC") == (4, 4)


def test_the_most_loaded_of_three_may_carry_less_than_a_half_and_three_alone_are_named(both):
    sheet = make(FIGURES["cordero-9a"], both).sheet
    lows = {panel.title: panel.y.low for panel in sheet.panels}
    assert lows == {"two paths": pytest.approx(0.45), "three paths": pytest.approx(0.28)}
    assert "the probe’s counters (acknowledged), transfers: 1" in sheet.note
    three = Material(bandwidth=both.bandwidth[1:], delay=both.delay[1:])
    assert list(drawn("cordero-5", three)) == ["three paths"]
    assert make(FIGURES["cordero-9b"], three).lacks == "rounds of the experiment delay over two paths shaped to a ratio"
    two = Material(bandwidth=both.bandwidth[:1], delay=both.delay[:1])
    assert list(drawn("cordero-5", two)) == [""]
