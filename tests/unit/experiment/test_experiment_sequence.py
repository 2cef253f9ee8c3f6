"""The sequence of rounds: the same for a seed, another for another, and drawn as asked."""

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.experiment.delay.outcome import size_class
from tandem.experiment.sequence import log_uniform, rounds, steps

WAYS = steps(["a", "b"], ["a", "b"], together=True)


def test_the_steps_are_the_papers():
    assert [w.name for w in WAYS] == ["tcp a", "tcp b", "tcp-all", "mptcp a", "mptcp b"]
    assert [w.name for w in steps(["a", "b", "c"], ["b"], together=False)] == ["tcp a", "tcp b", "tcp c", "mptcp b"]


def test_a_seed_gives_one_sequence():
    """Written down: a campaign that is repeated years later must draw the same."""
    drawn = rounds(WAYS[:3], 3, 7, "poisson", 300, (100, 10**6))
    assert drawn == rounds(WAYS[:3], 3, 7, "poisson", 300, (100, 10**6))
    assert drawn != rounds(WAYS[:3], 3, 8, "poisson", 300, (100, 10**6))
    assert [r.told() for r in drawn] == [
        {"bytes": 36025, "gap_s": 0.0, "order": ["tcp-all", "tcp b", "tcp a"]},
        {"bytes": 2921, "gap_s": 832.4761774116806, "order": ["tcp b", "tcp a", "tcp-all"]},
        {"bytes": 276570, "gap_s": 506.6391145115439, "order": ["tcp a", "tcp-all", "tcp b"]},
    ]


def test_every_order_comes_about_equally_often():
    seen = Counter(r.order for r in rounds(WAYS[:3], 6000, 1, "periodic", 0))
    assert len(seen) == 6
    assert all(850 < count < 1150 for count in seen.values())


def test_spacing():
    assert {r.gap_s for r in rounds(WAYS, 5, 1, "periodic", 300)[1:]} == {300}
    gaps = [r.gap_s for r in rounds(WAYS, 4001, 1, "poisson", 100)]
    assert gaps[0] == 0
    mean = sum(gaps) / 4000
    assert mean == pytest.approx(100, rel=0.05)
    assert math.sqrt(sum((g - mean) ** 2 for g in gaps[1:]) / 4000) == pytest.approx(100, rel=0.1)


def test_sizes_fill_each_decade_alike():
    sizes = [r.bytes for r in rounds(WAYS, 8000, 3, "periodic", 0, (100, 10**6))]
    decades = Counter(int(math.log10(s)) for s in sizes if s < 10**6)
    assert set(decades) == {2, 3, 4, 5}
    assert all(1800 < n < 2200 for n in decades.values())


@given(st.floats(0, 1), st.integers(1, 10**9), st.integers(1, 10**9))
def test_a_size_is_never_outside(at, one, other):
    least, greatest = sorted((one, other))
    assert least <= log_uniform(at, least, greatest) <= greatest


@given(st.integers(1, 10**9))
def test_a_size_is_in_its_class(count):
    least, below = size_class(count)
    assert least <= count < below
    assert str(least)[0] in "125"
