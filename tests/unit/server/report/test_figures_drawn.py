"""A sheet as matplotlib draws it: numbers land where the axes say, texts are escaped, letters go with a PDF, and the same sheet is the
same bytes whoever draws it."""

import csv
import hashlib
import io
import os
import re
import subprocess
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pytest

from tandem_server.analysis.estimates import Box, Estimate
from tandem_server.analysis.recorded import RadioSeries
from tandem_server.report.figures.marks import Bars, Boxes, Dots, Level, Line, Mark, Trace
from tandem_server.report.figures.sheet import (
    MPTCP,
    OPERATORS,
    Axis,
    Panel,
    Sheet,
    as_csv,
    binary_size,
    operator_hues,
    picture,
    rounds,
    size,
)
from tandem_server.report.figures.svg import themed
from tandem_server.report.timeline import cells

SVG = "{http://www.w3.org/2000/svg}"
AXES = (Axis("time, s", low=0, high=10), Axis("goodput, Mbit/s", low=0, high=100))


def sheet(*marks: Mark, axes=AXES, **more) -> Sheet:
    return Sheet([Panel("", list(marks), *axes)], **more)


def drawn(*marks: Mark, axes=AXES, **more) -> ElementTree.Element:
    return ElementTree.fromstring(picture(sheet(*marks, axes=axes, **more), "a title", pdf=False).svg)  # noqa: S314


def ticks(root: ElementTree.Element) -> tuple[dict[str, float], dict[str, float]]:
    """Where the grid says that values are: from the left, by word; from the top, by word (its line's place)."""
    across = {t.text: float(t.get("x")) for t in root.iter(f"{SVG}text") if "text-anchor:middle" in t.get("style", "")}
    up, line = {}, None
    for one in root.iter():
        if one.tag == f"{SVG}path":
            line = one
        elif one.tag == f"{SVG}text" and "text-anchor:end" in one.get("style", "") and line is not None:
            up[one.text] = places(line)[0][1]
    return across, up


def places(path: ElementTree.Element) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"[ML]([\d.-]+) ([\d.-]+)", path.get("d"))]


def paths(root: ElementTree.Element, mark: str) -> list[ElementTree.Element]:
    return [path for g in root.iter(f"{SVG}g") if g.get("data-mark") == mark for path in g.iter(f"{SVG}path")]


def test_dots_lie_where_the_axes_say():
    root = drawn(Dots("d", [(4.0, 40.0)]))
    (dot,), (across, up) = paths(root, "dots"), ticks(root)
    assert places(dot)[0] == pytest.approx((across["4"], up["40"]), abs=0.1)


def test_axes_reach_from_edge_to_edge_and_ticks_are_round():
    across, up = ticks(drawn(Dots("d", [(4.0, 40.0)])))
    assert list(across)[:6] == ["0", "2", "4", "6", "8", "10"]
    assert list(up) == ["0", "20", "40", "60", "80", "100"]
    for low, high in ((0.0, 7.3), (-117.0, -71.0), (0.0, 150e3), (0.0, 0.02)):
        assert 3 <= len(rounds(low, high)) <= 6
    assert [word for _, word in Axis("", log=True).ticks(30.0, 1200.0)] == ["30", "100", "300", "1k"]
    assert [size(n) for n in (100, 2000, 1.5e6)] == ["100 B", "2 kB", "1.5 MB"]
    assert [binary_size(n) for n in (8192, 524288, 4 << 20, 2_000_000)] == ["8 KB", "512 KB", "4 MB", "2 MB"]


def test_a_bar_reaches_from_zero_to_its_value_and_its_interval_is_drawn():
    axes = (Axis("", names=("one", "two")), AXES[1])
    root = drawn(Bars("b", [(1.0, Estimate(60.0, 40.0, 80.0, 7))]), axes=axes)
    (bar, interval), (across, up) = paths(root, "bars"), ticks(root)
    corners = places(bar)
    assert {y for _, y in corners} == {up["0"], up["60"]}
    assert sum(x for x, _ in corners) / len(corners) == pytest.approx(across["two"], abs=0.1)
    assert {y for _, y in places(interval)} == {up["40"], up["80"]}
    assert "n=7" in {t.text for t in root.iter(f"{SVG}text")}


def test_a_logarithmic_axis_has_equal_steps_for_equal_factors_and_a_flipped_one_great_values_first():
    axes = (Axis("size", log=True, bytes=True, low=100, high=1e6), AXES[1])
    root = drawn(Dots("d", [(1e3, 1.0), (1e4, 1.0), (1e5, 1.0)]), axes=axes)
    x = [x for x, _ in places(paths(root, "dots")[0])][::2]
    assert x[1] - x[0] == pytest.approx(x[2] - x[1], abs=0.1)
    assert x[1] == pytest.approx(ticks(root)[0]["10 kB"], abs=0.1)
    root = drawn(Dots("d", [(2.0, 1.0), (8.0, 1.0)]), axes=(Axis("delay, ms", low=0, high=10, flipped=True), AXES[1]))
    small, _, great, _ = (x for x, _ in places(paths(root, "dots")[0]))
    assert great < small


def test_values_beyond_an_axis_are_at_its_edge_and_never_outside():
    root = drawn(Line("l", [(-5.0, 40.0), (15.0, 1e300)]), Dots("d", [(5.0, -7.0)]))
    across, up = ticks(root)
    assert places(paths(root, "line")[0]) == [(across["0"], up["40"]), (across["10"], up["100"])]
    assert places(paths(root, "dots")[0])[0] == (pytest.approx((across["4"] + across["6"]) / 2, abs=0.1), up["0"])


@pytest.mark.parametrize("log", [False, True])
def test_boxes_at_the_last_place_of_an_axis_of_numbers_are_within_the_panel_with_their_sizes(log: bool):
    def boxes(series: str) -> Boxes:
        return Boxes(series, [(x, Box(1.0, 2.0, 3.0, 4.0, 5.0, 1)) for x in (1.0, 4.0)], [])

    axes = (Axis("ratio", zero=not log, log=log), Axis("y", low=0, high=10))
    root = drawn(boxes("one"), boxes("two"), Level("", 1.0), axes=axes)
    wide = float(root.get("viewBox", "").split()[2])
    sizes = [float(t.get("x", "nan")) for t in root.iter(f"{SVG}text") if t.text == "n=1"]
    assert len(sizes) == 4
    assert max(sizes) + 7 < wide
    ends = max(x for path in paths(root, "level") for x, _ in places(path))
    assert max(x for path in paths(root, "boxes") for x, _ in places(path)) <= ends


EVIL = '=1+1"><script>alert(1)</script>$x$\x00\u202e'


def test_names_from_outside_are_text_and_no_formula_no_mathematics_and_nothing_that_no_xml_holds():
    one = Sheet([Panel(EVIL, [Line(EVIL, [(0.0, 1.0), (1.0, 2.0)], n=2), Level(EVIL, 1.0)], Axis(EVIL), Axis("y"))])
    svg = picture(one, EVIL).svg
    assert "<script" not in svg
    shown = {t.text for t in ElementTree.fromstring(svg).iter(f"{SVG}text")}  # noqa: S314
    assert '=1+1"><script>alert(1)</script>$x$\ufffd\ufffd' in shown
    rows = list(csv.DictReader(io.StringIO(as_csv(one))))
    assert {row["series"] for row in rows} == {"'" + EVIL, ""}


def test_operators_keep_their_colours_and_the_page_may_change_them_at_night():
    found = operator_hues(["north", "south", "3", "4", "5"])
    assert found["north"] == found["TCP north"] == OPERATORS[0]
    assert found["5"] == found["4"]
    assert MPTCP not in OPERATORS
    text = picture(sheet(Line("south", [(0.0, 1.0), (9.0, 2.0)], n=2), hues=found), "", pdf=False).svg
    assert f"stroke:{OPERATORS[1]}" in text
    assert f"stroke:var(--x{OPERATORS[1][1:]},{OPERATORS[1]})" in themed(text)


def test_a_pdf_has_its_letters_as_true_type_and_an_svg_its_text_as_text():
    made = picture(sheet(Dots("dots", [(4.0, 40.0)])), "a title")
    streams = b"".join(
        zlib.decompress(s) for s in re.findall(rb"FlateDecode.*?stream\n(.*?)\nendstream", made.pdf, re.DOTALL)
    )
    whole = made.pdf + streams
    assert [word in whole for word in (b"/FontFile2", b"/Type3", b"CreationDate")] == [True, False, False]
    assert {"goodput, Mbit/s", "dots"} <= {t.text for t in ElementTree.fromstring(made.svg).iter(f"{SVG}text")}  # noqa: S314
    assert "matplotlib" not in made.svg


SAME = sheet(Bars("b", [(1.0, Estimate(60.0, 40.0, 80.0, 7))]), Dots("d", [(n / 9, n) for n in range(90)]), wide=True)
HASHED = """
from test_figures_drawn import *
made = picture(SAME, "x")
print(hashlib.sha256(made.svg.encode() + made.pdf).hexdigest())
"""


def test_the_same_sheet_is_the_same_bytes_in_other_threads_and_processes_and_no_setting_stays_changed():
    before = dict(mpl.rcParams)
    here = {hashlib.sha256(p.svg.encode() + p.pdf).hexdigest() for p in [picture(SAME, "x")]}
    with ThreadPoolExecutor(4) as pool:
        others = list(pool.map(lambda n: picture(SAME if n % 2 else sheet(Level("l", n)), "x"), range(8)))
    assert {hashlib.sha256(p.svg.encode() + p.pdf).hexdigest() for p in others[1::2]} == here
    assert dict(mpl.rcParams) == before
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    other = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": path, "TZ": "Asia/Tokyo"}
    told = subprocess.run([sys.executable, "-c", HASHED], env=other, capture_output=True, text=True, check=True)
    assert {told.stdout.strip()} == here


def test_a_program_that_draws_nothing_loads_no_matplotlib():
    loads = "import sys, tandem_server.cli.report, tandem_server.cli.serve, tandem_server.report.page"
    script = f"{loads}; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_the_same_panel_of_every_part_has_one_scale():
    """A value stands at the same height in all of them."""

    def panel(part: str, top: float) -> Panel:
        line = Line("A", [(0.0, 0.0), (1.0, 5.0), (2.0, top)], n=3)
        return Panel("", [line], Axis("s"), Axis("ms"), part)

    root = ElementTree.fromstring(picture(Sheet([panel("one", 10.0), panel("two", 40.0)]), "x", pdf=False).svg)  # noqa: S314
    lines = [path.get("d") for g in root.iter() if g.get("data-mark") == "line" for path in g]
    heights = [re.findall(r"[ML][\d.]+ ([\d.]+)", d) for d in lines]
    assert heights[0][:2] == heights[1][:2]
    assert float(heights[0][2]) > float(heights[1][2])


# --- over time


def test_a_line_is_broken_where_nothing_was_measured():
    t, v = np.array([0.0, 1.0, 5.0, 6.0, 7.0, 8.0]), np.array([1.0, 1.0, 1.0, np.nan, 1.0, 1.0])
    (path,) = paths(drawn(Trace("a", t, v), live=True), "trace")
    assert path.get("d").count("M") == 3


FIRST, SECOND = 21000 << 8 | 2, 23118 << 8 | 3


def bands(times, found):
    none = np.full(len(times), np.nan)
    series = RadioSeries("a", "A", np.array(times), none, none, np.array(found, dtype=float), none, none)
    return [(band.start, band.end, band.text) for band in cells(series, OPERATORS[0])]


def test_one_cell_is_drawn_after_the_other_and_not_before_the_axis_begins():
    polled = bands([-2.5, -1.5, -0.5, 0.5, 1.5], [SECOND, FIRST, FIRST, FIRST, FIRST])
    assert polled == [(0.0, 2.5, "21000/2")]
    polled = bands([0.5, 1.5, 2.5, 3.5], [FIRST, FIRST, SECOND, None])
    assert polled == [(0.5, 2.5, "21000/2"), (2.5, 3.5, "23118/3")]


def test_a_legend_of_several_rows_reads_along_its_rows():
    names = [f"series {n} of seven" for n in range(7)]
    root = drawn(*(Line(name, [(0.0, 1.0), (9.0, 2.0)], n=2) for name in names))
    placed = [t for t in root.iter(f"{SVG}text") if (t.text or "").startswith("series")]
    places = {t.text.removesuffix(" (n=2)"): (round(float(t.get("y"))), float(t.get("x"))) for t in placed}
    assert len({y for y, _ in places.values()}) > 1
    assert len({x for _, x in places.values()}) > 1
    assert sorted(places, key=places.__getitem__) == names
