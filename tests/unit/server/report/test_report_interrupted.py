"""Folders that an interrupted campaign leaves: every file cut at any place, any value of a wrong kind."""

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
from support.synthetic_campaign import PROBE, Synthetic
from support.synthetic_folder import campaign, collector, page_of, write
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
    with pictures.none():  # test_figures_hostile draws what odd manifests make
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
