"""The page as a headless Chromium shows it: every figure is there, nothing is written over, no error on the console."""

from collections.abc import Iterator

import pytest
from paper_campaign import bins, evaluated
from shown_page import ASKED, FLAGS, Shown

from tandem.devtools.browser import Browser, find
from tandem_server.report.figures.figure import every
from tandem_server.report.figures.section import figures
from tandem_server.report.page import render

pytestmark = pytest.mark.skipif(
    find() is None,
    reason="no Chromium: package chromium-headless-shell or chromium, or TANDEM_CHROMIUM (Ubuntu has it as a snap only)",
)


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> str:
    place = tmp_path_factory.mktemp("browser")
    e = evaluated(place / "campaign")
    (place / "report.html").write_text(render(e, figures(e, bins(e))), encoding="utf-8")
    return (place / "report.html").as_uri()


@pytest.fixture(scope="module")
def shown() -> Iterator[Shown]:
    browser = Browser(find() or "", FLAGS, longest=64 << 20)
    try:
        yield Shown(browser)
    finally:
        browser.close()


def test_every_figure_is_shown_whole_and_readable(shown, page):
    assert shown.load(page) == []
    found = {one["name"]: one for one in shown.ask(ASKED)}
    assert set(found) == {figure.name for figure in every()} - {"chen-8"}
    assert {name: one["outside"] for name, one in found.items() if one["outside"]} == {}
    assert {name: one["over"] for name, one in found.items() if one["over"]} == {}
    assert [name for name, one in found.items() if not one["drawn"] or one["width"] < 200 or one["height"] < 40] == []


def test_on_a_phone_a_figure_is_scrolled_and_the_page_is_not_and_at_night_it_stays_dark_on_light(shown, page):
    shown.call("Emulation.setDeviceMetricsOverride", width=390, height=800, deviceScaleFactor=2, mobile=True)
    shown.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    assert shown.load(page) == []
    assert shown.ask("document.documentElement.scrollWidth") <= 390
    sizes = "map(s => s.getBoundingClientRect().width / s.viewBox.baseVal.width)"
    sizes = shown.ask(f"[...document.querySelectorAll('[data-figure] svg')].{sizes}")
    assert min(sizes) > 0.95, "letters would be too small to read"
    assert {one["dark"] for one in shown.ask(ASKED)} <= {"rgb(27, 31, 36)", "rgb(92, 101, 112)"}
