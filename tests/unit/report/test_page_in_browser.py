"""The page as a headless Chromium shows it: every figure is there, nothing is written over, no error on the console."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from paper_campaign import bins, evaluated

from tandem.devtools.browser import Browser, find
from tandem_server.report.figures.figure import every
from tandem_server.report.figures.section import figures
from tandem_server.report.page import render

pytestmark = pytest.mark.skipif(
    find() is None,
    reason="no Chromium: package chromium-headless-shell or chromium, or TANDEM_CHROMIUM (Ubuntu has it as a snap only)",
)
LONG_S = 240
ASKED = """
(() => [...document.querySelectorAll('[data-figure]')].map(figure => {
  const svg = figure.querySelector('svg'), frame = svg.getBoundingClientRect();
  const words = [...svg.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()]).filter(w => w[0]);
  const beside = b => b.left < frame.left - 1 || b.right > frame.right + 1;
  const above = b => b.top < frame.top - 1 || b.bottom > frame.bottom + 1;
  const outside = words.filter(([, b]) => beside(b) || above(b));
  const over = [];
  words.forEach(([one, a], n) => words.slice(n + 1).forEach(([other, b]) => {
    const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left), high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (wide > 3 && high > 5) over.push(one + ' | ' + other);
  }));
  const marks = [...svg.querySelectorAll('[data-mark]')].filter(g => g.dataset.rows !== '0').map(g => g.getBoundingClientRect());
  return {name: figure.dataset.figure, width: frame.width, height: frame.height, outside: outside.map(w => w[0]), over,
          drawn: marks.length && marks.every(b => b.width + b.height > 0), dark: getComputedStyle(svg.querySelector('text')).fill};
}))()
"""


class Shown:
    """One page in a browser."""

    def __init__(self, browser: Browser) -> None:
        self.until_s = time.monotonic() + LONG_S
        self.tools, self.session = browser.devtools, browser.page(self.until_s)
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        return self.tools.call(method, params, self.session, until_s=self.until_s)

    def load(self, address: str) -> list[str]:
        """Until it is there; what was complained of meanwhile."""
        assert "errorText" not in self.call("Page.navigate", url=address)
        said = []
        while True:
            event = self.tools.event(self.until_s)
            assert event is not None, "its load event did not come in time"
            if event.method == "Runtime.exceptionThrown" or (event.method, event.params.get("type")) == (
                "Runtime.consoleAPICalled",
                "error",
            ):
                said.append(json.dumps(event.params)[:300])
            if event.method == "Log.entryAdded" and event.params["entry"].get("level") == "error":
                said.append(event.params["entry"]["text"])
            if event.method == "Page.loadEventFired":
                return said

    def ask(self, expression: str) -> Any:
        told = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in told, told
        return told["result"]["value"]


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> str:
    place = tmp_path_factory.mktemp("browser")
    e = evaluated(place / "campaign")
    (place / "report.html").write_text(render(e, figures(e, bins(e))), encoding="utf-8")
    return (place / "report.html").as_uri()


@pytest.fixture(scope="module")
def shown() -> Iterator[Shown]:
    browser = Browser(find() or "", ["--window-size=1280,1000", "--allow-file-access-from-files"], longest=64 << 20)
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


def test_on_a_phone_a_figure_is_scrolled_and_the_page_is_not(shown, page):
    shown.call("Emulation.setDeviceMetricsOverride", width=390, height=800, deviceScaleFactor=2, mobile=True)
    assert shown.load(page) == []
    assert shown.ask("document.documentElement.scrollWidth") <= 390
    sizes = shown.ask(
        "[...document.querySelectorAll('[data-figure] svg')].map(s => s.getBoundingClientRect().width / s.viewBox.baseVal.width)"
    )
    assert min(sizes) > 0.95, "letters would be too small to read"


def test_at_night_the_figures_stay_dark_on_light(shown, page):
    shown.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    assert shown.load(page) == []
    assert {one["dark"] for one in shown.ask(ASKED)} <= {"rgb(27, 31, 36)", "rgb(92, 101, 112)"}
