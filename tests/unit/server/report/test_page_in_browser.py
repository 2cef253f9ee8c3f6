"""The page as a headless Chromium shows it: every figure is there, nothing is written over, no error on the console."""

import re
from collections.abc import Iterator
from pathlib import Path

import paper_runs
import pictures
import pytest
from paper_campaign import asked_all_the_time, bins, evaluated, figures

from support.exported_kits import kit, write_export
from support.report_in_browser import ASKED, FLAGS, Shown
from support.synthetic_campaign import Synthetic
from support.synthetic_folder import page_of
from tandem.devtools import Browser, find
from tandem_server.analysis.evaluate import Evaluation
from tandem_server.cli.main import main
from tandem_server.report.figures.figure import every

pytestmark = pytest.mark.skipif(
    find() is None,
    reason="no Chromium: package chromium-headless-shell or chromium, or TANDEM_CHROMIUM (Ubuntu has it as a snap only)",
)


@pytest.fixture(scope="module")
def campaign(tmp_path_factory) -> Evaluation:
    return evaluated(tmp_path_factory.mktemp("papers") / "campaign")


@pytest.fixture(scope="module")
def page(tmp_path_factory, campaign) -> str:
    file = tmp_path_factory.mktemp("browser") / "report.html"
    file.write_text(page_of(campaign, figures(campaign, bins(campaign))), encoding="utf-8")
    return file.as_uri()


@pytest.fixture(scope="module")
def kits(tmp_path_factory) -> Path:
    """An export of two that have something for every figure."""
    made = {f"probe-{n}": Synthetic(seed=n) for n in (1, 2)}
    for one in made.values():
        asked_all_the_time(one)
    each = {probe: (one, kit(one, probe, paper_runs.every(n))) for n, (probe, one) in enumerate(made.items())}
    return write_export(tmp_path_factory.mktemp("kits") / "out", each)


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


def test_on_a_phone_a_figure_is_scrolled_and_the_page_is_not_and_at_night_it_is_light_on_dark(shown, page):
    shown.call("Emulation.setDeviceMetricsOverride", width=390, height=800, deviceScaleFactor=2, mobile=True)
    shown.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    assert shown.load(page) == []
    assert shown.ask("document.documentElement.scrollWidth") <= 390
    sizes = "map(s => s.getBoundingClientRect().width / s.viewBox.baseVal.width)"
    sizes = shown.ask(f"[...document.querySelectorAll('svg.paper')].{sizes}")
    assert min(sizes) > 0.9, "letters would be too small to read"
    assert {one["dark"] for one in shown.ask(ASKED)} <= {"rgb(231, 234, 238)", "rgb(152, 162, 174)"}
    shown.call("Emulation.clearDeviceMetricsOverride")
    shown.call("Emulation.setEmulatedMedia", features=[])


LIVE = """
(() => {
  const windows = [...document.querySelectorAll('#commute svg.window')], box = windows.at(-1).getBoundingClientRect();
  const at = (kind, part) => windows.at(-1).dispatchEvent(new PointerEvent(kind, {
    clientX: box.left + part * box.width, clientY: box.top + 9, button: 0, pointerType: 'mouse', pointerId: 1, bubbles: true}));
  windows.at(-1).setPointerCapture = () => {};
  at('pointermove', PART);
  const told = document.querySelector('.tip').textContent;
  at('pointerdown', 0.25); at('pointermove', 0.5); at('pointerup', 0.5);
  const ticks = [...document.querySelectorAll('#commute .time-axis text')].map(t => Number(t.textContent)).filter(n => !isNaN(n));
  const boxes = windows.map(w => w.viewBox.baseVal.width / w.width.baseVal.value);
  windows.at(-1).dispatchEvent(new MouseEvent('dblclick'));
  return {told, ticks, boxes, after: windows[0].viewBox.baseVal.width / windows[0].width.baseVal.value};
})()
"""


def test_pointing_reads_values_and_dragging_looks_closer_at_all_panels(shown, page, campaign):
    assert shown.load(page) == []
    run = next(r for r in campaign.runs if r.kind == "mptcp" and r.start_s is not None and r.start_s > 150)
    at_s = run.start_s + 5
    told = shown.ask(LIVE.replace("PART", f"{at_s / campaign.end_s}"))
    got = {name: float(value) for name, value in re.findall(r"MPTCP on (\w): ([\d.]+) Mbit/s", told["told"])}
    for flow in campaign.recorded.flows()[run.id, "probe"]:
        near = flow.goodput_bit_per_s[abs(flow.t_s - at_s) < 1] / 1e6
        assert near.min() - 0.5 <= got[flow.operator] <= near.max() + 0.5
    assert told["boxes"] == pytest.approx([0.25] * len(told["boxes"]), abs=0.01)
    assert 3 <= len(told["ticks"]) <= 10
    assert campaign.end_s * 0.25 - 0.1 <= min(told["ticks"]) < max(told["ticks"]) <= campaign.end_s * 0.5 + 0.1
    assert told["after"] == pytest.approx(1.0)


@pytest.mark.parametrize(
    "by", [pytest.param([], id="pooled"), pytest.param(["--by", "probe"], id="parted", marks=pytest.mark.exhaustive)]
)
def test_every_figure_of_several_kits_is_shown_whole_and_readable(shown, kits, by):
    with pictures.of_the_page():
        assert main(["report", str(kits), *by]) == 0
    assert shown.load((kits / "report.html").as_uri()) == []
    found = {one["name"]: one for one in shown.ask(ASKED)}
    captures = {"mohan-5b", "mohan-7b", "mohan-7c", "chen-rtt", "chen-out-of-order", "chen-table-delays"}
    assert set(found) == {figure.name for figure in every()} - captures - {"chen-8", "mohan-8b"}
    assert {name: one["outside"] for name, one in found.items() if one["outside"]} == {}
    assert {name: one["over"] for name, one in found.items() if one["over"]} == {}
