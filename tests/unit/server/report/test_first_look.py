"""``docs/notebooks/first-look.ipynb``: made of its script, runs on any campaign, and its figures are the report's."""

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
from paper_campaign import figures, made

from support.synthetic_campaign import Synthetic

NOTEBOOKS = Path(__file__).resolve().parents[4] / "docs" / "notebooks"
sys.path.insert(0, str(NOTEBOOKS))

import make_notebooks as make  # noqa: E402

from support.sample_export import export  # noqa: E402


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
