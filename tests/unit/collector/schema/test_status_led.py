"""The states of the status LED: told apart by pattern alone, harmless to the eye, and each with its sentences."""

from itertools import combinations

from tandem.schema.status_led import NOT_RUNNING, OFF, STATES, WELL, LedState, Pattern

STEADY = (NOT_RUNNING, OFF)
BLINKING = tuple(state for state in STATES if state not in STEADY)


def flashes_ms(pattern: Pattern, until_ms: int) -> list[int]:
    """When a flash begins."""
    begins, now = [], 0
    while now < until_ms:
        for lit, dark in pattern:
            begins += [now] if lit else []
            now += lit + dark
    return begins


def unlike(one: Pattern, other: Pattern) -> bool:
    """Whether an eye without colours tells them apart, by the number of flashes in a group, or by a rhythm twice as long.

    A pattern without a flash, or without a dark moment, is unlike every one that has them.
    """
    kinds = [(len(p), any(lit for lit, _ in p), any(dark for _, dark in p)) for p in (one, other)]
    if kinds[0] != kinds[1]:
        return True
    features = [
        (max(lit for lit, _ in p), max(dark for _, dark in p), sum(lit + dark for lit, dark in p)) for p in (one, other)
    ]
    return any(max(a, b) >= 2 * min(a, b) and abs(a - b) >= 250 for a, b in zip(*features, strict=True))


def test_patterns_alone_tell_the_states_apart_and_well_is_the_most_discreet():
    alike = [(a.name, b.name) for a, b in combinations(STATES, 2) if not unlike(a.pattern, b.pattern)]
    assert alike == []
    assert not unlike(((200, 300),), ((300, 200),))
    assert not unlike(((150, 250), (150, 1450)), ((150, 250), (150, 1800)))

    def lit_share(state: LedState) -> float:
        return sum(lit for lit, _ in state.pattern) / state.period_ms

    assert lit_share(WELL) == min(lit_share(state) for state in BLINKING) < 0.02


def test_a_pattern_is_short_and_its_flashes_can_be_seen_and_are_no_more_than_three_in_any_second():
    for state in STATES:
        assert 0 < state.period_ms <= 4000, state.name
        assert state.blinks == (state not in STEADY), "steady light says that nothing runs"
        if state in STEADY:
            assert len(state.pattern) == 1, state.name
            continue
        assert all(lit >= 50 and dark >= 200 for lit, dark in state.pattern), state.name
        begins = flashes_ms(state.pattern, 20_000)
        for first in begins[:-4]:
            assert sum(first <= begin <= first + 1000 for begin in begins) <= 3, state.name
