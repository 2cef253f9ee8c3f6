"""A state is played as its pattern says, with no more writes than edges; what is chosen anew is shown at once."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.indicator.player import LOOKS_EVERY_S, Player, at
from tandem.schema.status_led import CALL, NOT_RUNNING, OFF, STATES, WELL, LedState

BLINKING = [state for state in STATES if state.blinks]


@given(st.sampled_from(BLINKING), st.integers(0, 10**9))
def test_at_any_instant_the_next_edge_is_told(state: LedState, since_ms: int) -> None:
    lit, left_ms = at(state, since_ms)
    assert at(state, since_ms + left_ms - 1)[0] == lit
    assert at(state, since_ms + left_ms)[0] != lit


def test_steady_states_are_looked_at_seldom() -> None:
    assert at(NOT_RUNNING, 12345) == (True, LOOKS_EVERY_S * 1000)
    assert at(OFF, 12345) == (False, LOOKS_EVERY_S * 1000)


class Shown:
    """A lamp that remembers, and lets a test wait for a colour."""

    def __init__(self) -> None:
        self.colours: list[str] = []
        self._changed = threading.Condition()

    def show(self, colour: str) -> None:
        with self._changed:
            self.colours.append(colour)
            self._changed.notify_all()

    def wait_for(self, *colours: str) -> None:
        """Until these came last, in this order."""
        with self._changed:
            assert self._changed.wait_for(lambda: tuple(self.colours[-len(colours) :]) == colours, 60), self.colours


def test_what_is_chosen_anew_is_shown_at_once_and_the_end_is_steady() -> None:
    shown, chosen = Shown(), [CALL]
    player = Player(shown, lambda: chosen[0])
    player.start()
    shown.wait_for("red", "dark", "red")
    chosen[0] = WELL
    player.wake()
    shown.wait_for("green", "dark")
    assert player.state is WELL
    player.close()
    assert shown.colours[-1] == "red"
    assert player.state is NOT_RUNNING
    assert not player.playing


@pytest.mark.parametrize("state", BLINKING, ids=lambda state: state.name)
def test_edge_after_edge_makes_the_pattern(state: LedState) -> None:
    now, played = 0, []
    while now < state.period_ms:
        lit, left_ms = at(state, now)
        assert left_ms > 0
        played.append((lit, left_ms))
        now += left_ms
    assert now == state.period_ms
    assert played == [(lit, ms) for pair in state.pattern for lit, ms in zip((True, False), pair, strict=True)]
