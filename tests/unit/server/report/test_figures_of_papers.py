"""Every figure of the papers: with its data it draws, and its CSV has what is drawn; without, it is named as lacking."""

import copy
import csv
import hashlib
import io
import json
import math
import os
import random
import re
import statistics
from dataclasses import fields, replace
from pathlib import Path
from xml.etree import ElementTree

import paper_runs
import pictures
import pytest
from paper_campaign import bins, evaluated, figures

from support.synthetic_campaign import Synthetic
from support.synthetic_folder import page_of, write
from tandem_server.analysis.material import Material, Span, material
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


def test_the_papers_figures_are_all_there():
    names = [figure.name for figure in EVERY]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z]+-[a-z0-9-]+", name) for name in names)
    assert set(names) == {
        *(f"mohan-{n}" for n in ("table-1", "table-2", "events", "2", "3", "4", "5a", "5b", "5c", "6", "7a", "7b", "7c", "8a", "8b", "9a")),
        *(f"mohan-{n}" for n in ("9b", "9c", "10")),
        *(f"cordero-{n}" for n in ("5", "6", "tdi", "7", "8", "9a", "9b", "10")),
        *(f"adarsh-{n}" for n in ("2", "table-1", "overlap", "4", "5", "6", "7", "8", "9", "10", "11")),
        *(f"chen-{n}" for n in ("4", "5", "table-3", "6", "7", "table-4", "8", "9", "10", "table-5", "11", "join")),
        *(f"chen-{n}" for n in ("rtt", "out-of-order", "table-delays")),
        *(f"trips-{n}" for n in ("tail", "quantiles", "impaired")),
    }  # fmt: skip


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


@pytest.mark.parametrize(("name", "where"), [("chen-table-3", "chen-sizes"), ("chen-table-4", "chen-hotspot")])
def test_chens_tables_have_the_mean_and_its_standard_error_beside_the_median(name, where, whole, sheets, drawn):
    """Of the runs at the hot spot in Table 4 alone."""
    made = next(row for row in rows(sheets[name].sheet) if row["quantity"] == "rtt_ms" and row["path"] == "wifi")
    tcp = [d for d in whole.downloads if d.kind == "tcp" and d.of.campaign == where]
    mine = [d for d in tcp if d.asked_bytes == made["size_bytes"]]
    values = [d.rtt_ms[d.of.roles["wifi"]] for d in mine if d.of.roles["wifi"] in d.rtt_ms]
    assert (made["n"], made["mean"]) == (len(values), pytest.approx(statistics.mean(values)))
    assert made["se"] == pytest.approx(statistics.stdev(values) / math.sqrt(len(values)))
    assert f"{made['mean']:.1f}\u2009±\u2009{made['se']:.1f}" in drawn[name].svg


def test_what_was_measured_at_the_hot_spot_is_in_its_figures_alone(whole, sheets):
    sizes = {d.asked_bytes for d in whole.downloads if d.of.campaign == "chen-hotspot"}
    of = {n: {row["n"] for row in rows(sheets[f"chen-{n}"].sheet)} for n in ("4", "5", "6", "7")}
    assert of == {n: {5} for n in of}  # five of each arm and size; both campaigns have the same sizes
    assert {row["y"] for row in rows(sheets["chen-7"].sheet)} == {0.8}
    assert len(rows(sheets["chen-6"].sheet)) == 4 * len(sizes)


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
def test_of_nothing_it_names_everything_that_it_lacks(figure: Figure):
    made = make(figure, Material())
    assert made.sheet is None
    assert figure.needs
    assert made.lacks == "; ".join(need.what for need in figure.needs)


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


def test_shares_say_from_which_side_they_are(drawn):
    notes = {name: one.note for name, one in drawn.items()}
    for name in ("adarsh-4", "adarsh-8", "chen-5"):
        assert re.search(r"Shares: the probe’s counters \(received\), downloads: \d+\.", notes[name]), notes[name]
    assert re.search(r"Shares: the probe’s counters \(received\), loads: \d+\.", notes["adarsh-7"])
    assert re.search(r"Shares: the probe’s counters \(acknowledged\), transfers: \d+\.", notes["cordero-9a"])


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


@pytest.mark.usefixtures("no_pictures")
def test_the_same_campaign_gives_the_same_figures(campaign, drawn):
    """That the same sheet is the same picture, test_figures_drawn shows."""
    again = figures(campaign, bins(campaign))
    assert [(one.csv, one.note) for one in again] == [(one.csv, one.note) for one in drawn.values()]


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
