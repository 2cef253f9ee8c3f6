"""The order of runs: random, the same for the same seed, every arm as often as asked."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.schema.campaign import Draw
from tandem.schema.campaign_reader import parse
from tandem.schema.campaign_sequence import arms, draw, items, order

import random  # isort: skip

FILE = """\
format = "tandem-campaign-file/1"
name = "x"
title = "t"
seed = {seed}
roles = ["a", "b"]
[base.a]
rtt_ms = 20
[[step]]
name = "s"
experiment = "e"
repetitions = {repetitions}
order = "{order}"
arms = [{{ kind = "mptcp" }}, {{ kind = "tcp" }}]
[step.parameters]
bytes = [10, {{ log_uniform = [100, 1000] }}]
[step.shape.b]
down_loss_percent = [0, 1, 2]
"""


def campaign(seed=1, repetitions=5, order="blocks"):
    return parse(FILE.format(seed=seed, repetitions=repetitions, order=order), "f")


def test_arms_are_all_combinations_over_the_base():
    made = campaign()
    found = arms(made, made.steps[0])
    assert len(found) == made.steps[0].arm_count == 12
    assert found[0].parameters == {"bytes": 10, "kind": "mptcp"}
    assert found[0].shape == {"a": {"rtt_ms": 20.0}, "b": {"down_loss_percent": 0.0}}
    assert len({(a.parameters["kind"], str(a.parameters["bytes"]), str(a.shape)) for a in found}) == 12


@given(st.integers(0, 2**31), st.sampled_from(["blocks", "shuffled", "listed"]), st.integers(1, 6))
def test_every_arm_comes_as_often_as_asked_and_the_seed_says_when(seed, kind, repetitions):
    made = campaign(seed, repetitions, kind)
    step = made.steps[0]
    sequence = order(made, step)
    assert sequence == order(campaign(seed, repetitions, kind), step)
    assert Counter(sequence) == {(r, a): 1 for r in range(repetitions) for a in range(12)}
    if kind != "shuffled":
        assert [r for r, _ in sequence] == [r for r in range(repetitions) for _ in range(12)]


def test_another_seed_is_another_order():
    assert order(campaign(1), campaign(1).steps[0]) != order(campaign(2), campaign(2).steps[0])
    assert order(campaign(1, order="listed"), campaign(1, order="listed").steps[0])[:3] == [(0, 0), (0, 1), (0, 2)]


def test_what_is_drawn_depends_on_repetition_and_arm_alone():
    made = campaign()
    shuffled = campaign(order="shuffled")
    drawn = {(i.repetition, i.arm): (i.parameters["bytes"], i.seed) for i in items(made, made.steps[0])}
    assert drawn == {(i.repetition, i.arm): (i.parameters["bytes"], i.seed) for i in items(shuffled, shuffled.steps[0])}
    sizes = [size for size, _ in drawn.values() if size != 10]
    assert all(isinstance(s, int) and 100 <= s <= 1000 for s in sizes)
    assert len(set(sizes)) > 10


@given(st.sampled_from(["uniform", "log_uniform"]), st.integers(1, 10**6), st.integers(1, 10**6), st.integers())
def test_a_draw_stays_within_its_bounds(law, low, width, seed):
    value = draw(Draw(law, low, low + width), random.Random(seed))
    assert isinstance(value, int)
    assert low <= value <= low + width


def test_log_uniform_has_as_many_small_as_large():
    chance = random.Random(1)
    values = [draw(Draw("log_uniform", 100, 1_000_000), chance) for _ in range(4000)]
    below = sum(v < 10_000 for v in values) / len(values)
    assert below == pytest.approx(0.5, abs=0.03)
