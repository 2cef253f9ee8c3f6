"""A sheet as SVG: numbers land where the axes say, texts are escaped, colours can be told apart."""

import csv
import io
import math
import re
from itertools import combinations
from xml.etree import ElementTree

import pytest

from tandem_server.analysis.estimates import Estimate
from tandem_server.report.figures.canvas import svg
from tandem_server.report.figures.hues import MPTCP, OPERATORS, OTHERS, of_operators
from tandem_server.report.figures.marks import Bars, Dots, Level, Line
from tandem_server.report.figures.scale import Axis, binary_size, size
from tandem_server.report.figures.sheet import Panel, Sheet, as_csv

SVG = "{http://www.w3.org/2000/svg}"
AXES = (Axis("time, s", low=0, high=10), Axis("goodput, Mbit/s", low=0, high=100))


def drawn(*marks, axes=AXES, **sheet) -> ElementTree.Element:
    return ElementTree.fromstring(svg(Sheet([Panel("", list(marks), *axes)], **sheet), "a title"))  # noqa: S314


def tick(root: ElementTree.Element, word: str, upright: bool) -> float:
    """Where the grid says that a value is."""
    text = next(t for t in root.iter(f"{SVG}text") if t.text == word and (t.get("text-anchor") == "end") is upright)
    return float(text.get("y")) - 4 if upright else float(text.get("x"))


def mark(root: ElementTree.Element, name: str) -> ElementTree.Element:
    return next(g for g in root.iter(f"{SVG}g") if g.get("data-mark") == name)


def test_dots_lie_where_the_axes_say():
    root = drawn(Dots("d", [(4.0, 40.0)]))
    dot = next(mark(root, "dots").iter(f"{SVG}circle"))
    assert float(dot.get("cx")) == pytest.approx(tick(root, "4", upright=False), abs=0.2)
    assert float(dot.get("cy")) == pytest.approx(tick(root, "40", upright=True), abs=0.2)


def test_a_bar_reaches_from_zero_to_its_value_and_its_interval_is_drawn():
    axes = (Axis("", names=("one", "two")), AXES[1])
    root = drawn(Bars("b", [(1.0, Estimate(60.0, 40.0, 80.0, 7))]), axes=axes)
    bar = next(mark(root, "bars").iter(f"{SVG}rect"))
    top, height = float(bar.get("y")), float(bar.get("height"))
    assert top == pytest.approx(tick(root, "60", upright=True), abs=0.2)
    assert top + height == pytest.approx(tick(root, "0", upright=True), abs=0.2)
    middle = float(bar.get("x")) + float(bar.get("width")) / 2
    assert middle == pytest.approx(tick(root, "two", upright=False), abs=0.2)
    ends = re.match(r"M[\d.]+ ([\d.]+)V([\d.]+)", next(mark(root, "bars").iter(f"{SVG}path")).get("d"))
    assert float(ends[1]) == pytest.approx(tick(root, "40", upright=True), abs=0.2)
    assert float(ends[2]) == pytest.approx(tick(root, "80", upright=True), abs=0.2)
    assert "n=7" in {t.text for t in root.iter(f"{SVG}text")}


def test_a_logarithmic_axis_has_equal_steps_for_equal_factors_and_a_flipped_one_great_values_first():
    axes = (Axis("size", log=True, bytes=True, low=100, high=1e6), AXES[1])
    root = drawn(Dots("d", [(1e3, 1.0), (1e4, 1.0), (1e5, 1.0)]), axes=axes)
    places = [float(c.get("cx")) for c in mark(root, "dots").iter(f"{SVG}circle")]
    assert places[1] - places[0] == pytest.approx(places[2] - places[1], abs=0.2)
    assert tick(root, "10 kB", upright=False) == pytest.approx(places[1], abs=0.2)
    root = drawn(Dots("d", [(2.0, 1.0), (8.0, 1.0)]), axes=(Axis("delay, ms", low=0, high=10, flipped=True), AXES[1]))
    small, great = (float(c.get("cx")) for c in mark(root, "dots").iter(f"{SVG}circle"))
    assert great < small


def test_names_from_outside_are_text_and_no_formula():
    evil = '=1+1"><script>alert(1)</script>'
    sheet = Sheet([Panel(evil, [Line(evil, [(0.0, 1.0), (1.0, 2.0)], n=2), Level(evil, 1.0)], Axis(evil), Axis("y"))])
    assert "<script" not in svg(sheet, evil)
    ElementTree.fromstring(svg(sheet, evil))  # noqa: S314
    rows = list(csv.DictReader(io.StringIO(as_csv(sheet))))
    assert {row["series"] for row in rows} == {"'" + evil, ""}


def test_operators_keep_their_colours():
    found = of_operators(["north", "south", "3", "4", "5"])
    assert found["north"] == found["TCP north"] == OPERATORS[0]
    assert found["5"] == found["4"]
    assert MPTCP not in OPERATORS


def seen(hue: str, kind: str) -> tuple[float, ...]:
    """As a person without red or green cones sees it (Viénot, Brettel, Mollon 1999, in linear light)."""
    r, g, b = ((int(hue[n : n + 2], 16) / 255) ** 2.2 for n in (1, 3, 5))
    if kind == "protan":
        return (0.11238 * r + 0.88762 * g, 0.11238 * r + 0.88762 * g, 0.00401 * r - 0.00401 * g + b)
    return (0.29275 * r + 0.70725 * g, 0.29275 * r + 0.70725 * g, -0.02234 * r + 0.02234 * g + b)


@pytest.mark.parametrize("kind", ["protan", "deutan"])
def test_colours_that_stand_beside_each_other_can_be_told_apart(kind):
    for group in ((*OPERATORS[:2], MPTCP), OTHERS[:6]):
        for one, other in combinations(group, 2):
            places = [[max(0.0, v) ** (1 / 2.2) for v in seen(hue, kind)] for hue in (one, other)]
            assert math.dist(*places) > 0.1, (one, other)


def test_the_axes_reach_from_edge_to_edge():
    root = drawn(Dots("d", [(4.0, 40.0)]))
    frame = re.search(
        r"M([\d.]+) ([\d.]+)V([\d.]+)H([\d.]+)", " ".join(p.get("d", "") for p in root.iter(f"{SVG}path"))
    )
    left, top, floor, right = map(float, frame.groups())
    assert (tick(root, "0", upright=False), tick(root, "10", upright=False)) == pytest.approx(
        (left + 2, right), abs=0.2
    )
    assert (tick(root, "0", upright=True), tick(root, "100", upright=True)) == pytest.approx((floor, top), abs=0.2)


def test_sizes_in_words():
    assert [size(n) for n in (100, 2000, 1.5e6)] == ["100 B", "2 kB", "1.5 MB"]
    assert [binary_size(n) for n in (8192, 524288, 4 << 20, 2_000_000)] == ["8 KB", "512 KB", "4 MB", "2 MB"]
