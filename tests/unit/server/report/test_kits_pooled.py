"""Several kits as one campaign: figures, tables and summary are those of their measurements put together; times are each kit's own."""

import csv
import io
import json
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyarrow", reason="pip install -r requirements/lock.txt")

import paper_runs

from support.exported_kits import kit, write_export
from support.synthetic_campaign import Synthetic
from support.synthetic_folder import write
from tandem_server.analysis import pool as pools
from tandem_server.analysis.evaluate import evaluate
from tandem_server.analysis.events import NetworkEvent
from tandem_server.analysis.material import Material, Span, pooled
from tandem_server.analysis.measured import Download, Setting
from tandem_server.analysis.mobility_classes import RunClasses
from tandem_server.analysis.recorded import SubflowSeries
from tandem_server.analysis.records import records_of
from tandem_server.cli.main import main
from tandem_server.report.figures.figure import Figure, every, make, make_parts
from tandem_server.report.figures.sheet import rows

pytestmark = pytest.mark.usefixtures("no_pictures")
FIGURES = {figure.name: figure for figure in every()}
ONE_KITS = {"mohan-3", "mohan-4", "mohan-9a"}
"""They show one event, drive or play."""


def runs_of_papers(seed: int) -> list:
    r = random.Random(seed)
    makers = (paper_runs.mohan_plays, paper_runs.mohan_labelled, paper_runs.adarsh_survey, paper_runs.cordero_bandwidth)
    return [run for maker in makers for run in maker(r)]


@pytest.fixture(scope="module")
def export(tmp_path_factory) -> Path:
    made = {f"probe-{n}": Synthetic(seed=n) for n in (1, 2)}
    kits = {probe: (one, kit(one, probe, runs_of_papers(n))) for n, (probe, one) in enumerate(made.items(), 1)}
    return write_export(tmp_path_factory.mktemp("kits") / "export", kits)


def pool_of(folder: Path, by: str | None = None) -> pools.Pool:
    found = pools.load([folder])
    return pools.pool([pools.Kit(evaluate(one, records_of(folder, one.probe), set())) for one in found], by)


@pytest.fixture(scope="module")
def pool(export) -> pools.Pool:
    return pool_of(export)


def reported(capsys, status: int, *words: object) -> dict:
    """What ``report --json`` prints."""
    capsys.readouterr()
    assert main(["report", *map(str, words), "--json"]) == status
    return json.loads(capsys.readouterr().out)


def drawn(name: str, m: Material) -> list[dict]:
    made = make(FIGURES[name], m)
    assert made.sheet is not None, made.lacks
    return rows(made.sheet)


def test_each_kit_keeps_its_own_and_the_pool_has_all(pool):
    assert [one.probe for one in pool.kits] == ["probe-1", "probe-2"]
    assert pool.several
    one, two = pool.material.kits
    for name in ("downloads", "plays", "bandwidth", "surveys", "events", "spans"):
        assert getattr(pool.material, name) == [*getattr(one, name), *getattr(two, name)], name
    assert (one.operators, two.operators) == ({"a": "A", "b": "B"}, {"a": "B", "b": "C"})
    assert pool.material.named() == ["A", "B", "C"]


@pytest.mark.parametrize("figure", [f for f in every() if f.name not in ONE_KITS], ids=lambda f: f.name)
def test_a_pools_sample_sizes_are_the_sums_of_its_kits(figure: Figure, pool):
    made = [make(figure, m).sheet for m in (*pool.material.kits, pool.material)]
    if made[-1] is None:
        assert made[0] is made[1] is None
        return

    def sizes(sheet) -> Counter:
        """By series and place; each curve of a distribution, and each heat map, once."""
        out: Counter = Counter()
        for panel in sheet.panels if sheet is not None else ():
            for mark in panel.marks:
                told = list(mark.rows())
                if {row.get("n") for row in told} == {getattr(mark, "n", None)}:
                    told = told[:1]
                for row in told:
                    out[type(mark).__name__] += row.get("n") or 0
        return out

    assert sizes(made[2]) == sizes(made[0]) + sizes(made[1])


def series(run: str, operator: str) -> SubflowSeries:
    t = np.arange(0.0, 60.0, 0.1)
    rtt = np.where((t > 30) & (t < 34), 400.0, 50.0)
    return SubflowSeries(run, "1", "server", "a", operator, t, np.full(len(t), 1e6), rtt)


def downloaded(run: str) -> Download:
    of = Setting(run, "", "", "", {}, {}, ("a",), "low", 0.0, 60.0, {"a": "A"})
    told = ("p", "single", "mptcp", "a", "", None, None, 1e6, 60.0, 40.0, {"a": 1.0}, {}, {}, {"a": 50.0}, {})
    return Download(of, *told)


def test_medians_are_those_of_all_kits_runs_and_an_operators_whichever_path_it_is():
    """A is path a of the first kit (1, 2 and 9 Mbit/s) and path b of the second (4 and 5)."""

    def own(probe: str, operators: dict[str, str], *told: tuple[str, str, float]) -> Material:
        made = []
        for n, (kind, primary, mbit_per_s) in enumerate(told):
            one = downloaded(f"{probe}-{n}")
            of = replace(one.of, paths=("a", "b"), operators=operators)
            made.append(replace(one, of=of, kind=kind, primary=primary, goodput_bit_per_s=mbit_per_s * 1e6))
        return Material(operators=operators, spans=[Span(0.0, 60.0, "low")], probe=probe, downloads=made)

    a = (("tcp", "a", 1.0), ("tcp", "a", 9.0), ("tcp", "a", 2.0), ("mptcp", "a", 3.0))
    b = (("tcp", "b", 4.0), ("tcp", "b", 5.0), ("tcp", "a", 70.0), ("mptcp", "b", 8.0))
    kits = [own("probe-1", {"a": "A", "b": "B"}, *a), own("probe-2", {"a": "C", "b": "A"}, *b)]
    told = {row["series"]: (row["y"], row["n"]) for row in drawn("mohan-5a", pooled(kits, RunClasses()))}
    assert told == {"TCP A": (4.0, 5), "TCP C": (70.0, 1), "MPTCP": (5.5, 2)}


def test_events_are_counted_in_windows_of_their_own_kit(pool):
    of_kits = [row for own in pool.material.kits for row in drawn("mohan-2", own)]
    counts = Counter()
    for row in of_kits:
        counts[row["panel"], row["series"], row["x"]] += row["n"]  # B is in both kits, A and C in one each
    assert {(row["panel"], row["series"], row["x"]): row["n"] for row in drawn("mohan-2", pool.material)} == counts


def kit_of(probe: str, runs: tuple[str, ...] = (), events: tuple[NetworkEvent, ...] = ()) -> Material:
    flows = {(run, "server"): [series(run, "A")] for run in runs}
    told = {"downloads": [downloaded(run) for run in runs], "flows": flows, "events": list(events)}
    return Material(operators={"a": "A", "b": "B"}, spans=[Span(0.0, 60.0, "low")], probe=probe, **told)


DROP = NetworkEvent(30.0, "A", "drop", -9.0)


@pytest.mark.parametrize("name", ["mohan-3", "mohan-8a", "mohan-8b"])
def test_an_event_of_one_kit_does_nothing_to_anothers_run_at_that_time(name):
    alone = kit_of("probe-1", ("r",), (DROP,))
    assert make(FIGURES[name], alone).sheet is not None
    apart = pooled([kit_of("probe-1", ("r",)), kit_of("probe-2", (), (DROP,))], RunClasses())
    assert make(FIGURES[name], apart).sheet is None
    both = pooled([alone, kit_of("probe-2", (), (DROP,))], RunClasses())
    assert [r | {"panel": ""} for r in drawn(name, both)] == [r | {"panel": ""} for r in drawn(name, alone)]


def test_events_of_two_kits_neither_overlap_nor_follow_nor_crowd_each_other():
    handover = NetworkEvent(31.0, "A", "handover")
    other = NetworkEvent(30.5, "B", "drop", -7.0)
    apart = pooled([kit_of("probe-1", ("r",), (DROP,)), kit_of("probe-2", (), (handover, other))], RunClasses())
    by_place = {row["x"]: (row["y"], row["n"]) for row in drawn("mohan-events", apart)}
    assert by_place[0.0] == (0.0, 1)  # the handover follows no drop of its own kit
    assert by_place[3.0] == (2 / 3, 3)  # the second kit's two overlap, the first's does not
    assert make(FIGURES["mohan-8b"], apart).sheet is not None  # no event is near the first kit's
    near = kit_of("probe-1", ("r",), (DROP, handover))
    assert make(FIGURES["mohan-8b"], near).sheet is None


def test_paths_of_no_known_operator_are_their_kits(tmp_path):
    made = Synthetic(seed=3, seconds=30.0)
    found = pool_of(write_export(tmp_path / "out", {f"kit-{n}": (made, kit(made, f"kit-{n}")) for n in (1, 2)}))
    assert found.material.named() == ["kit-1/a", "kit-1/b", "kit-2/a", "kit-2/b"]
    assert [own.part("operator") for own in found.kits] == ["unknown", "unknown"]
    paths = {row["path"] for row in table_rows(found, "download")}
    assert paths == {"primary varies", "kit-1/a", "kit-1/b", "kit-2/a", "kit-2/b"}


def table_rows(found: pools.Pool, name: str) -> list[dict]:
    (table,) = [t for t in found.results.flat if t.name == name]
    return [dict(zip([c.key for c in table.columns], row, strict=True)) for row in table.rows]


def test_tables_name_operators_and_say_of_how_many_probes_they_are(pool):
    downloads = table_rows(pool, "download")
    rows_of = {row["path"]: row for row in downloads if (row["kind"], row["pairing"]) == ("tcp", "sequential")}
    of_how_many = {path: (row["probes"], row["runs"]) for path, row in rows_of.items()}
    assert of_how_many == {"A": (1, 2), "B": (2, 4), "C": (1, 2)}
    (gain,) = [row for row in table_rows(pool, "download-gain") if row["pairing"] == "sequential"]
    assert (gain["probes"], gain["values"]) == (2, 4)


@pytest.mark.parametrize(
    ("by", "parts"),
    [
        ("probe", {"probe-1": ["probe-1"], "probe-2": ["probe-2"]}),
        ("operator", {"A + B": ["probe-1"], "B + C": ["probe-2"]}),
        ("city", {"Davis": ["probe-1"], "unknown": ["probe-2"]}),
    ],
)
def test_parted_each_part_is_its_kits_alone(export, by, parts, capsys):
    told = json.loads((export / "campaign.json").read_text())
    told["probes"]["probe-1"]["city"] = "Davis"
    (export / "campaign.json").write_text(json.dumps(told))
    summary = reported(capsys, 0, export, "--by", by)
    assert summary == json.loads((export / "summary.json").read_text())
    assert (summary["by"], {one["part"]: one["probes"] for one in summary["parts"]}) == (by, parts)
    column = "operators" if by == "operator" else by
    heads = [c["key"] for c in summary["tables"]["download"]["columns"]]
    assert {row[heads.index(column)] for row in summary["tables"]["download"]["rows"]} == set(parts)
    table = list(csv.DictReader(io.StringIO((export / "figures" / "mohan-5a.csv").read_text())))
    found = pool_of(export, by)
    for part, own in found.parts.items():
        mine = [{k: v for k, v in row.items() if k != "part"} for row in table if row["part"] == part]
        alone = [{k: "" if v is None else str(v) for k, v in row.items()} for row in drawn("mohan-5a", own)]
        assert mine == alone
    with (export / "tables" / "runs.csv").open() as file:
        assert Counter(row[column] for row in csv.DictReader(file)) == {
            part: sum(len(k.campaign.manifests) for k in found.kits if k.part(by) == part) for part in parts
        }


def test_the_note_of_parts_tells_the_counts_of_all_and_names_a_part_that_lacks_a_figure():
    parts = {one: kit_of(one, (f"r-{one}",), (DROP,)) for one in ("one", "two")}
    whole = pooled(list(parts.values()), RunClasses())
    note = make_parts(FIGURES["mohan-8a"], whole, parts).sheet.note
    assert note == make(FIGURES["mohan-8a"], whole).sheet.note
    assert "(runs: 2)" in note
    without = kit_of("probe-2")
    parts = {"one": kit_of("probe-1", ("r",), (DROP,)), "two": without}
    sheet = make_parts(FIGURES["mohan-8b"], pooled(list(parts.values()), RunClasses()), parts).sheet
    assert {panel.part for panel in sheet.panels} == {"one"}
    assert "two lacks runs of the experiment download" in sheet.note
    assert make_parts(FIGURES["mohan-8b"], without, {"two": without}).lacks


def test_the_report_of_a_pool_and_of_one_of_its_kits(export, capsys):
    summary = reported(capsys, 0, export)
    page = (export / "report.html").read_text()
    index = json.loads((export / "figures" / "figures.json").read_text())
    svgs = {one["name"]: (export / "figures" / f"{one['name']}.svg").read_text() for one in index if one["drawn"]}
    alone = [reported(capsys, 0, export, "--probe", probe) for probe in ("probe-1", "probe-2")]
    assert not any("probes" in one for one in alone)
    assert summary["radio_records"] == sum(one["radio_records"] for one in alone) == 720
    assert summary["records"]["in_database"] == sum(one["records"]["in_database"] for one in alone)
    runs = [{k: v for k, v in run.items() if k != "probe"} for run in summary["runs"]]
    assert runs == [run for one in alone for run in one["runs"]]
    made = {probe: len(list((export / "probe" / probe / "runs").iterdir())) for probe in ("probe-1", "probe-2")}
    assert {one["probe"]: one["runs"] for one in summary["probes"]} == made
    assert "2 probes pooled" in page
    assert "are of probe-1, which was polled longest" in page
    assert {tuple(one["probes"]) for one in index if one["drawn"]} == {("probe-1", "probe-2")}
    assert all("(2 probes: probe-1, probe-2)" in svg for svg in svgs.values())


@pytest.fixture
def small(tmp_path) -> Path:
    made = {f"probe-{n}": Synthetic(seed=n, seconds=30.0) for n in (1, 2)}
    return write_export(tmp_path / "out", {probe: (one, kit(one, probe)) for probe, one in made.items()})


def spoil(folder: Path, probe: str, number: int, **changed) -> None:
    """The first ``number`` manifests of a probe."""
    for path in sorted((folder / "probe" / probe / "runs").iterdir())[:number]:
        path.write_text(json.dumps(json.loads(path.read_text()) | changed))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"started_utc_ns": None, "ended_utc_ns": None}, "probe-2: 2 of 3 runs tell no time, its clock was not set"),
        ({"experiment": {"name": "download", "version": 2}}, "its version of download is not the same for all runs"),
        ({"campaign": {"name": "commute", "form": "short", "step": "pairs"}}, "its form is not the same for all runs"),
    ],
)
def test_what_makes_figures_mean_less_is_one_line_and_on_every_figure(small, capsys, changed, words):
    spoil(small, "probe-2", 2, **changed)
    assert main(["report", str(small)]) == 0
    lines = capsys.readouterr().err.splitlines()
    page = (small / "report.html").read_text()
    assert json.loads((small / "summary.json").read_text())["marks"] == pool_of(small).marks
    (line,) = lines
    assert words in line
    assert line.removeprefix("tandem-server report: note: ") in page.replace("&#39;", "'")
    assert page.count("Marks above: 1.") == page.count('<figure class="of-paper"') > 0


def test_plays_by_two_players_are_marked(tmp_path):
    made, plays = Synthetic(seconds=30.0), list(paper_runs.mohan_plays(random.Random(1)))
    for play in plays[:3]:
        play["result"]["player"] = {"name": "vlc", "version": "3.0.18", "logic": "rate"}
    (mark,) = pool_of(write_export(tmp_path / "out", {"probe-1": (made, kit(made, "probe-1", plays))})).marks
    assert mark.startswith(f"mohan-dash: plays by several players (own: {len(plays) - 3}, vlc: 3): they are pooled")


def test_runs_without_a_time_are_in_no_class_and_join_nothing(small):
    spoil(small, "probe-2", 3, started_utc_ns=None, ended_utc_ns=None)
    found = pool_of(small)
    other, mine = ([d.of.mobility for d in own.downloads] for own in found.material.kits)
    assert (len(found.kits[1].campaign.manifests), mine, all(other)) == (3, [None] * 3, True)


def test_a_path_that_changed_its_operator_and_a_kit_that_changed_its_city_are_told(small):
    spoil(small, "probe-2", 3, environment={"city": "Oslo"})
    assert pool_of(small).marks == []
    first = min((small / "probe" / "probe-1" / "runs").iterdir())
    told = json.loads(first.read_text())
    told["result"]["subflows"][0]["operator"] = "D"
    first.write_text(json.dumps(told))
    spoil(small, "probe-2", 3, environment={"city": "Bergen"})
    spoil(small, "probe-2", 1, environment={"city": "Oslo"})
    found = pool_of(small, "city")
    assert any("probe-1: path" in line and "then" in line for line in found.marks)
    assert any("it measured in Bergen and Oslo" in line for line in found.marks)
    assert list(found.parts) == ["Bergen + Oslo", "unknown"]


def test_runs_of_another_format_are_left_out_in_one_line(small, capsys):
    spoil(small, "probe-1", 2, format="tandem-run/9")
    assert main(["report", str(small), "--json"]) == 1
    out, err = capsys.readouterr()
    (line,) = err.splitlines()
    assert "format 'tandem-run/9', this program reads 'tandem-run/1'" in line
    assert "2 runs are left out" in line
    assert [one["runs"] for one in json.loads(out)["probes"]] == [1, 3]


def test_runs_that_two_kits_have_count_once(small):
    path = next((small / "probe" / "probe-1" / "runs").iterdir())
    (small / "probe" / "probe-2" / "runs" / path.name).write_text(path.read_text())
    found = pool_of(small)
    assert [len(own.campaign.manifests) for own in found.kits] == [3, 3]
    assert [line for line in found.missing if "runs are probe-1's too" in line]


def test_several_folders_are_one_campaign_and_one_kit_in_two_is_refused(tmp_path, small, capsys):
    made = Synthetic(seed=3, seconds=30.0)
    other = write_export(tmp_path / "other", {"probe-3": (made, kit(made, "probe-3"))})
    assert main(["report", str(small), str(other)]) == 0
    summary = json.loads((small / "summary.json").read_text())
    assert [one["probe"] for one in summary["probes"]] == ["probe-1", "probe-2", "probe-3"]
    assert not (other / "summary.json").exists()
    (other / "campaign.json").write_text(json.dumps({"format": "tandem-campaign/9"}))
    capsys.readouterr()
    refused = ((small, "probe-1 is in"), (other, "format 'tandem-campaign/9'"), (tmp_path / "no", "no such folder"))
    for folder, words in refused:
        assert main(["report", str(small), str(folder)]) == 2
        err = capsys.readouterr().err
        assert (words in err, err.count("\n")) == (True, 1)


def test_a_broken_kit_costs_itself_only(small, capsys):
    for path in (small / "probe" / "probe-2" / "records").rglob("*.parquet"):
        path.write_bytes(b"no such file")
    assert main(["report", str(small), "--json"]) == 1
    out, err = capsys.readouterr()
    assert "cannot be read" in err
    assert "Traceback" not in err
    assert [one["radio_records"] for one in json.loads(out)["probes"]] == [60, None]


def test_a_folder_of_several_probes_that_is_no_export_says_that_one_is_read(tmp_path, capsys):
    folder = write(Synthetic(seconds=30.0), tmp_path / "bench")
    (folder / "probe" / "probe-0" / "runs").mkdir(parents=True)
    line = "the folder has 2 probes and is no export: only probe-1 is read; hint: --probe probe-0"
    for more, said in ([], 1), (["--probe", "probe-1"], 0):
        assert main(["report", str(folder), *more]) == 1  # no database
        assert capsys.readouterr().err.count(line) == said


def test_as_tables_for_a_notebook(small):
    pytest.importorskip("pandas", reason="pip install -r requirements/lock.txt")
    from tandem_server.analysis import load

    c = load(small)
    assert c.missing == []
    for name in ("runs", "radio", "ledger"):
        frame = getattr(c, name)
        own = {probe: getattr(load(small, probe=probe), name) for probe in ("probe-1", "probe-2")}
        assert frame["probe"].value_counts().to_dict() == {probe: len(one) for probe, one in own.items()}
        assert list(frame[frame["probe"] == "probe-2"]["t_s" if "t_s" in frame else "run"]) == list(
            own["probe-2"]["t_s" if "t_s" in frame else "run"]
        )
    assert set(c.tables["download"]["probe"]) == {"probe-1", "probe-2"}
    assert len(c.pool.kits) == 2
    assert c.evaluation.campaign.probe == "probe-1"
    assert len(load([small]).runs) == len(c.runs)


def test_parting_one_kit_changes_no_number(tmp_path, capsys):
    folder = write(Synthetic(seconds=30.0), tmp_path / "bench")
    whole, parted = (reported(capsys, 1, folder, *more) for more in ([], ["--by", "operator"]))  # no database
    for key in ("handovers", "mobility", "records", "campaigns", "versions", "interrupted"):
        assert parted[key] == whole[key], key
    assert [(one["part"], one["probes"]) for one in parted["parts"]] == [("A + B", ["probe-1"])]
