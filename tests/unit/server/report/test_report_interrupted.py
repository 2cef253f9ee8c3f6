"""Folders that an interrupted campaign leaves: every file cut at any place, any value of a wrong kind; and a probe that restarts in its
midst: in the same boot of the kernel, and in another one, whose monotonic clock begins anew."""

import copy
import json
import shutil
from pathlib import Path

import pictures
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from paper_campaign import figures

from support.hostile_json import places
from support.synthetic_campaign import BOOT, PROBE, MemorySource, Row, Synthetic
from support.synthetic_folder import campaign, collector, page_of, write
from support.synthetic_scenario import START_MONOTONIC_NS, START_UTC_NS
from tandem_server.analysis.evaluate import evaluate
from tandem_server.analysis.folder import FolderError, load
from tandem_server.analysis.records import SourceError
from tandem_server.analysis.summary import summary

MADE = Synthetic(seconds=34.0)
OWN = f"probe/{PROBE}"
FILES = ["campaign.json", "truth.jsonl", f"{OWN}/collector.json", f"{OWN}/runs/{MADE.manifests[0]['id']}.json"]


@pytest.fixture(scope="module")
def original(tmp_path_factory) -> Path:
    return write(MADE, tmp_path_factory.mktemp("original") / "campaign")


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "campaign"))


def everything(folder: Path, source=MADE.source, ledger=None) -> tuple[list[str], dict]:
    e = evaluate(load(folder), source, MADE.ledger() if ledger is None else ledger)
    with pictures.none():  # test_figures_of_papers draws what odd manifests make
        drawn = figures(e)
    assert page_of(e, drawn).startswith("<!doctype html>")
    told = summary(e)
    json.dumps(told, allow_nan=False)
    return e.missing, told


def test_a_run_of_another_experiment_is_no_download_and_nothing_missing(folder):
    other = {**MADE.manifests[0], "id": "run-other", "kind": "any", "result": {"answers": [1, 2]}}
    (folder / f"probe/{PROBE}/runs/run-other.json").write_text(json.dumps(other))
    missing, figures = everything(folder, ledger={*MADE.ledger(), "run-other"})
    assert missing == []
    assert "run-other" not in {run["id"] for run in figures["runs"]}
    missing, _ = everything(folder)
    assert missing == ["run run-other: its manifest is not in the server's ledger"]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("kept", [0.0, 0.999])
def test_cut_file_is_named_and_the_report_is_written(folder, name, kept):
    path = folder / name
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * kept)])
    missing, _ = everything(folder)
    if name != "truth.jsonl" or kept:
        assert any(Path(name).name in line for line in missing)


def test_what_is_gone_or_not_as_it_was_left_is_named(original, tmp_path):
    run, capture = MADE.manifests[0]["id"], MADE.captures[0][0]
    ended = {**campaign(MADE), "ended_utc_ns": None}

    def spoilt(name, spoil, ledger=None):
        folder = Path(shutil.copytree(original, tmp_path / name))
        spoil(folder)
        return everything(folder, ledger=ledger)

    missing, figures = spoilt("killed collector", lambda folder: (folder / FILES[2]).unlink())
    assert figures["records"] == {"made": None, "sent": None, "in_database": MADE.seq, "lost": None}
    assert any("how many records were made is not known" in line for line in missing)
    assert figures["captures"]
    _, figures = spoilt("never completed", lambda folder: (folder / "campaign.json").write_text(json.dumps(ended)))
    assert "cut off" in figures["interrupted"]
    missing, _ = spoilt("no manifest", lambda folder: (folder / FILES[3]).unlink(), MADE.ledger() - {run})
    assert any(run in line and "cut off" in line for line in missing)
    longer = (original / "probe" / PROBE / capture).read_bytes() + b"x"
    missing, _ = spoilt("another size", lambda folder: (folder / "probe" / PROBE / capture).write_bytes(longer))
    assert [capture in line for line in missing] == [True]


def test_database_that_fails_in_the_middle_is_said_and_another_version_is_refused(folder):
    class Failing:
        def pieces(self, *_):
            raise SourceError("the database could not be asked: it went away")

        def numbers(self, *_):
            raise SourceError("never reached")

    missing, figures = everything(folder, Failing())
    assert "the database could not be asked: it went away" in missing
    assert figures["radio_records"] is None
    assert figures["handovers"] == {"true": None, "detected": None, "false": None}
    (folder / "campaign.json").write_text(json.dumps({**campaign(MADE), "format": "tandem-campaign/2"}))
    with pytest.raises(FolderError, match="tandem-campaign/2"):
        load(folder)


STRANGE = st.sampled_from(
    [None, True, -1, 10**400, 1e308, float("nan"), "", "<i>", [], ["x"], [None], {}, {"a": None}, {"a": {}}]
)


TREES = [campaign(MADE), collector(MADE), MADE.manifests[2]]
WHERE = [(i, place) for i, tree in enumerate(TREES) for place in places(tree) if place != ("format",)]


@settings(
    max_examples=settings.default.max_examples // 3,  # each is a whole report
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(st.tuples(st.sampled_from(WHERE), STRANGE), min_size=1, max_size=3))
def test_values_of_a_wrong_kind_give_a_report(folder, changes):
    trees = copy.deepcopy(TREES)
    for (i, place), value in changes:
        target = trees[i]
        try:
            for key in place[:-1]:
                target = target[key]
            target[place[-1]] = value
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change took the place away
    run = folder / "probe" / PROBE / "runs" / f"{MADE.manifests[2]['id']}.json"
    for path, tree in zip((folder / "campaign.json", folder / FILES[2], run), trees, strict=True):
        path.write_text(json.dumps(tree))
    everything(folder)


WHOLE = Synthetic(seconds=180.0)
OTHER = "00000000-aaaa-4bbb-8ccc-000000000002"
GAP = (97.0, 109.0)
"""Seconds in which the probe was off."""


def restarted(other_boot: bool, spool: str | None = None) -> tuple[MemorySource, list[dict], int]:
    """The campaign's records without those of the gap, numbered anew; what came after it in ``other_boot`` with its own clock."""
    began_ns, shift_ns = START_UTC_NS + round(GAP[1] * 1e9), START_MONOTONIC_NS + round(GAP[1] * 1e9) - 20 * 10**9
    begun = {"detail": "started", "monotonic_ns": START_MONOTONIC_NS + round(GAP[1] * 1e9)}
    told = [("event", 0, Row(began_ns, {"probe": PROBE, "boot": BOOT, "kind": "collector_start"}, begun))]
    told += [
        (name, number, row)
        for name, number, row in WHOLE.source.points
        if number is None or not GAP[0] <= (row.utc_ns - START_UTC_NS) / 1e9 < GAP[1]
    ]
    points, seq = [], 0
    for name, number, row in sorted(told, key=lambda point: point[2].utc_ns):
        if number is None:  # the server's own records stay in its boot
            points.append((name, None, row))
            continue
        seq += 1
        tags, fields = dict(row.tags), {**row.fields, "seq": seq}
        if other_boot and row.utc_ns >= began_ns:
            tags["boot"], fields["monotonic_ns"] = OTHER, int(fields["monotonic_ns"]) - shift_ns
        points.append((name, seq, Row(row.utc_ns, tags, fields)))
    for boot in (BOOT, OTHER) if spool is not None else ():
        last = max((row for _, n, row in points if n and row.tags["boot"] == boot), key=lambda row: row.utc_ns)
        fields = {"spool": spool, "made": seq, "monotonic_ns": last.fields["monotonic_ns"]}
        points.append(("spool", None, Row(last.utc_ns, {"probe": PROBE, "boot": boot}, fields)))
    manifests = copy.deepcopy(WHOLE.manifests)
    for manifest in manifests if other_boot else ():
        if manifest["started_utc_ns"] >= began_ns:
            manifest["boot"] = OTHER
            for key in ("started_monotonic_ns", "ended_monotonic_ns"):
                manifest[key] -= shift_ns
    return MemorySource(points), manifests, seq


def evaluated(folder, other_boot: bool, told: bool = False, spool: str | None = None, lost: tuple[int, ...] = ()):
    source, manifests, made = restarted(other_boot, spool)
    source.lost.update(lost)
    write(WHOLE, folder)
    own = folder / "probe" / PROBE
    for manifest in manifests:
        (own / "runs" / f"{manifest['id']}.json").write_text(json.dumps(manifest))
    account = json.loads((own / "collector.json").read_text())
    account["records"] |= {"made": made, "sent": made}
    account["boot"] = OTHER if other_boot else BOOT
    (own / "collector.json").write_text(json.dumps(account))
    if told:
        campaign = json.loads((folder / "campaign.json").read_text())
        (folder / "campaign.json").write_text(json.dumps({**campaign, "boot": BOOT}))
    return evaluate(load(folder), source, WHOLE.ledger())


@pytest.mark.parametrize("told", [False, True])
def test_a_second_boot_changes_no_score(tmp_path, told):
    same, other = evaluated(tmp_path / "same", False), evaluated(tmp_path / "other", True, told)
    assert other.clock.boot == BOOT
    assert (same.missing, other.missing) == ([], [])
    a, b = summary(same), summary(other)
    for key in ("handovers", "signal_drops", "mobility", "runs", "radio_records", "polls_late", "records"):
        assert b[key] == pytest.approx(a[key]) if key == "mobility" else b[key] == a[key], key
    assert a["records"]["lost"] == b["records"]["lost"] == 0
    assert [round(t, 3) for t in other.recorded.starts] == [GAP[1]]
    assert max(float(s.t_s[-1]) for s in other.recorded.radio.values()) < 181


def test_what_nobody_could_see_is_not_scored(tmp_path):
    whole = evaluate(load(write(WHOLE, tmp_path / "whole")), WHOLE.source, WHOLE.ledger())
    cut = evaluated(tmp_path / "cut", True)
    blind = [h for h in WHOLE.truth if h["type"] == "handover" and GAP[0] <= h["t_s"] < GAP[1] - 0.5]
    assert blind, "the made-up truth has a handover in the gap"
    assert cut.handover_score.true + cut.handover_score.hidden <= (
        whole.handover_score.true + whole.handover_score.hidden - len(blind)
    )
    assert cut.handover_score.detected == cut.handover_score.true
    assert cut.drop_score.missed == []
    assert cut.handover_score.false == whole.handover_score.false == 0


def test_the_account_is_that_of_all_boots_of_the_spool_and_the_bench_the_boot_of_its_offset(tmp_path):
    made = evaluated(tmp_path / "told", True, spool="aaaaaaaaaaaa", lost=(5, 900))
    assert (made.account.lost, made.account.missing) == (2, [(5, 5), (900, 900)])
    assert made.account.in_database == made.account.made - 2
    assert evaluated(tmp_path / "x", True).recorded.events[-1].t_s > GAP[1]
