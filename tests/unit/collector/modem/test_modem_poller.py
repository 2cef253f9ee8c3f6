"""The poller's thread against a scripted modem on a pseudo-terminal."""

import contextlib
import itertools
import time
from collections.abc import Iterator

import pytest

from support.scripted_modem import LINES, POLL, Collected, ScriptedModem, good, polling, rsrp
from support.waiting import until
from tandem.modem.poll import Poll
from tandem.modem.poller import Poller

PERIOD_S = 0.1


pytestmark = pytest.mark.usefixtures("patient")


@pytest.fixture
def polls() -> Collected:
    return Collected()


@pytest.fixture
def poller(modem: ScriptedModem, polls: Collected) -> Iterator[Poller]:
    with polling(Poller("a", "A", str(modem.link), "auto", PERIOD_S, polls.add)) as running:
        yield running


def test_it_identifies_sets_up_and_polls_at_its_due_times(modem, poller, polls):
    made = polls.wait(lambda p: len(p) >= 5)
    assert all(good(poll) for poll in made)
    assert {(poll.path, poll.operator, poll.driver, poll.model) for poll in made} == {("a", "A", "quectel", "EC25")}
    assert modem.heard[:2] == ["ATE0", "AT+CMEE=1"]
    steps = {b.due_monotonic_ns - a.due_monotonic_ns - b.skipped * 10**8 for a, b in itertools.pairwise(made)}
    assert steps == {10**8}, "due times drift"
    assert all(poll.due_monotonic_ns <= poll.began_monotonic_ns < poll.ended_monotonic_ns for poll in made)
    assert made[0].reading is not None
    assert made[0].reading.eci == 0x5A2C30B
    record = made[0].record()
    assert record.tags == {"path": "a", "operator": "A", "driver": "quectel", "rat": "LTE"}
    assert (record.monotonic_ns, record.fields["stale"]) == (made[0].began_monotonic_ns, False)
    assert record.fields["poll_duration_ms"] == made[0].duration_ms > 0
    assert poller.dropped == {}


def test_a_port_that_is_not_there_is_logged_once_and_found_later(tmp_path, polls, caplog):
    link = tmp_path / "late"
    with contextlib.ExitStack() as ends, polling(Poller("b", None, str(link), "auto", PERIOD_S, polls.add)):
        polls.wait(lambda p: len(p) >= 4)
        missing = f"b: {link}: No such file or directory"
        assert [r.message for r in caplog.records if str(link) in r.message] == [missing]
        assert (polls.made[0].failure, polls.made[0].driver) == ("port_lost", None)
        assert polls.made[0].record().tags == {"path": "b"}
        ends.callback(ScriptedModem(link).close)
        polls.wait(lambda p: good(p[-1]))


def test_while_one_modem_is_gone_the_other_is_polled_as_before(modem, poller, polls, tmp_path):
    other, of_other = ScriptedModem(tmp_path / "other"), Collected()
    with contextlib.closing(other), polling(Poller("b", "B", str(other.link), "auto", PERIOD_S, of_other.add)):
        of_other.wait(lambda p: p != [] and good(p[-1]))
        heard = modem.heard.count("ATE0")
        other.unplug()
        of_other.wait(lambda p: p[-1].failure == "port_lost")
        count = len(polls.made)
        made = polls.wait(lambda p: len(p) >= count + 5)
        assert all(good(poll) and poll.path == "a" for poll in made)
        assert modem.heard.count("ATE0") == heard, "its port was not opened anew"
        other.plug()
        of_other.wait(lambda p: good(p[-1]))
    assert poller.path == "a"


def test_an_error_of_every_command_is_the_polls_failure(modem, poller, polls):
    modem.error = "+CME ERROR: 10"
    failed = polls.wait(lambda p: p != [] and p[-1].failure == "cme_error 10")[-1]
    assert failed.reading is None
    assert failed.record().fields["state"] == "unknown"
    modem.error = "+CME ERROR: 30"
    failed = polls.wait(lambda p: p[-1].failure == "cme_error 30")[-1]
    assert failed.record().fields["state"] == "no_service"
    modem.error = None
    polls.wait(lambda p: good(p[-1]))
    assert poller.path == "a"


def test_a_poll_that_takes_too_long_passes_due_times_over_and_does_not_drift(modem, polls):
    def busy(poll: Poll) -> None:
        polls.add(poll)
        if len(polls.made) == 2:
            until(lambda: time.monotonic_ns() > poll.due_monotonic_ns + 4.5 * PERIOD_S * 10**9)

    with polling(Poller("a", "A", str(modem.link), "auto", PERIOD_S, busy)):
        made = polls.wait(lambda p: any(poll.skipped >= 3 for poll in p) and good(p[-1]))
    assert all((poll.due_monotonic_ns - made[0].due_monotonic_ns) % 10**8 == 0 for poll in made)


def test_a_receiver_that_fails_does_not_end_the_measuring(modem, polls, caplog):
    def failing(poll: Poll) -> None:
        polls.add(poll)
        raise ValueError("the receiver's own mistake")

    with polling(Poller("a", None, str(modem.link), "generic", PERIOD_S, failing)):
        polls.wait(lambda p: len(p) >= 3)
    assert "the receiver's own mistake" in caplog.text


def test_stopping_is_prompt_and_leaves_the_port_free(modem, polls):
    with polling(Poller("a", None, str(modem.link), "auto", 300.0, polls.add)):
        polls.wait(lambda p: len(p) == 1)
    with polling(Poller("a", None, str(modem.link), "auto", PERIOD_S, polls.add)):
        polls.wait(lambda p: len(p) >= 3 and good(p[-1]))


def test_a_link_that_is_moved_to_another_modem_is_followed(modem, poller, polls, tmp_path):
    polls.wait(lambda p: len(p) >= 2)
    other = ScriptedModem(tmp_path / "other")
    other.lines = (LINES[0].replace("-95", "-120"), LINES[1])
    try:
        spare = tmp_path / "spare"
        spare.symlink_to(other.device)
        spare.replace(modem.link)
        polls.wait(lambda p: rsrp(p[-1]) == -120.0)
        assert "ATE0" in other.heard
        poller.stop(60)
    finally:
        other.close()


def test_a_modem_that_names_itself_only_in_its_text_is_known_by_that(modem, polls):
    modem.answers = {"AT+CGMI": "ERROR", "AT+CGMM": "ERROR", "ATI": "Quectel\r\nEC25\r\nEC25EFAR06\r\n\r\nOK"}
    with polling(Poller("a", "A", str(modem.link), "auto", PERIOD_S, polls.add)):
        (poll, *_) = polls.wait(lambda p: len(p) >= 1)
    assert (poll.driver, poll.model) == ("quectel", "EC25")


def test_out_of_range_quantities_are_left_out_and_counted(modem, poller, polls):
    modem.heard.clear()
    modem.wait_heard(POLL)
    modem.lines = (
        '+QENG: "servingcell","NOCONN","LTE","FDD",244,91,5A2C30B,211,1300,3,5,5,FFFFFFFFF,-95,-10,-66,12,33',
        LINES[1],
    )
    made = polls.wait(lambda p: p != [] and p[-1].reading is not None and p[-1].reading.tac is None)
    assert good(made[-1])
    assert poller.dropped["tac"] >= 1
