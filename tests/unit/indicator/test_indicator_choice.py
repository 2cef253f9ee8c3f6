"""Which state is shown in which situation: the gravest wins, and a frozen collector never looks well."""

import threading
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.indicator.choice import (
    DATA_WAITING_AFTER_S,
    FROZEN_AFTER_S,
    MODEM_GONE_AFTER_S,
    NO_NETWORK_AFTER_S,
    Situation,
    choose,
    holding,
)
from tandem.indicator.player import LOOKS_EVERY_S, Player, at
from tandem.schema.status_led import CALL, NOT_RUNNING, OFF, STATES, WELL, LedState

RUNNING = Situation("running")
HOUR_S = 3600.0

SITUATIONS = [
    (RUNNING, "well"),
    (replace(RUNNING, measuring=True), "measuring"),
    (Situation("starting"), "starting"),
    (Situation("stopping"), "stopping"),
    (Situation("ended"), "not-running"),
    (replace(RUNNING, unsent_s=DATA_WAITING_AFTER_S), "data-waiting"),
    (replace(RUNNING, unsent_s=DATA_WAITING_AFTER_S - 1), "well"),
    (replace(RUNNING, no_network_s=NO_NETWORK_AFTER_S), "no-network"),
    (replace(RUNNING, no_network_s=NO_NETWORK_AFTER_S - 1), "well"),
    (replace(RUNNING, modem_gone_s=MODEM_GONE_AFTER_S), "call"),
    (replace(RUNNING, modem_gone_s=MODEM_GONE_AFTER_S - 1), "well"),
    (replace(RUNNING, disk_low=True), "call"),
    (replace(RUNNING, undervoltage=True), "charge"),
    (replace(RUNNING, beat_age_s=FROZEN_AFTER_S), "not-running"),
    (replace(RUNNING, beat_age_s=FROZEN_AFTER_S - 1), "well"),
    (replace(RUNNING, measuring=True, unsent_s=3 * HOUR_S), "data-waiting"),
    (replace(RUNNING, no_network_s=HOUR_S, unsent_s=3 * HOUR_S), "no-network"),
    (replace(RUNNING, no_network_s=HOUR_S, modem_gone_s=HOUR_S), "call"),
    (replace(RUNNING, modem_gone_s=HOUR_S, undervoltage=True, disk_low=True), "charge"),
    (replace(RUNNING, undervoltage=True, beat_age_s=HOUR_S), "not-running"),
    (Situation("stopping", undervoltage=True), "stopping"),
    (Situation("stopping", beat_age_s=HOUR_S), "stopping"),
]


@pytest.mark.parametrize(("situation", "name"), SITUATIONS)
def test_each_situation_has_its_state(situation: Situation, name: str) -> None:
    assert choose(situation).name == name


def test_every_state_but_off_is_the_state_of_some_situation() -> None:
    assert {name for _, name in SITUATIONS} == {state.name for state in STATES} - {"off"}


seconds = st.none() | st.floats(0, 1e7)
situations = st.builds(
    Situation,
    st.sampled_from(("starting", "running", "stopping", "ended")),
    st.floats(0, 1e7),
    st.booleans(),
    st.booleans(),
    seconds,
    seconds,
    seconds,
    st.booleans(),
)


@given(situations)
def test_the_gravest_of_what_holds_is_shown(situation: Situation) -> None:
    held = holding(situation)
    assert held == sorted(held, key=STATES.index)
    assert choose(situation) is held[0]
    frozen = situation.phase == "running" and situation.beat_age_s >= FROZEN_AFTER_S
    assert (choose(situation) is NOT_RUNNING) == (situation.phase == "ended" or frozen)
    assert choose(situation).blinks or choose(situation) is NOT_RUNNING
    if choose(situation) is WELL:
        assert situation.phase == "running"
        assert not any((situation.undervoltage, situation.disk_low, situation.measuring))


# --- a state is played as its pattern says, with no more writes than edges; what is chosen anew is shown at once

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


def test_a_player_that_never_began_ends_as_well() -> None:
    shown = Shown()
    Player(shown, lambda: WELL).close()
    assert shown.colours == ["red"]
