"""The result tables: every experiment's figures from runs whose results are known, in the page, summary.json and CSV."""

import copy
import csv
import io
import json
from pathlib import Path

import pytest
from hostile_json import places
from hypothesis import given
from hypothesis import strategies as st
from synthetic_results import PROBE, manifests, write
from test_report_page import Page

from support.synthetic_folder import page_of
from tandem_server.analysis.evaluate import evaluate
from tandem_server.analysis.folder import load
from tandem_server.analysis.summary import tables_as_json
from tandem_server.analysis.tables.facts import gather
from tandem_server.analysis.tables.results import Results, of_manifests, results
from tandem_server.analysis.tables.views import size_class
from tandem_server.cli.main import main
from tandem_server.report.figures.sheet import rounds
from tandem_server.report.result_tables import csv_files, in_text, line_chart, shown


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
    assert {key: r["goodput_bit_per_s"] for key, r in seen.items()} == {
        ("mptcp", "a"): 30e6,
        ("tcp", "a"): 20e6,
        ("tcp", "b"): 10e6,
    }
    assert seen["mptcp", "a"]["most_loaded_share"] == 0.75
    assert seen["mptcp", "a"]["join_delay_ms"] == 120
    assert seen["tcp", "b"]["most_loaded_share"] is None
    assert [(r["over_best"], r["over_sum"]) for r in rows(found, "download-gain")] == [(1.5, 1.0)]


def test_bandwidth_by_arm_with_the_ratio_that_was_asked_and_the_one_measured(found):
    seen = {r["ratio"]: r for r in rows(found, "bandwidth")}
    assert {ratio: r["arm"] for ratio, r in seen.items()} == {
        1: "a.up 1 Mbit/s",
        4: "a.up 4 Mbit/s",
        20: "a.up 20 Mbit/s",
    }
    assert [r["arm"] for r in rows(found, "bandwidth")] == [
        seen[k]["arm"] for k in (1, 4, 20)
    ]  # by size, not by letter
    assert [seen[k]["benefit"] for k in (1, 4, 20)] == [0.95, 0.8, 0.0]
    assert [seen[k]["benefit_raw"] for k in (1, 4, 20)] == [1.2, 1.05, 0.25]
    assert seen[4]["most_loaded_share"] == 0.8
    assert seen[4]["unasked_share"] == 0.25
    assert (seen[4]["c_max_bit_per_s"], seen[4]["c_total_bit_per_s"], seen[4]["tdi"]) == (4e6, 5e6, 1.0)
    assert {(r["arm"], r["path"]): r["c_i_bit_per_s"] for r in rows(found, "bandwidth-alone")}[
        "a.up 20 Mbit/s", "a"
    ] == 20e6


def test_delay_by_class_of_size_with_both_ends(found):
    seen = {r["from_bytes"]: r for r in rows(found, "delay")}
    assert {size: r["benefit"] for size, r in seen.items()} == {100: -0.5, 5000: 0.1, 500_000: 0.9}
    assert seen[500_000]["agent_benefit"] == 0.9
    assert seen[500_000]["server_benefit"] == 0.45
    assert seen[500_000]["timed_at"] == "agent"
    assert [seen[size]["positive"] for size in (100, 5000, 500_000)] == [0, 1, 1]


def test_classes_of_size():
    least = {1: 1, 99: 50, 100: 100, 199: 100, 200: 200, 999: 500, 10**15 - 1: 5 * 10**14}
    assert {count: size_class(count) for count in least} == least


def test_plays_by_length_of_segment(found):
    seen = {r["segment_s"]: r for r in rows(found, "dash")}
    assert set(seen) == {1, 6, 15}
    assert [seen[k]["switches_per_minute"] for k in (1, 6, 15)] == [60, 10, 4]
    assert seen[6]["rule"] == "throughput"
    assert 0 < seen[6]["stalled"] < 1


def test_ways_streams_traces_and_verdicts(found):
    ways = {r["way"]: r for r in rows(found, "reachability")}
    assert (ways["W/L"]["rtt_p50_ms"], ways["L/W"]["rtt_p50_ms"]) == (40, 70)
    assert rows(found, "reachability-overlap")[0]["share"] == 0.6
    assert rows(found, "reachability-comparison")[0]["second_slower_share"] == 0.7
    streams = {(r["path"], r["load"]): r["rtt_p95_ms"] for r in rows(found, "latency")}
    assert streams == {("a", "idle"): 72.5, ("a", "under load"): 290, ("b", "idle"): 72.5, ("b", "under load"): 290}
    assert {(r["path"], r["hops"], r["hops_silent"], r["ended"]) for r in rows(found, "traceroute")} == {
        ("a", 2, 1, "reached"),
        ("b", 2, 1, "reached"),
    }
    assert rows(found, "traceroute-disjointness")[0]["disjoint_share"] == 0.8
    (path,) = rows(found, "verdict")
    assert path["primary"] == "native"
    assert path["join"] == "native ×13, stripped (syn) ×5"


def test_an_experiment_that_nobody_knows_has_its_numbers_with_their_units(found):
    (table,) = found.tables["handshake"]
    assert {c.key: c.unit for c in table.columns if c.unit and c.key not in ("runs", "values")} == {
        "connect_ms": "ms",
        "handshake_ms": "ms",
        "made": "1",
        "median_ms.a": "ms",
        "median_ms.b": "ms",
    }
    assert (rows(found, "handshake")[0]["median_ms.a"], rows(found, "handshake")[0]["median_ms.b"]) == (30, 50)
    assert rows(found, "handshake")[0]["connect_ms"] == 20  # a distribution's middle


def test_page_loads_by_kind_and_path(found):
    seen = {(r["kind"], r["path"], r["by"]): r for r in rows(found, "pageload")}
    assert set(seen) == {("mptcp", "a", "browser"), ("tcp", "a", "browser")}
    assert seen["mptcp", "a", "browser"]["failed"] == 0.5
    assert seen["mptcp", "a", "browser"]["page_load_time_ms"] == 1510  # of those that came to their end: 1500, 1502 …
    assert seen["mptcp", "a", "browser"]["most_loaded_share"] == 0.7


def test_campaigns_say_how_far_they_came_what_failed_and_what_stood_in(found):
    (dash,) = [c for c in found.campaigns if c.name == "all-dash"]
    (step,) = dash.steps
    assert (dash.form, step.ok, dict(step.failed), dash.planned) == (
        "short",
        18,
        {"connect: timeout": 3},
        {"plays": 500},
    )
    assert dash.substitutes == ["scheduler: asked minsrtt, used stock"]
    assert dash.bytes == 21 * 1024


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
    for name, same in (
        ("results/r.jsonl", True),
        ("../../../r.jsonl", False),
        ("/etc/passwd", False),
        ("results/none", False),
    ):
        manifest["result"]["rounds"] = {"file": name, "rows": 1}
        file.write_text(json.dumps(manifest))
        after = {t.name: t.rows for t in results(load(folder)).flat}
        assert (after.get("bandwidth") == before["bandwidth"]) is same


def test_the_page_stands_and_escapes_what_the_folder_says(tmp_path):
    folder = write(tmp_path / "c", 70)
    file = folder / "probe" / PROBE / "runs" / "run-000003.json"
    manifest = json.loads(file.read_text())
    manifest["campaign"]["name"] = "<script>alert(1)</script>"
    manifest["parameters"]["abr"] = manifest["result"]["player"]["abr"] = '"><img src=x>'
    file.write_text(json.dumps(manifest))
    html = page_of(evaluate(load(folder), "no database", "no ledger"))
    page = Page(html)
    assert "<script>alert" not in html
    assert "<img" not in html
    assert "not what the paper had" in page.text
    for title in (
        "Bandwidth aggregation (Cordero)",
        "Delay aggregation (Cordero), by size",
        "Benefit, server's clock",
        "RTT by way",
        "Buffer over time",
    ):
        assert title in page.text


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
        if where != ("id",) and where != ("kind",):
            holder[where[-1]] = copy.deepcopy(
                data.draw(BROKEN)
            )  # drawn twice it may be one object: no JSON has itself within

    found = of_manifests(spoiled, Path("/nonexistent"), {})
    csv_files(found)
    in_text(found)

    shown(found)
    json.dumps(tables_as_json(found), allow_nan=False)


@given(st.floats(-1e18, 1e18), st.floats(1e-9, 1e18))
def test_ticks_lie_within(low, width):
    high = low + width
    if high > low:
        found = rounds(low, high)
        assert len(found) <= 8
        near = width * 0.01 + abs(low) * 1e-12  # as near as a float of this size can be
        assert all(low - near <= t <= high + near for t in found)


def test_a_curve_of_one_point_is_none():
    assert line_chart("t", "x", "y", [("a", [(1, 1)])]) is None
    assert line_chart("t", "x", "y", [("a", [(1, 1), (1, 1)])]) is not None
