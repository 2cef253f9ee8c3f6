"""Arms of a campaign's step compared: effects by hand, a simulation of a known effect, what is counted, the section of the report."""

import csv
import json
import math
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pictures
import pytest
from synthetic_results import PROBE, manifests, write

from tandem_server.analysis.arms import (
    GOODPUT,
    HELPS,
    HURTS,
    NOTHING,
    OUT_OF_ORDER,
    QUEUE,
    STALLED,
    TOO_FEW,
    compare,
    effect,
    table,
)
from tandem_server.analysis.estimates import SEED
from tandem_server.analysis.material import Bins
from tandem_server.analysis.tables.facts import gather
from tandem_server.cli.main import main
from tandem_server.report.arms import compared

ARMS = ("off", "drop", "handover", "learned")


def made(values, arms=ARMS, experiment="dash", key="goodput_bit_per_s", order=None):
    """Manifests of a step: ``values(block, arm)`` is the result's figure; None: the run failed; "absent": it was not made."""
    found = []
    template = next(m for m in manifests(10, (experiment,)) if m["failure"] is None)
    for block in range(len(values)):
        for number, arm in enumerate(order or arms):
            value = values[block].get(arm, "absent")
            if value == "absent":
                continue
            one = template | {"id": f"run-{block}-{arm}", "kind": "any", "steering": {"policy": arm, "decisions": []}}
            one["parameters"] = {"kind": "mptcp", "path": "a", "seconds": 20}
            one["result"] = None if value is None else {key: value} if not isinstance(value, dict) else value
            one["failure"] = {"reason": "timeout", "retry": True} if value is None else None
            place = {"step": "plays", "number": block * len(arms) + number, "repetition": block, "arm": arms.index(arm)}
            one["campaign"] = {**one["campaign"], "name": "steering-ab", "form": "paper", **place}
            found.append(one)
    return found


def only(values, **how):
    (one,) = compare(gather(made(values, **how), Path()))
    return one


def of(one, arm, outcome):
    return next(e for e in one.effects if (e.arm, e.outcome) == (arm, outcome))


def test_a_case_worked_by_hand():
    """Ratios 2, 1/2, 4 and 1: the geometric mean is (2 * 1/2 * 4 * 1) ** (1/4) = 2 ** 0.5."""
    one = only([{"off": off, "drop": drop} for off, drop in ((10.0, 20.0), (8.0, 4.0), (1.0, 4.0), (7.0, 7.0))])
    found = of(one, "drop", GOODPUT)
    assert found.estimate.value == pytest.approx(math.sqrt(2))
    assert (found.estimate.n, found.left_out) == (4, 0)
    logs = np.sort(np.log([2.0, 0.5, 4.0, 1.0]))
    drawn = np.random.default_rng(SEED).integers(0, 4, (1000, 4))
    low, high = np.quantile(logs[drawn].mean(axis=1), [0.025, 0.975])
    # Of four values: Student's 3.182 for three degrees of freedom in place of 1.960, and n / (n - 1) in the variance.
    wider, middle = math.sqrt(4 / 3) * 3.182 / 1.960, math.log(2) / 2
    ends = [middle + wider * (end - middle) for end in (low, high)]
    assert [math.log(found.estimate.low), math.log(found.estimate.high)] == pytest.approx(ends, rel=0.02)
    assert (found.verdict, one.reference) == (NOTHING, "off")


def test_stall_time_is_a_difference_and_less_of_it_is_better():
    blocks = [{"off": float(n), "drop": n + 2.0, "handover": n - 1.0, "learned": float(n)} for n in range(5)]
    one = only(blocks, key="stalled_s")
    effects = [(e.arm, e.estimate.value, e.verdict) for e in one.effects]
    assert effects == [("drop", 2.0, HURTS), ("handover", -1.0, HELPS), ("learned", 0.0, NOTHING)]
    assert ({e.outcome for e in one.effects}, [e.arm for e in one.hurts]) == ({STALLED}, ["drop"])


def simulated(drawn, size, blocks):
    """An arm's effect of known ``size``: blocks that differ eightfold, noise of 10 % on each run. Unpaired, the blocks would hide it."""
    levels = [drawn.uniform(5e6, 40e6) for _ in range(blocks)]
    ours, off = ({n: v * k * drawn.lognormvariate(0, 0.1) for n, v in enumerate(levels)} for k in (size, 1.0))
    return effect(GOODPUT, "drop", ours, off, blocks)


def test_the_interval_holds_the_true_effect_as_often_as_it_says_also_with_few_blocks():
    """400 simulations by a fixed seed: 380 are expected; the plain percentile interval of five blocks would hold it 330 times."""
    drawn = random.Random(4)
    found = [simulated(drawn, 0.8, 5).estimate for _ in range(400)]
    assert 360 <= sum(e.low <= 0.8 <= e.high for e in found) <= 395


def test_parted_runs_are_compared_within_their_part():
    """Drop helps in one city and hurts in the other: together neither."""
    parts = {
        city: [replace(run, part={"city": city}) for run in gather(made([{"off": 2.0, "drop": drop}] * 5), Path())]
        for city, drop in (("Davis", 4.0), ("Oslo", 1.0))
    }
    found = compare([run for runs in parts.values() for run in runs])
    assert [(one.step, one.effects[0].verdict) for one in found] == [("plays, Davis", HELPS), ("plays, Oslo", HURTS)]


def test_a_block_without_an_arm_is_left_out_and_failures_are_counted():
    blocks = [{"off": 1.0, "drop": 1.0, "learned": 2.0} for _ in range(4)]
    blocks[1] = {"off": 1.0, "drop": None, "learned": 2.0}
    blocks[2] = {"drop": 1.0, "learned": 2.0}
    one = only(blocks, arms=("off", "drop", "learned"))
    assert one.blocks == 4
    assert dict(one.runs) == {"off": 3, "drop": 4, "learned": 4}
    assert dict(one.failed) == {"off": 0, "drop": 1, "learned": 0}
    assert [(e.arm, e.estimate.n, e.left_out) for e in one.effects] == [("drop", 2, 2), ("learned", 3, 1)]
    assert of(one, "drop", GOODPUT).verdict == TOO_FEW
    assert of(one, "learned", GOODPUT).estimate.value == pytest.approx(2.0)


def test_no_ratio_to_nothing():
    found = effect(GOODPUT, "drop", {0: 0.0, 1: 2.0}, {0: 1.0, 1: 1.0}, 2)
    assert (found.estimate.value, found.estimate.n, found.left_out) == (pytest.approx(2.0), 1, 1)
    assert effect(GOODPUT, "drop", {0: 0.0}, {0: 1.0}, 1).estimate is None


def test_the_first_arm_is_the_reference_where_none_is_off_and_all_of_it_is_in_one_table():
    one = only([{"reno": 1.0, "lia": 2.0}] * 3, arms=("reno", "lia"), order=("lia", "reno"))
    # In a random order the file's first arm may come second: it has number 0 of the arms.
    assert one.reference == "reno"
    off, drop = {"goodput_bit_per_s": 1e6, "stalled_s": 1.0}, {"goodput_bit_per_s": 2e6, "stalled_s": 0.0}
    found = compare(gather(made([{"off": off, "drop": drop}] * 3), Path()))
    units = [("goodput_bit_per_s", "bit/s"), ("stalled_s", "s")]
    assert [row[3:6] for row in table(found).rows] == [(*unit, arm) for unit in units for arm in ("off", "drop")]
    (page,) = compared(found)
    assert page.svg.count('data-mark="forest"') == 2
    assert [page.table.rows[n][3].text for n in (1, 3)] == ["×2.00 (×2.00 to ×2.00)", "−1.00 s (−1.00 to −1.00)"]


def test_the_queue_is_that_of_the_captures_where_they_were_analysed():
    facts = gather(made([{"off": 1.0, "drop": 1.0}] * 3), Path())
    packets = {run.id: 7 if run.varied["steering"] == "drop" else 4 for run in facts}
    (one,) = compare(facts, (), packets)
    assert of(one, "drop", OUT_OF_ORDER).estimate.value == 3
    time, last = np.arange(2.0), {"drop": 5e3, "off": 9e3}
    bins = [Bins(r.id, None, time, time, np.array([np.nan, last[r.varied["steering"]]])) for r in facts]
    (one,) = compare(facts, bins, packets)
    assert of(one, "drop", QUEUE).estimate.value == -4000
    assert OUT_OF_ORDER not in one.outcomes


def test_one_arm_and_arms_of_several_parameters_are_not_compared():
    assert compare(gather(made([{"off": 1.0}] * 3, arms=("off",)), Path())) == []
    several = made([{"off": 1.0, "drop": 1.0}] * 3)
    for one in several:
        one["parameters"]["seconds"] = 20 + one["campaign"]["arm"]
    assert compare(gather(several, Path())) == []
    by_kind = made([{"off": 1.0, "drop": 1.0, "tcp": 1.0}] * 3, arms=("off", "drop", "tcp"))
    for one in by_kind:
        if one["steering"]["policy"] == "tcp":
            one["steering"]["policy"], one["parameters"]["kind"] = "off", "tcp"
    assert compare(gather(by_kind, Path())) == []


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Of a field campaign: drop halves the goodput, in one of six blocks it failed; learned changes nothing."""
    root = write(tmp_path_factory.mktemp("arms") / "campaign", 0)
    blocks = [{"off": 2e6 + n, "drop": 1e6 + n, "learned": 2e6 + n + (-1) ** n * 1e5} for n in range(6)]
    blocks[3]["drop"] = None
    for one in made(blocks, arms=("off", "drop", "learned")):
        (root / "probe" / PROBE / "runs" / f"{one['id']}.json").write_text(json.dumps(one))
    with pictures.of_the_page():
        main(["report", str(root)])
    return root


def test_the_report_says_at_its_top_that_it_hurts_and_the_figure_and_the_tables_are_files(folder):
    page = (folder / "report.html").read_text()
    said = "steering-ab, plays: steering drop hurts: goodput ×0.50"
    assert 0 < page.index(said) < page.index("</header>")
    assert (page.count("no difference shown"), 'id="arms"' in page) == (1, True)
    figure = folder / "figures" / "arms-steering-ab-plays.svg"
    assert 'data-mark="forest"' in figure.read_text()
    with figure.with_suffix(".csv").open() as file:
        assert [(row["name"], row["n"]) for row in csv.DictReader(file)] == [("drop", "5"), ("learned", "6")]
    with (folder / "tables" / "arms.csv").open() as file:
        rows = {row["arm"]: row for row in csv.DictReader(file)}
    assert (rows["drop"]["pairs"], rows["drop"]["left_out"], rows["drop"]["failed"]) == ("5", "1", "1")
    assert (rows["off"]["reference"], rows["off"]["verdict"]) == ("", "")
    told = json.loads((folder / "summary.json").read_text())["arms"]
    assert [c["key"] for c in told["columns"]] == list(rows["off"])
    assert len(told["rows"]) == 3
    with (folder / "tables" / "arms-values.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 17


@pytest.mark.usefixtures("no_pictures")
def test_a_campaign_of_one_arm_draws_nothing_and_takes_an_earlier_figure_away(tmp_path):
    root = write(tmp_path / "campaign", 0)
    for one in made([{"off": 1.0}] * 3, arms=("off",)):
        (root / "probe" / PROBE / "runs" / f"{one['id']}.json").write_text(json.dumps(one))
    (root / "figures").mkdir()
    (root / "figures" / "arms-old-step.svg").write_text("")
    main(["report", str(root)])
    assert "Arms compared" not in (root / "report.html").read_text()
    assert [*(root / "figures").glob("arms-*"), *(root / "tables").glob("arms.csv")] == []
    assert json.loads((root / "summary.json").read_text())["arms"]["rows"] == []
