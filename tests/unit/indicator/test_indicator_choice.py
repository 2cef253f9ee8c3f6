"""Which state is shown in which situation: the gravest wins, and a frozen collector never looks well."""

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
from tandem.schema.status_led import NOT_RUNNING, STATES, WELL

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
