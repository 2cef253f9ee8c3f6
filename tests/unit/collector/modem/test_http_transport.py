"""The web channel against a real server on loopback that behaves as the sticks do; each refusal is a named failure of the poll."""

import socket
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.hostile_json import said
from support.scripted_modem import Collected, be_patient, good
from support.web_stick import REFUSED, SIGNAL, WebStick, page
from tandem.app.daemon.modems import sickness
from tandem.at.dialogue import NoAnswer, PortLost
from tandem.modem.poll import Poll
from tandem.modem.poller import Poller
from tandem.modem.reset import CannotStepError, StepFailedError
from tandem.modem.session import WebServer
from tandem.modem.web import MAX_BODY_BYTES, Answer, WebChannel, response, web_address

SIGNAL_PATH = "GET /api/device/signal"


def test_a_refused_token_is_renewed_within_the_same_question_and_kept_for_the_next(stick):
    channel = WebChannel(stick.url)
    for _ in range(2):
        found = channel.ask(SIGNAL_PATH, 60)
        assert found.final.ok
        assert "<rsrp>-95dBm</rsrp>" in found.lines
        assert found.command == SIGNAL_PATH
    paths = [target for target, _ in stick.asked]
    session = "/api/webserver/SesTokInfo"
    assert paths == ["/api/device/signal", session, "/api/device/signal", "/api/device/signal"]
    stick.forget_sessions()
    assert channel.ask(SIGNAL_PATH, 60).final.ok


def test_a_stick_that_goes_on_refusing_is_an_error_with_its_code(stick):
    stick.refuses_always = True
    for code, questions in ((125002, 3), (100002, 1)):
        stick.refuse_code = code
        stick.asked.clear()
        found = WebChannel(stick.url).ask(SIGNAL_PATH, 60)
        assert (found.final.ok, found.final.code, found.lines) == (False, f"stick_error_{code}", ())
        assert len(stick.asked) == questions


def test_a_cookie_of_the_home_page_does_where_there_is_no_session_path(stick):
    def old(target: str, headers: dict[str, str]) -> bytes:
        if target == "/":
            return page("<html>", "Set-Cookie: SessionID=abc; path=/; HttpOnly\r\n")
        if target == "/api/webserver/SesTokInfo":
            return page("", status="404 Not Found")
        return page(SIGNAL if headers.get("cookie") == "SessionID=abc" else REFUSED.format(125002))

    stick.behave = old
    assert WebChannel(stick.url).ask(SIGNAL_PATH, 60).final.ok


def test_a_server_that_dribbles_does_not_outlast_the_deadline(stick):
    def dribble(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        while not stick.stopping.wait(0.02):
            connection.sendall(b"x")

    stick.behave = lambda _t, _h: dribble
    with pytest.raises(NoAnswer, match="deadline"):
        WebChannel(stick.url).ask(SIGNAL_PATH, 0.3)


def test_a_slow_server_is_no_answer_and_the_next_question_has_its_own_answer(stick):
    stick.behave = lambda _t, _h: lambda _connection: stick.stopping.wait(60) and None
    channel = WebChannel(stick.url)
    with pytest.raises(NoAnswer):
        channel.ask(SIGNAL_PATH, 0.2)
    stick.behave = lambda target, _h: page(target)
    assert channel.ask("GET /b", 60).lines == ("/b",)


def test_what_is_no_whole_answer_is_none(stick):
    ok = b"HTTP/1.1 200 OK\r\n"
    answers = [
        page(SIGNAL, length=len(SIGNAL) + 50),
        ok + b"Transfer-Encoding: chunked\r\n\r\n100\r\n<res",
        ok + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        ok + b"Content-Le",
        b"",
        b"\x00\xff\xfe garbage\r\n\r\n",
        ok + b"X: y\r\n" * 500 + b"\r\n",
        ok + b"\r\n" + b"x" * (MAX_BODY_BYTES + 10_000),
        page(b"x" * (MAX_BODY_BYTES + 1)),
    ]
    stick.behave = lambda _t, _h: answers[0]
    taken = []
    while answers:
        if not said(NoAnswer, WebChannel(stick.url).ask, SIGNAL_PATH, 60):
            taken.append(answers[0][:40])
        del answers[0]
    assert taken == []


def test_a_redirect_is_followed_within_the_stick_never_off_it_and_other_statuses_are_errors(stick):
    places = {
        "/a": "/b",
        "/b": "http://127.0.0.1:1/elsewhere",
        "/c": "http://example.invalid/",
        "/loop": "/loop",
        "/bad": "http://[/",
    }

    def lead(target: str, _headers: dict[str, str]) -> bytes:
        return page("", f"Location: {places[target]}\r\n", "302 Found") if target in places else page("here")

    stick.behave = lead
    channel = WebChannel(stick.url)
    places["/d"] = f"{stick.url}/e"
    assert channel.ask("GET /d", 60).lines == ("here",)
    for target in ("/a", "/c", "/loop", "/bad"):
        assert channel.ask(f"GET {target}", 60).final.code == "http_302"
    assert len([target for target, _ in stick.asked if target == "/loop"]) == 3
    stick.behave = lambda _t, _h: page("<html>not here", status="404 Not Found")
    assert channel.ask(SIGNAL_PATH, 60).final.code == "http_404"


def test_the_charset_is_the_one_that_is_named(stick):
    for body, kind, lines in (
        ("\ufeffbandé".encode(), "text/html", ("bandé",)),
        ("bandé".encode("latin-1"), "text/html; charset=iso-8859-1", ("bandé",)),
        (b"a\r\n\r\n  b \n", "text/html; charset=nobody-knows", ("a", "b")),
        (b"\xff\xfe", "text/plain", ("��",)),
    ):
        answer = page(body, f"Content-Type: {kind}\r\n")
        stick.behave = lambda _t, _h, answer=answer: answer
        assert WebChannel(stick.url).ask("GET /x", 60).lines == lines


def test_where_nobody_listens_the_port_is_lost():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(PortLost, match="refused"):
        WebChannel(f"http://127.0.0.1:{port}").ask(SIGNAL_PATH, 1)


def test_an_interface_that_is_gone_is_a_lost_port_and_loopback_is_reached_over_its_own(stick):
    with pytest.raises(PortLost, match="gone0"):
        WebChannel(stick.url, "gone0").ask(SIGNAL_PATH, 1)
    assert WebChannel(stick.url, "lo").ask(SIGNAL_PATH, 60).final.ok


def test_what_is_no_address_of_a_stick_is_refused():
    for url in ("https://192.168.8.1", "http://stick", "http://192.168.8.256", "http://1.2.3.4:0", "http://1.2.3.4/x"):
        assert "is not of the form" in said(ValueError, web_address, url), url


@given(st.text(max_size=300), st.integers(100, 599))
def test_any_body_is_a_response_of_lines_without_ends(body, status):
    found = response("GET /x", Answer(status, {}, body))
    assert all(line and "\n" not in line and "\r" not in line for line in found.lines)
    assert found.lines == () or status == 200


# --- A stick's web server that refuses: each refusal a named failure of the poll, mended by a new session or a restart where that helps


SIGNAL_PAGE = "/api/device/signal"


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


def test_an_error_of_hilink_is_the_polls_failure_by_name_and_in_its_record(stick, polled):
    made = polled("hilink")
    for code, name, sick in (
        (100003, "login_needed", None),
        (100004, "busy", "refusing"),
        (125003, "token_wrong", "refusing"),
        (112233, "error 112233", None),
    ):
        made.next(good)
        stick.refused["*"] = code
        poll = made.next(lambda p, name=name: p.failure == name)
        assert (poll.state, poll.reading) == ("unknown", None)
        assert poll.record().fields["failure"] == name
        assert "rsrp_dbm" not in poll.record().fields
        assert sickness(poll) == sick
        stick.refused.clear()
        assert "failure" not in made.next(good).record().fields


def test_a_page_that_this_model_has_not_fails_no_poll_and_its_signal_page_does(stick, polled):
    stick.refused["/api/net/current-plmn"] = 100002
    made = polled("hilink")
    made.next(good)
    only_plmn = page("<response><Numeric>24405</Numeric></response>")
    plain = stick.behave
    stick.behave = lambda target, headers: only_plmn if "plmn" in target else plain(target, headers)
    stick.refused.update({SIGNAL_PAGE: 100004, "/api/monitoring/status": 100002})
    assert made.next(lambda p: p.failure is not None).failure == "busy"


def test_a_family_is_found_also_while_it_refuses(stick, polled):
    stick.refused["*"] = 100004
    made = polled("auto")
    assert made.next(lambda p: p.failure == "busy").driver == "hilink"


def test_a_session_of_goform_that_ended_is_renewed_within_the_poll(stick, polled):
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


def test_a_new_session_and_a_restart_are_steps_of_a_web_server_and_at_commands_are_not(stick, polled):
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


def test_goform_is_told_to_start_anew_and_may_refuse(stick, polled):
    stick.behave = stick.goform
    made = polled("zte_web")
    made.next(good)
    assert "start anew" in made.poller.reset("reboot", 60)
    assert stick.restarts == ["isTest=false&goformId=REBOOT_DEVICE"]
    stick.locked = True
    with pytest.raises(StepFailedError, match="failure"):
        made.poller.reset("reboot", 60)
