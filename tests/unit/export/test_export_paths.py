"""Which path is tried next."""

import random

from hypothesis import given
from hypothesis import strategies as st

from tandem.export.paths import LONGEST_S, PathChoice


def test_the_path_that_last_worked_is_tried_first() -> None:
    choice = PathChoice(["a", "b"], random.Random(1))
    assert choice.next(0) == "a"
    choice.failed("a", 0)
    assert choice.next(0) == "b"
    choice.worked("b")
    assert choice.next(100) == "b"  # although a might work again by now


def test_when_all_failed_the_one_due_first_is_waited_for() -> None:
    choice = PathChoice(["a", "b"], random.Random(1))
    choice.failed("a", 0)
    choice.failed("b", 0)
    assert choice.next(0.1) is None
    wait = choice.wait_s(0)
    assert 0.5 <= wait <= 1.0
    assert choice.next(wait) is not None


@given(st.integers(1, 40), st.integers(0, 2**32))
def test_the_wait_grows_and_is_bounded(failures: int, seed: int) -> None:
    choice = PathChoice(["a"], random.Random(seed))
    for _ in range(failures):
        choice.failed("a", 0)
    least = min(LONGEST_S, 2.0 ** (failures - 1)) / 2
    assert least <= choice.wait_s(0) <= LONGEST_S
