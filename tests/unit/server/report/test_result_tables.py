"""The result tables: every experiment's figures from runs whose results are known, in the page, summary.json and CSV."""

import copy
import csv
import io
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic_results import PROBE, manifests, write

from support.hostile_json import places
from support.html_page import Page
from support.synthetic_folder import page_of
from tandem_server.analysis.evaluate import evaluate
from tandem_server.analysis.folder import load
from tandem_server.analysis.summary import tables_as_json
from tandem_server.analysis.tables.facts import gather
from tandem_server.analysis.tables.results import Results, of_manifests, results
from tandem_server.analysis.tables.views import size_class
from tandem_server.cli.main import main
from tandem_server.report.result_tables import csv_files, in_text, shown


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return write(tmp_path_factory.mktemp("results") / "campaign", 210)


@pytest.fixture(scope="module")
def found(folder) -> Results:
    return results(load(folder))


def rows(found: Results, name: str) -> list[dict]:
    (table,) = [t for t in found.flat if t.name == name]
    return [dict(zip([c.key for c in table.columns], row, strict=True)) for row in table.rows]


def test_downloads_by_kind_and_path_and_what_mptcp_gained(found):
    seen = {(r["kind"], r["path"]): r for r in rows(found, "download")}
    goodputs = {key: r["goodput_bit_per_s"] for key, r in seen.items()}
    assert goodputs == {("mptcp", "a"): 30e6, ("tcp", "a"): 20e6, ("tcp", "b"): 10e6}
    assert (seen["mptcp", "a"]["most_loaded_share"], seen["mptcp", "a"]["join_delay_ms"]) == (0.75, 120)
    assert seen["tcp", "b"]["most_loaded_share"] is None
    assert [(r["over_best"], r["over_sum"]) for r in rows(found, "download-gain")] == [(1.5, 1.0)]


def test_bandwidth_by_arm_with_the_ratio_that_was_asked_and_the_one_measured(found):
    seen = rows(found, "bandwidth")
    arms = [f"a.up {ratio} Mbit/s" for ratio in (1, 4, 20)]  # by size, not by letter
    assert [(r["ratio"], r["arm"]) for r in seen] == list(zip((1, 4, 20), arms, strict=True))
    assert [(r["benefit"], r["benefit_raw"]) for r in seen] == [(0.95, 1.2), (0.8, 1.05), (0.0, 0.25)]
    assert (seen[1]["most_loaded_share"], seen[1]["unasked_share"]) == (0.8, 0.25)
    assert (seen[1]["c_max_bit_per_s"], seen[1]["c_total_bit_per_s"], seen[1]["tdi"]) == (4e6, 5e6, 1.0)
    alone = {(r["arm"], r["path"]): r["c_i_bit_per_s"] for r in rows(found, "bandwidth-alone")}
    assert alone["a.up 20 Mbit/s", "a"] == 20e6


def test_delay_by_class_of_size_with_both_ends(found):
    seen = {r["from_bytes"]: r for r in rows(found, "delay")}
    assert {size: r["benefit"] for size, r in seen.items()} == {100: -0.5, 5000: 0.1, 500_000: 0.9}
    largest = seen[500_000]
    assert (largest["agent_benefit"], largest["server_benefit"], largest["timed_at"]) == (0.9, 0.45, "agent")
    assert [seen[size]["positive"] for size in (100, 5000, 500_000)] == [0, 1, 1]
    least = {1: 1, 99: 50, 100: 100, 199: 100, 200: 200, 999: 500, 10**15 - 1: 5 * 10**14}
    assert {count: size_class(count) for count in least} == least


def test_plays_loads_ways_streams_traces_and_verdicts(found):
    plays = {r["segment_s"]: r["switches_per_minute"] for r in rows(found, "dash")}
    assert plays == {1: 60, 6: 10, 15: 4}
    assert all(r["rule"] == "throughput" and 0 < r["stalled"] < 1 for r in rows(found, "dash"))
    loads = {(r["kind"], r["path"], r["by"]): r for r in rows(found, "pageload")}
    assert set(loads) == {("mptcp", "a", "browser"), ("tcp", "a", "browser")}
    both = loads["mptcp", "a", "browser"]
    # Of those that came to their end: 1500, 1502 …
    assert (both["failed"], both["page_load_time_ms"], both["most_loaded_share"]) == (0.5, 1510, 0.7)
    ways = {r["way"]: r for r in rows(found, "reachability")}
    assert (ways["W/L"]["rtt_p50_ms"], ways["L/W"]["rtt_p50_ms"]) == (40, 70)
    assert rows(found, "reachability-overlap")[0]["share"] == 0.6
    assert rows(found, "reachability-comparison")[0]["second_slower_share"] == 0.7
    streams = {(r["path"], r["load"]): r["rtt_p95_ms"] for r in rows(found, "latency")}
    assert streams == {("a", "idle"): 72.5, ("a", "under load"): 290, ("b", "idle"): 72.5, ("b", "under load"): 290}
    traces = {(r["path"], r["hops"], r["hops_silent"], r["ended"]) for r in rows(found, "traceroute")}
    assert traces == {(path, 2, 1, "reached") for path in "ab"}
    assert rows(found, "traceroute-disjointness")[0]["disjoint_share"] == 0.8
    (path,) = rows(found, "verdict")
    assert (path["primary"], path["join"]) == ("native", "native ×13, stripped (syn) ×5")


def test_an_experiment_that_nobody_knows_has_its_numbers_with_their_units(found):
    (table,) = found.tables["handshake"]
    units = {c.key: c.unit for c in table.columns if c.unit and c.key not in ("runs", "values")}
    assert units == {**dict.fromkeys(("connect_ms", "handshake_ms", "median_ms.a", "median_ms.b"), "ms"), "made": "1"}
    (row, *_) = rows(found, "handshake")
    assert (row["median_ms.a"], row["median_ms.b"], row["connect_ms"]) == (30, 50, 20)  # a distribution's middle


def test_campaigns_say_how_far_they_came_what_failed_and_what_stood_in(found):
    (dash,) = [c for c in found.campaigns if c.name == "all-dash"]
    (step,) = dash.steps
    assert (dash.form, step.ok, dict(step.failed)) == ("short", 18, {"connect: timeout": 3})
    assert (dash.planned, dash.bytes) == ({"plays": 500}, 21 * 1024)
    assert dash.substitutes == ["scheduler: asked minsrtt, used stock"]


def test_arms_that_use_the_same_for_different_things_asked_stay_apart():
    two = copy.deepcopy(manifests(20)[::10])
    for arm, (m, asked) in enumerate(zip(two, ("lia", "olia"), strict=True)):
        m["parameters"]["congestion_control"] = "reno"
        instead = {"congestion_control": {"asked": asked, "used": "reno"}}
        m["campaign"] |= {"arm": arm, "name": "c", "step": "s", "substituted": instead}
    assert [f.arm for f in gather(two, Path())] == [f"congestion_control reno for {asked}" for asked in ("lia", "olia")]


def test_a_list_in_a_file_of_the_run_is_read_from_there_and_nowhere_else(tmp_path):
    folder = write(tmp_path / "c", 10)
    own = folder / "probe" / PROBE
    before = {t.name: t.rows for t in results(load(folder)).flat}
    file = own / "runs" / "run-000001.json"  # bandwidth
    manifest = json.loads(file.read_text())
    (own / "results").mkdir()
    (own / "results" / "r.jsonl").write_text("".join(json.dumps(row) + "\n" for row in manifest["result"]["rounds"]))
    for name in ("results/r.jsonl", "../../../r.jsonl", "/etc/passwd", "results/none"):
        manifest["result"]["rounds"] = {"file": name, "rows": 1}
        file.write_text(json.dumps(manifest))
        after = {t.name: t.rows for t in results(load(folder)).flat}
        assert (after.get("bandwidth") == before["bandwidth"]) is (name == "results/r.jsonl")


def test_the_page_shows_tables_and_curves_and_escapes_what_the_folder_says(tmp_path):
    folder = write(tmp_path / "c", 70)
    file = folder / "probe" / PROBE / "runs" / "run-000003.json"
    manifest = json.loads(file.read_text())
    manifest["campaign"]["name"] = "<script>alert(1)</script>"
    manifest["parameters"]["abr"] = manifest["result"]["player"]["abr"] = '"><img src=x>'
    file.write_text(json.dumps(manifest))
    html = page_of(evaluate(load(folder), "no database", "no ledger"))
    assert ("<script>alert" in html, "<img" in html) == (False, False)
    text = Page(html).text
    titles = (
        "Bandwidth aggregation (Cordero)",
        "Delay aggregation (Cordero), by size",
        "RTT by way",
        "Buffer over time",
    )
    assert [words for words in (*titles, "not what the paper had") if words not in text] == []


def test_the_csv_holds_the_table_and_each_value(found):
    made = csv_files(found)
    assert {"runs.csv", "bandwidth.csv", "bandwidth-values.csv"} <= set(made)
    seen = list(csv.DictReader(io.StringIO(made["bandwidth.csv"])))
    assert [float(r["benefit"]) for r in seen] == [r["benefit"] for r in rows(found, "bandwidth")]
    values = list(csv.DictReader(io.StringIO(made["bandwidth-values.csv"])))
    assert len(values) == 18
    assert {v["run"] for v in values} <= {r["run"] for r in csv.DictReader(io.StringIO(made["runs.csv"]))}
    assert len(list(csv.DictReader(io.StringIO(made["runs.csv"])))) == 210


def test_a_name_or_text_that_would_do_harm_in_a_csv_does_none(tmp_path):
    folder = write(tmp_path / "c", 10)
    file = folder / "probe" / PROBE / "runs" / "run-000009.json"
    manifest = json.loads(file.read_text())
    manifest["experiment"]["name"] = "../../evil"
    manifest["failure"] = {"reason": "=cmd()", "retry": False}
    file.write_text(json.dumps(manifest))
    made = csv_files(results(load(folder)))
    assert all("/" not in name and name.endswith(".csv") for name in made)
    assert ",'=cmd()" in made["runs.csv"]


@pytest.mark.usefixtures("no_pictures")
def test_the_command_writes_tables_where_asked_and_prints_them(tmp_path, capsys):
    folder = write(tmp_path / "c", 20)
    assert main(["report", str(folder), "--tables", str(tmp_path / "t"), "--print-tables"]) == 1  # no database here
    out = capsys.readouterr().out
    assert "all-bandwidth: 2 runs" in out
    assert "bandwidth: Bandwidth aggregation (Cordero)" in out
    assert (tmp_path / "t" / "bandwidth.csv").is_file()
    assert not (folder / "tables").exists()
    assert set(json.loads((folder / "summary.json").read_text())["tables"]) >= {"bandwidth", "dash"}


BROKEN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just({"file": "../x"}) | st.just([[], None]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(("path", "share", "bytes", "asked", "p50", "x")), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


SOUND = manifests(10)


@given(st.data())
def test_manifests_with_anything_anywhere_raise_nothing(data):
    spoiled = copy.deepcopy(SOUND)
    for _ in range(data.draw(st.integers(1, 12))):
        manifest = data.draw(st.sampled_from(spoiled))
        where = data.draw(st.sampled_from(sorted(places(manifest), key=str)))
        holder = manifest
        for key in where[:-1]:
            holder = holder[key]
        if where not in (("id",), ("kind",)):
            # Drawn twice it may be one object: no JSON has itself within.
            holder[where[-1]] = copy.deepcopy(data.draw(BROKEN))
    found = of_manifests(spoiled, Path("/nonexistent"), {})
    for show in (csv_files, in_text, shown):
        show(found)
    json.dumps(tables_as_json(found), allow_nan=False)
