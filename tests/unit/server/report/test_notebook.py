"""A campaign as tables: types, units, absent values; and ``docs/notebooks/first-look.ipynb``, which is made of its script, runs on any
campaign and draws the report's figures."""

import csv
import io
import json
import sys
from pathlib import Path

import pytest

pytest.importorskip("pandas", reason="pip install -r requirements/lock.txt")
pytest.importorskip("matplotlib", reason="pip install -r requirements/lock.txt")

import matplotlib as mpl
import matplotlib.pyplot as plt
import pandas as pd
from paper_campaign import figures, made

from support.synthetic_campaign import Synthetic
from support.synthetic_folder import with_database, write
from tandem.schema.metrics import MEASUREMENTS
from tandem_server.analysis import load

NOTEBOOKS = Path(__file__).resolve().parents[4] / "docs" / "notebooks"
sys.path.insert(0, str(NOTEBOOKS))

import make_notebooks as make  # noqa: E402

from support.sample_export import export  # noqa: E402


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    one = made()
    return one, load(write(one, tmp_path_factory.mktemp("notebook") / "campaign"), one.source)


def test_every_record_is_a_row_with_all_that_the_schema_has_and_what_is_absent_is_not_a_number(found):
    one, c = found
    for table in ("radio", "events", "round_trips", "subflows", "connections"):
        frame, measurement = getattr(c, table), table.removesuffix("s")
        assert len(frame) == sum(name == measurement for name, _, _ in one.source.points)
        assert {f.name for f in MEASUREMENTS[measurement].fields} < set(frame.columns)
        assert frame["utc"].is_monotonic_increasing
        assert str(frame["utc"].dt.tz) == "UTC"
    silent = c.radio[c.radio["state"] == "no_answer"]
    assert len(silent) == 3
    assert silent["rsrp_dbm"].isna().all()
    assert str(c.radio["eci"].dtype) == "Int64"
    assert str(c.connections["fallback"].dtype) == "boolean"
    assert c.runs["in_ledger"].isna().all()  # no registry in this folder
    assert any("registry.sqlite is not there" in line for line in c.missing)


def test_runs_and_their_tables_go_together(found):
    one, c = found
    assert set(c.runs["run"]) == {m["id"] for m in one.manifests} == set(c.ledger["run"])
    downloads = c.runs[c.runs["experiment"] == "download"]
    assert set(c.tables["download"]["run"]) <= set(downloads["run"])
    joined = c.tables["download"].merge(c.runs[["run", "mobility"]], on="run")
    assert set(joined["mobility"].dropna()) == {"static", "low", "high"}
    labelled = c.runs[c.runs["label"] == "driving"]
    assert set(labelled["mobility"]) == {"high"}
    assert "subflows" in repr(c)


def test_every_column_is_told_with_its_unit(found):
    _, c = found
    told = {(row.table, row.column): row.unit for row in c.columns.itertuples()}
    for name in ("runs", "radio", "events", "subflows", "connections", "ledger"):
        assert {(name, column) for column in getattr(c, name).columns} <= set(told)
    assert told["radio", "rsrp_dbm"] == "dBm"
    assert told["runs", "goodput_bit_per_s"] == "bit/s"
    assert told["download", "goodput_bit_per_s"] == "bit/s"


def test_records_come_out_of_the_folders_own_database(influx_binary, tmp_path):
    one = Synthetic(seconds=40.0)
    folder = with_database(one, tmp_path / "campaign", influx_binary)
    stored, listed = load(folder), load(folder, one.source)
    assert stored.missing == listed.missing == []
    assert stored.runs["in_ledger"].all()
    for name in ("radio", "events", "subflows", "connections"):
        by = [c for c in ("utc", "path", "kind", "end", "subflow", "run") if c in getattr(listed, name)]
        a, b = (getattr(c, name).sort_values(by).reset_index(drop=True) for c in (stored, listed))
        pd.testing.assert_frame_equal(a, b)


def test_without_a_database_the_tables_are_empty_and_it_says_so(tmp_path):
    one = Synthetic(seconds=40.0)
    c = load(write(one, tmp_path / "campaign"))
    assert len(c.radio) == 0
    assert "rsrp_dbm" in c.radio.columns
    assert len(c.runs) == len(one.manifests)
    assert any("holds no database of this campaign" in line for line in c.missing)


class Ran:
    """The notebook's cells, run in order in one namespace: its names, what it printed, the axes of each figure it showed."""

    def __init__(self, folder, monkeypatch, capsys):
        mpl.use("Agg")
        monkeypatch.setenv("TANDEM_CAMPAIGN", str(folder))
        monkeypatch.setattr(plt, "show", self._show)
        self.figures, self.names = [], {}
        capsys.readouterr()
        for cell in json.loads((NOTEBOOKS / "first-look.ipynb").read_text())["cells"]:
            if cell["cell_type"] == "code":
                exec("".join(cell["source"]), self.names)  # noqa: S102  our own notebook
        self.said = capsys.readouterr().out

    def _show(self):
        axes = plt.gca()
        self.figures.append(({line.get_label() for line in axes.lines}, len(axes.patches), axes.get_ylabel()))
        plt.close("all")


def test_the_notebooks_are_what_their_scripts_make():
    assert [path.name for path in make.scripts()] == ["first-look.py"]
    for path in make.scripts():
        assert path.with_suffix(".ipynb").read_text() == make.notebook(path.read_text()), (
            "python docs/notebooks/make_notebooks.py"
        )
    told = json.loads((NOTEBOOKS / "first-look.ipynb").read_text())
    assert (told["nbformat"], told["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in told["cells"]}) == len(told["cells"]) > 8
    assert "".join(told["cells"][0]["source"]).startswith("# A first look at a campaign\n\n")


@pytest.mark.usefixtures("no_pictures")
def test_its_figures_are_the_reports_and_its_answer_is_counted(tmp_path, monkeypatch, capsys):
    one = made()
    ran = Ran(export(tmp_path / "campaign", positions=False, made=one), monkeypatch, capsys)
    (_, bars, label), (_, rates, _), (lines, _, _) = ran.figures
    assert (label, bars) == ("goodput, Mbit/s", len(ran.names["classes"]) * len(ran.names["who"]))
    drawn = {figure.figure.name: figure.csv for figure in figures(ran.names["c"].evaluation)}
    report = {(row["series"], round(float(row["y"]), 3)) for row in csv.DictReader(io.StringIO(drawn["mohan-5a"]))}
    own = {(who, round(row[0.5], 3)) for (_, who), row in ran.names["goodput"].iterrows()}
    assert own == report
    assert rates == ran.names["rates"].size > 0
    assert {"a", "b"} & lines
    polls = {}
    for name, _, row in one.source.points:
        if name == "radio" and "rsrp_dbm" in row.fields:
            polls.setdefault(row.tags["operator"], {})[row.utc_ns // 10**9] = row.fields["rsrp_dbm"]
    poor = {operator: rank_lowest(levels) for operator, levels in polls.items()}
    seconds = set(polls["A"]) & set(polls["B"])
    (answer,) = ran.names["answer"].to_dict("records")
    assert answer["seconds"] == len(seconds)
    assert answer["both_poor"] == pytest.approx(sum(poor["A"][s] and poor["B"][s] for s in seconds) / len(seconds))
    assert "times as often as if they were independent" in ran.said


def rank_lowest(levels):
    """Whether each second's level is in the lowest quarter: the mean rank of its equals, of all."""
    ordered = sorted(levels.values())
    return {
        second: (ordered.index(level) + 1 + len(ordered) - ordered[::-1].index(level)) / 2 / len(ordered) <= 0.25
        for second, level in levels.items()
    }


def test_what_a_campaign_lacks_it_says(tmp_path, monkeypatch, capsys):
    quiet = Synthetic(seconds=60.0, paths={"a": "A"}, runs=False, events=False)
    ran = Ran(export(tmp_path / "campaign", positions=False, made=quiet), monkeypatch, capsys)
    assert len(ran.figures) == 3
    for words in ("download at a time", "drop of the signal while a run was recorded", "two operators were polled"):
        assert f"no {words}" in ran.said
