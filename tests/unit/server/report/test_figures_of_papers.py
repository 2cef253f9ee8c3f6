"""Every figure of the papers: with its data it draws, and its CSV has what is drawn; without, it is named as lacking. Manifests that hold
anything are never an error."""

import copy
import csv
import hashlib
import io
import json
import math
import os
import random
import re
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import paper_runs
import pictures
import pytest
from paper_campaign import bins, evaluated, figures, made

from support.synthetic_campaign import Synthetic
from support.synthetic_folder import page_of, write
from tandem_server.analysis.evaluate import evaluate
from tandem_server.analysis.folder import load
from tandem_server.analysis.material import Material, Span, material, setting
from tandem_server.analysis.truth import TrueShape, Truth
from tandem_server.cli.main import main
from tandem_server.report.figures.figure import KINDS, Drawn, Figure, LackingError, every, make, write_figures
from tandem_server.report.figures.marks import Cells
from tandem_server.report.figures.sheet import Sheet, as_csv, rows

EVERY = every()
NEVER = {"chen-8"}
"""No kernel does what it shows."""
NEEDS_CAPTURES = {"mohan-7c", "chen-rtt", "chen-out-of-order", "chen-table-delays"}
PRINTED = os.environ.get("TANDEM_HYPOTHESIS") == "all"
"""Whether each is drawn for a printer too, which is half the time; otherwise the one of the command is."""
SVG = "{http://www.w3.org/2000/svg}"
each = pytest.mark.parametrize("figure", EVERY, ids=[f.name for f in EVERY])


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    return evaluated(tmp_path_factory.mktemp("papers") / "campaign")


@pytest.fixture(scope="module")
def whole(campaign) -> Material:
    return material(campaign, bins(campaign))


@pytest.fixture(scope="module")
def drawn(campaign) -> dict[str, Drawn]:
    return {one.figure.name: one for one in figures(campaign, bins(campaign), pdf=PRINTED)}


@pytest.fixture(scope="module")
def less(campaign) -> list[Drawn]:
    """Without what captures would tell."""
    with pictures.none():
        return figures(campaign, pdf=True)


@pytest.fixture(scope="module")
def sheets(whole):
    return {figure.name: make(figure, whole) for figure in EVERY}


@each
def test_with_its_data_it_is_drawn_and_its_csv_has_what_is_drawn(figure: Figure, sheets, drawn):
    made = sheets[figure.name]
    if figure.name in NEVER:
        assert made.sheet is None
        return
    assert made.sheet is not None, made.lacks
    table = list(csv.DictReader(io.StringIO(as_csv(made.sheet))))
    assert len(table) == len(rows(made.sheet)) > 0
    root = ElementTree.fromstring(drawn[figure.name].svg)  # noqa: S314  (our own text)
    groups = [g for g in root.iter(f"{SVG}g") if g.get("data-mark")]
    marks = [mark for panel in made.sheet.panels for mark in panel.marks if list(mark.rows())]
    told = {(row["mark"], row["series"]) for row in table}
    assert told == {(type(mark).__name__.lower(), mark.series) for mark in marks}
    assert {(g.get("data-mark"), g.get("data-series")) for g in groups} >= told
    assert all(len(g) for g in groups)
    for row, number in zip(table, rows(made.sheet), strict=True):
        for key, value in number.items():
            if isinstance(value, float):
                assert math.isfinite(value)
                assert float(row[key]) == value


def digest(sheet: Sheet) -> str:
    """Of every number drawn, to nine figures, with what it is of."""
    told = [{key: f"{v:.9g}" if isinstance(v, float) else v for key, v in row.items()} for row in rows(sheet)]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:16]


def test_the_numbers_of_every_figure_are_those_that_were_kept(sheets):
    """``figures.json`` changes only where a mistake is mended; ``paper_campaign.py FOLDER`` writes the CSVs to compare."""
    golden = json.loads(Path(__file__).with_name("figures.json").read_text())
    assert {name: digest(made.sheet) for name, made in sheets.items() if made.sheet is not None} == golden


@each
def test_it_tells_its_sample_sizes_and_units_in_letters_that_can_be_read(figure: Figure, sheets, drawn):
    sheet = sheets[figure.name].sheet
    if sheet is None:
        return
    texts = ElementTree.fromstring(drawn[figure.name].svg).iter(f"{SVG}text")  # noqa: S314
    words = [(t.text or "", float(re.search(r"font-size:([\d.]+)px", t.get("style"))[1])) for t in texts]
    if not any(isinstance(mark, Cells) for panel in sheet.panels for mark in panel.marks):
        assert any(re.search(r"\bn=\d", word) for word, _ in words)
        assert all(panel.y.name and (panel.x.names or panel.x.name) for panel in sheet.panels)
    assert [word for word, size in words if size < 7.5] == [], "points, as printed"


@each
def test_it_lacks_each_of_its_needs_by_itself_and_nothing_else(figure: Figure, whole):
    found = set()
    for part in fields(Material):
        less = copy.copy(whole)
        setattr(less, part.name, type(getattr(whole, part.name))())
        lacks = {need.what for need in figure.needs if not need.there(less)}
        made = make(figure, less)
        found |= lacks
        if lacks:
            assert made.lacks == "; ".join(need.what for need in figure.needs if need.what in lacks)
        else:
            assert made.sheet is not None or made.lacks  # drawn, or named all the same: never an error
    assert found == {need.what for need in figure.needs}


def test_the_page_shows_every_figure_and_at_its_end_names_those_that_it_lacks(campaign, less):
    html = page_of(campaign, less)
    shown, named = (set(re.findall(rf'data-{word}="([^"]+)"', html)) for word in ("figure", "lacking"))
    assert shown | named == {f.name for f in EVERY}
    assert not shown & named
    assert named == {"mohan-5b", "mohan-7b", *NEEDS_CAPTURES, *NEVER}
    lacking = html[html.index(f"<details><summary>{len(named)} figures that this campaign lacks") :]
    assert "bins of the packet captures (tandem-server analyse)" in lacking
    assert lacking.count("data-lacking") == len(named)
    assert "data-figure" not in lacking


def test_files_are_for_the_page_for_a_printer_and_for_a_program_and_go_with_their_figure(less, drawn, tmp_path):
    folder, kinds = tmp_path / "figures", KINDS if PRINTED else ("svg", "csv")
    write_figures(folder, list(drawn.values()))
    names = {f.name for f in folder.iterdir()}
    assert names == {f"{f.name}.{kind}" for f in EVERY if f.name not in NEVER for kind in kinds} | {"figures.json"}
    for figure in (f for f in EVERY if f.name not in NEVER):
        assert not PRINTED or (folder / f"{figure.name}.pdf").read_bytes().startswith(b"%PDF-")
        assert (folder / f"{figure.name}.csv").read_text() == drawn[figure.name].csv
        ElementTree.parse(folder / f"{figure.name}.svg")  # noqa: S314
    write_figures(folder, less)
    gone = names - {f.name for f in folder.iterdir()}
    assert {f"mohan-{n}.{kind}" for n in ("5b", "7b") for kind in kinds} <= gone
    assert {f"{name}.{kind}" for name in NEEDS_CAPTURES for kind in kinds} <= gone


def test_the_command_puts_the_page_where_asked_and_the_figures_beside_it(tmp_path, capsys):
    one = Synthetic(seconds=30.0)
    one.manifests += paper_runs.cordero_bandwidth(random.Random(1))
    folder = write(one, tmp_path / "campaign")
    (tmp_path / "elsewhere").mkdir()
    page = tmp_path / "elsewhere" / "page.html"
    assert main(["report", str(folder), "--out", str(page)]) == 1  # no database: something is missing, and it is told
    out, err = capsys.readouterr()
    assert out.strip() == str(page)
    assert "holds no database" in err
    drawn = {kind: (tmp_path / "elsewhere" / "figures" / f"cordero-5.{kind}").read_bytes() for kind in KINDS}
    assert (drawn["pdf"][:5], b'data-mark="' in drawn["svg"]) == (b"%PDF-", True)
    assert not (folder / "report.html").exists()
    assert 'data-figure="cordero-5"' in page.read_text()


def test_a_class_whose_spans_end_before_a_second_poll_has_no_panel(whole):
    figure = next(one for one in EVERY if one.name == "mohan-4")
    long = max(whole.spans, key=lambda span: span.end_s - span.start_s)
    other = "low" if long.mobility != "low" else "high"
    made = figure.draw(replace(whole, spans=[long, Span(0.0, 0.5, other)]))
    assert len(made.panels) == 1
    with pytest.raises(LackingError, match="two polls"):
        figure.draw(replace(whole, spans=[Span(0.0, 0.5, other)]))


ODD = (
    None, "x", "", -1, 0, -3.5, 1e300, 10**30, True, [], {}, [1], {"a": 1}, float("nan"), 1e-12, "a", "mptcp", 5, 1e9,
)  # fmt: skip


def spoil(draw: random.Random, value: Any) -> None:
    """One value somewhere in it becomes another, or goes."""
    while isinstance(value, dict | list) and value:
        key = draw.choice(list(value)) if isinstance(value, dict) else draw.randrange(len(value))
        inner = value[key]
        if not isinstance(inner, dict | list) or not inner or draw.random() < 0.1:
            if isinstance(value, dict) and draw.random() < 0.1:
                del value[key]
            else:
                value[key] = copy.deepcopy(draw.choice(ODD))
            return
        value = inner


def test_whatever_manifests_hold_the_figures_are_made(tmp_path):
    one, kinds = made(), ("mptcp", "tcp", "any")
    whole = load(write(one, tmp_path / "campaign"))
    for seed in (
        range(8) if os.environ.get("TANDEM_HYPOTHESIS") == "all" else (0, 3, 7)
    ):  # little, all, and pictures of the most spoilt
        draw, campaign = random.Random(seed), copy.copy(whole)
        spoilt = copy.deepcopy(draw.sample(one.manifests, 250))
        for _ in range((1, 20, 400, 2000)[seed % 4]):
            spoil(draw, draw.choice(spoilt))
        campaign.manifests = [m for m in spoilt if isinstance(m.get("id"), str) and m.get("kind") in kinds]
        e = evaluate(campaign, one.source, set())
        if seed > 5:  # of the most spoilt, pictures too
            assert all(drawn.svg or drawn.lacks for drawn in figures(e, bins(e))), seed
            continue
        m = material(e, bins(e))
        assert all(found.sheet is not None or found.lacks for found in (make(figure, m) for figure in every())), seed


def test_in_the_field_labels_make_the_classes_and_without_labels_the_detector(tmp_path):
    one = made()
    folder = write(one, tmp_path / "labelled")
    (folder / "truth.jsonl").unlink()
    campaign = load(folder)
    m = material(evaluate(campaign, one.source, one.ledger()))
    assert {s.mobility for s in m.spans} == {"static", "low", "high"}
    assert {d.of.mobility for d in m.downloads if d.of.label == "driving"} == {"high"}
    assert {d.of.mobility for d in m.downloads if not d.of.label} == {"static", "moving"}

    campaign.manifests = [one for one in campaign.manifests if not one.get("campaign", {}).get("label")]
    m = material(evaluate(campaign, one.source, one.ledger()))
    assert {s.mobility for s in m.spans} == {"static", "moving"}
    assert m.class_at(m.spans[0].start_s) == m.spans[0].mobility
    assert m.class_at(-100.0) is None


# --- what a bench made of the links is a run's shape where the run says none of its own and lies wholly within

SLOWER = {"wifi": {"rtt_ms": 100.0, "down_loss_percent": 0.0}, "a": {"rtt_ms": 0.0}}


def shape_of(start_s: float, end_s: float, **manifest: Any) -> dict[str, Any]:
    truth = Truth(shapes=[TrueShape(10.0, 20.0, SLOWER)])
    clock = SimpleNamespace(seconds=lambda utc_ns, _monotonic_ns, _boot: None if utc_ns is None else utc_ns / 1e9)
    e: Any = SimpleNamespace(campaign=SimpleNamespace(truth=truth), clock=clock, doing=lambda _start_s, _end_s: None)
    run: Any = SimpleNamespace(id="r", campaign="adarsh-controlled", step="downloads")
    told = {"started_utc_ns": round(start_s * 1e9), "ended_utc_ns": round(end_s * 1e9), **manifest}
    return dict(setting(e, run, told).shape)


def test_of_a_run_that_lies_wholly_within_and_the_runs_own_shape_goes_before_it() -> None:
    for span, expected in (((10.0, 20.0), SLOWER), ((9.9, 15.0), {}), ((15.0, 20.1), {}), ((30.0, 31.0), {})):
        assert shape_of(*span) == expected, span
    own = {"shape": {"a": {"asked": {"up_bit_per_s": 2e6}}}}
    assert shape_of(12.0, 13.0, conditions=own) == {"a": {"up_bit_per_s": 2e6}}
