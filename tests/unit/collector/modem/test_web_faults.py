"""A stick's web server that refuses: each refusal a named failure of the poll, mended by a new session or a restart where that helps."""

from collections.abc import Callable, Iterator

import pytest

from support.scripted_modem import Collected, be_patient, good
from support.web_stick import WebStick, page
from tandem.app.daemon.modems import sickness
from tandem.modem.poll import Poll
from tandem.modem.poller import Poller
from tandem.modem.reset import CannotStepError, StepFailedError
from tandem.modem.session import WebServer

SIGNAL_PATH = "/api/device/signal"


class Polled(Collected):
    """A poller at a stick, ten polls a second."""

    def __init__(self, stick: WebStick, driver: str) -> None:
        super().__init__()
        self.more: list[Callable[[Poll], None]] = []
        self.poller = Poller("a", "A", WebServer(stick.url), driver, 0.1, self._add)
        self.poller.start()

    def _add(self, poll: Poll) -> None:
        for more in self.more:
            more(poll)
        self.add(poll)

    def next(self, what: Callable[[Poll], bool]) -> Poll:
        """The next poll that is so."""
        after = len(self.made)
        return next(filter(what, self.wait(lambda polls: any(map(what, polls[after:])))[after:]))


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    be_patient(monkeypatch)
    monkeypatch.setattr("tandem.modem.session.RENEW_AGAIN_S", 3600.0)


@pytest.fixture
def polled(stick: WebStick) -> Iterator[Callable[[str], Polled]]:
    made: list[Polled] = []

    def poll(driver: str) -> Polled:
        made.append(Polled(stick, driver))
        return made[-1]

    yield poll
    for one in made:
        one.poller.stop(60)


@pytest.mark.parametrize(
    ("code", "name", "sick"),
    [
        (100001, "system_error", "refusing"),
        (100003, "login_needed", None),
        (100004, "busy", "refusing"),
        (100006, "wrong_parameter", None),
        (101001, "no_sim", None),
        (125003, "token_wrong", "refusing"),
        (112233, "error 112233", None),
    ],
)
def test_an_error_of_hilink_is_the_polls_failure_by_name_and_in_its_record(
    stick: WebStick, polled: Callable[[str], Polled], code: int, name: str, sick: str | None
) -> None:
    made = polled("hilink")
    made.next(good)
    stick.refused["*"] = code
    poll = made.next(lambda p: p.failure == name)
    assert (poll.state, poll.reading) == ("unknown", None)
    assert poll.record().fields["failure"] == name
    assert "rsrp_dbm" not in poll.record().fields
    assert sickness(poll) == sick
    stick.refused.clear()
    assert "failure" not in made.next(good).record().fields


def test_a_page_that_this_model_has_not_fails_no_poll_and_its_signal_page_does(
    stick: WebStick, polled: Callable[[str], Polled]
) -> None:
    stick.refused["/api/net/current-plmn"] = 100002
    made = polled("hilink")
    made.next(good)
    only_plmn = page("<response><Numeric>24405</Numeric></response>")
    plain = stick.behave
    stick.behave = lambda target, headers: only_plmn if "plmn" in target else plain(target, headers)
    stick.refused.update({SIGNAL_PATH: 100004, "/api/monitoring/status": 100002})
    assert made.next(lambda p: p.failure is not None).failure == "busy"


def test_a_family_is_found_also_while_it_refuses(stick: WebStick, polled: Callable[[str], Polled]) -> None:
    stick.refused["*"] = 100004
    made = polled("auto")
    assert made.next(lambda p: p.failure == "busy").driver == "hilink"


def test_a_session_of_goform_that_ended_is_renewed_within_the_poll(
    stick: WebStick, polled: Callable[[str], Polled]
) -> None:
    stick.behave = stick.goform
    made = polled("zte_web")
    made.next(good)
    stick.forget_sessions()
    made.next(lambda _poll: True)
    made.next(good)
    assert all(poll.failure is None for poll in made.made), "the poll that met the end of the session was answered"
    stick.forget_sessions()  # again, too soon to try the same within a poll
    asked = len(stick.asked)
    polls = len(made.made)
    assert made.next(lambda p: p.failure is not None).failure == "referer_missing"
    made.next(lambda _poll: len(made.made) >= polls + 4)
    assert [target for target, _ in stick.asked[asked:]].count("/") == 0


def test_a_new_session_and_a_restart_are_steps_of_a_web_server_and_at_commands_are_not(
    stick: WebStick, polled: Callable[[str], Polled]
) -> None:
    made = polled("hilink")
    made.next(good)
    sessions = stick.session
    assert "new session" in made.poller.reset("session", 60)
    assert stick.session == sessions + 1
    assert "start anew" in made.poller.reset("reboot", 60)
    assert stick.restarts == ['<?xml version="1.0" encoding="UTF-8"?><request><Control>1</Control></request>']
    with pytest.raises(CannotStepError, match="no AT commands"):
        made.poller.reset("cfun", 60)
    stick.locked = True
    with pytest.raises(StepFailedError, match="login_needed"):
        made.poller.reset("reboot", 60)
    stick.refused["*"] = 100001
    with pytest.raises(StepFailedError, match="system_error"):
        made.poller.reset("session", 60)


def test_goform_is_told_to_start_anew_and_may_refuse(stick: WebStick, polled: Callable[[str], Polled]) -> None:
    stick.behave = stick.goform
    made = polled("zte_web")
    made.next(good)
    assert "start anew" in made.poller.reset("reboot", 60)
    assert stick.restarts == ["isTest=false&goformId=REBOOT_DEVICE"]
    stick.locked = True
    with pytest.raises(StepFailedError, match="failure"):
        made.poller.reset("reboot", 60)
