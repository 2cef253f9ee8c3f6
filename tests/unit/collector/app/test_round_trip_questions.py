"""What becomes of a path's questions, whatever comes back and when."""

import pytest

from tandem.app.round_trip.questions import AGAIN_NS, LATE_NS, LOST_NS, Questions

S = 10**9
MS = 10**6


def asked(questions: Questions, *sequences: int) -> None:
    """Each at its whole second, 1 ms after it."""
    for n in sequences:
        questions.asked(n, n * S, n * S + MS, beside_run=False)


def test_the_time_is_the_networks_own_and_a_late_question_says_so():
    questions = Questions()
    asked(questions, 7)
    told = questions.heard(7, 7 * S + 41 * MS, server_ns=3 * MS)
    assert (told.outcome, told.rtt_ms, told.instant_ns, told.sequence) == ("answered", 37.0, 7 * S, 7)
    assert (told.sent_after_ms, told.duplicates, told.too_late) == (None, None, None)
    assert questions.oldest_ns is None
    questions = Questions()
    questions.asked(1, S, S + 250 * MS, beside_run=True)
    told = questions.heard(1, S + 300 * MS, 0)
    assert (told.sent_after_ms, told.rtt_ms, told.beside_run) == (250.0, 50.0, True)


def test_answers_in_another_order_belong_to_their_own_questions():
    questions = Questions()
    asked(questions, 1, 2, 3)
    told = [questions.heard(n, 4 * S + MS, 0) for n in (3, 1, 2)]
    assert [(t.sequence, t.rtt_ms, t.outcome) for t in told] == [
        (3, 1000.0, "answered"),
        (1, 3000.0, "late"),
        (2, 2000.0, "answered"),
    ]


@pytest.mark.parametrize(
    ("took_ns", "outcome", "rtt_ms"),
    [
        (LATE_NS, "answered", 2000.0),
        (LATE_NS + MS, "late", 2001.0),
        (LOST_NS, "late", 10_000.0),
        (LOST_NS + 1, "lost", None),
    ],
)
def test_late_and_lost_begin_after_their_times(took_ns, outcome, rtt_ms):
    questions = Questions()
    asked(questions, 1)
    told = questions.heard(1, S + MS + took_ns, 0)
    assert (told.outcome, told.rtt_ms, told.too_late) == (outcome, rtt_ms, 1 if outcome == "lost" else None)


def test_what_nobody_answers_is_lost_after_ten_seconds_and_not_before():
    questions = Questions()
    asked(questions, 1, 2)
    assert questions.overdue(S + MS + LOST_NS) == []
    assert [t.sequence for t in questions.overdue(S + MS + LOST_NS + 1)] == [1]
    assert questions.oldest_ns == 2 * S + MS


def test_a_second_answer_is_a_duplicate_and_one_to_a_lost_question_too_late():
    questions = Questions()
    asked(questions, 1, 2, 3)
    questions.heard(2, 2 * S + 2 * MS, 0)
    assert questions.heard(2, 2 * S + 3 * MS, 0) is None
    (lost,) = questions.overdue(S + MS + LOST_NS + 1)
    assert (lost.sequence, lost.duplicates, lost.too_late) == (1, 1, None)
    assert questions.heard(1, 30 * S, 0) is None
    assert questions.heard(99, 30 * S, 0) is None  # never asked
    told = questions.heard(3, 3 * S + 5 * MS, 0)
    assert (told.duplicates, told.too_late) == (None, 1)  # the duplicate was told


def test_questions_that_the_server_had_nobody_for_are_not_lost():
    questions = Questions()
    asked(questions, 1, 2, 3)
    assert [(t.sequence, t.outcome) for t in questions.unserved(before_ns=3 * S)] == [(1, "unserved"), (2, "unserved")]
    assert questions.heard(3, 3 * S + 2 * MS, 0).outcome == "answered"
    assert questions.overdue(60 * S) == []


def test_when_a_pause_and_a_path_that_is_down_are_told():
    questions = Questions()
    told = [questions.not_asked(n, n * S, "paused", beside_run=True) for n in range(1, 131)]
    assert [t.sequence for t in told if t is not None] == [1, 1 + AGAIN_NS // S, 1 + 2 * AGAIN_NS // S]
    assert questions.not_asked(131, 131 * S, "budget", beside_run=False).outcome == "budget"
    asked(questions, 132)
    assert questions.not_asked(133, 133 * S, "budget", beside_run=False) is not None
    assert [questions.down(n, n * S, beside_run=False).outcome for n in (134, 135)] == ["down"] * 2
