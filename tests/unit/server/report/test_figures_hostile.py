"""Manifests that hold anything: a figure is drawn or named as lacking, and never an error."""

import copy
import os
import random
from types import SimpleNamespace
from typing import Any

from paper_campaign import bins, figures, made

from support.synthetic_folder import write
from tandem_server.analysis.evaluate import evaluate
from tandem_server.analysis.folder import load
from tandem_server.analysis.material import material, setting
from tandem_server.analysis.truth import TrueShape, Truth
from tandem_server.report.figures.figure import every, make

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
