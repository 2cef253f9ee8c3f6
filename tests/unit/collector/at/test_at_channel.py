"""The channel over a pseudo-terminal whose other end is played line by line."""

import contextlib
import os
import queue
import select
import threading
import time
import tty
from collections.abc import Callable, Iterator

import pytest

from tandem.at.channel import Channel, open_port
from tandem.at.dialogue import NoAnswer, PortLost, Unsolicited
from tandem.at.grammar import Command, LineSplitter, explained

Play = Callable[["Modem"], None]


@pytest.fixture(autouse=True)
def _one_marker(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not sent again because the machine is slow."""
    monkeypatch.setattr("tandem.at.channel.MARKER_AGAIN_S", 3600.0)


class Modem:
    """The other end of the port."""

    def __init__(self) -> None:
        self.master, self._slave = os.openpty()
        tty.setraw(self._slave)
        self.path = os.ttyname(self._slave)
        self.heard: list[str] = []

    def expect(self) -> str:
        """One command as the channel sent it."""
        command = b""
        while not command.endswith(b"\r"):
            ready, _, _ = select.select([self.master], [], [], 60)
            assert ready, "the channel sent nothing"
            command += os.read(self.master, 1)
        self.heard.append(command.decode().strip())
        return self.heard[-1]

    def send(self, text: str) -> None:
        os.write(self.master, text.encode("latin-1"))

    def vanish(self) -> None:
        os.close(self._slave)
        os.close(self.master)
        self.master = self._slave = -1


def silent(modem: Modem) -> None:
    """Says nothing at all."""
    assert modem.master >= 0


@contextlib.contextmanager
def playing(play: Play) -> Iterator[tuple[Modem, Channel, list[str]]]:
    modem = Modem()
    unsolicited: list[str] = []
    channel = Channel(open_port(modem.path), lambda told: unsolicited.append(told.line))
    # An assertion that fails in the thread is a pytest warning, and warnings are errors here.
    thread = threading.Thread(target=play, args=(modem,))
    thread.start()
    try:
        yield modem, channel, unsolicited
    finally:
        thread.join(60)
        channel.close()
        if modem.master >= 0:
            modem.vanish()


def test_echo_codes_and_pieces_do_not_disturb():
    def play(modem: Modem) -> None:
        modem.expect()
        for piece in ("AT+C", "SQ\r\r\n", "\r\n+CEREG: 1\r\n", "\r\n+CS", "Q: 20,", "99\r\n", "RING\r\n\r\nO", "K\r\n"):
            modem.send(piece)

    with playing(play) as (_, channel, unsolicited):
        response = channel.ask("AT+CSQ", 60)
    assert response.lines == ("+CSQ: 20,99",)
    assert unsolicited == ["+CEREG: 1", "RING"]


def test_a_modem_that_is_silent_or_takes_nothing_in_is_no_answer():
    for asked in ("AT+CSQ", "AT+CSQ;" + "+CSQ;" * 20_000):
        with playing(silent) as (_, channel, _u), pytest.raises(NoAnswer, match=r"AT\+CSQ"):
            channel.ask(asked, 0.2)


def test_endless_noise_is_no_answer_at_the_deadline():
    stop = threading.Event()

    def play(modem: Modem) -> None:
        os.set_blocking(modem.master, False)
        while not stop.is_set():
            with contextlib.suppress(BlockingIOError):
                modem.send("\x85\x01zzz\r\n" * 50)

    with playing(play) as (_, channel, _u):
        try:
            with pytest.raises(NoAnswer):
                channel.ask("AT+CSQ", 0.3)
        finally:
            stop.set()


MARKED = "\r\n+CMEE: 1\r\n\r\nOK\r\n"


def csq(level: int) -> str:
    return f"\r\n+CSQ: {level},99\r\n\r\nOK\r\n"


def late(modem: Modem) -> None:
    """Answers the question before behind the marker by which the channel makes sure of its place."""
    assert modem.expect() == "AT+CMEE?"
    modem.send(csq(1))
    modem.send(MARKED)
    modem.expect()
    modem.send(csq(2))


def without_the_marker(modem: Modem) -> None:
    assert modem.expect() == "AT+CMEE?"
    modem.send("\r\nERROR\r\n")
    modem.expect()
    modem.send(csq(2))


def in_order(modem: Modem) -> None:
    """As a modem does that was hung: it answers all that it was sent."""
    modem.send(csq(1))
    while (command := modem.expect()) != "AT+CSQ":
        assert command == "AT+CMEE?"
        modem.send(MARKED)
    modem.send(csq(2))


@pytest.mark.parametrize(("behaves", "missed"), [(late, 1), (without_the_marker, 1), (in_order, 4)])
def test_what_is_owed_from_missed_deadlines_is_not_the_next_answer(behaves, missed):
    over = threading.Event()

    def play(modem: Modem) -> None:
        assert modem.expect() == "AT+CSQ"
        over.wait(60)
        behaves(modem)

    with playing(play) as (_, channel, unsolicited):
        for _again in range(missed):
            with pytest.raises(NoAnswer):
                channel.ask("AT+CSQ", 0.1)
        over.set()
        assert channel.ask("AT+CSQ", 60).lines == ("+CSQ: 2,99",)
        assert unsolicited == []


def test_a_late_answer_while_nothing_is_asked_settles_the_channel():
    missed, settled = threading.Event(), threading.Event()

    def play(modem: Modem) -> None:
        assert [modem.expect(), modem.expect()] == ["AT+CSQ", "AT+CMEE?"]
        missed.wait(60)
        modem.send(csq(1) + MARKED)
        settled.set()
        assert modem.expect() == "AT+CSQ"
        modem.send(csq(2))

    with playing(play) as (_, channel, unsolicited):
        for _again in range(2):
            with pytest.raises(NoAnswer):
                channel.ask("AT+CSQ", 0.1)
        missed.set()
        assert settled.wait(60)
        channel.listen(time.monotonic() + 0.05)
        assert channel.ask("AT+CSQ", 60).lines == ("+CSQ: 2,99",)
        assert unsolicited == []


def test_a_port_that_vanishes_in_mid_command_is_lost():
    def play(modem: Modem) -> None:
        modem.expect()
        modem.send("\r\n+CSQ: 2")
        modem.vanish()

    with playing(play) as (_, channel, _u):
        for _again in range(2):
            with pytest.raises(PortLost):
                channel.ask("AT+CSQ", 60)


def test_a_port_that_vanishes_between_commands_or_is_not_there_is_lost():
    with playing(Modem.vanish) as (_, channel, _u), pytest.raises(PortLost):
        channel.listen(time.monotonic() + 3600)
    with pytest.raises(PortLost, match="nowhere"):
        open_port("/dev/nowhere-tandem")


def test_listening_ends_when_woken():
    modem = Modem()
    wake_fd = os.eventfd(0)
    channel = Channel(open_port(modem.path), wake_fd=wake_fd)
    os.eventfd_write(wake_fd, 1)
    channel.listen(time.monotonic() + 3600)
    channel.close()
    modem.vanish()
    os.close(wake_fd)


# --- what comes unasked, prompts, and the less common forms of answers

CHANGE = '+CEREG: 1,"1A2C","05A2C30C",7'


def test_each_unsolicited_line_carries_the_time_when_it_was_read_not_when_the_exchange_ended():
    told: queue.SimpleQueue[Unsolicited] = queue.SimpleQueue()
    first: list[Unsolicited] = []
    between_ns: list[int] = []

    def play(modem: Modem) -> None:
        modem.expect()
        modem.send(f"\r\n{CHANGE}\r\n")
        first.append(told.get(timeout=60))
        between_ns.append(time.monotonic_ns())
        modem.send("\r\n+CSQ: 5,99\r\n\r\nOK\r\nRING\r\n")

    with playing(play) as (_, channel, _u):
        channel.on_unsolicited = told.put
        began_ns = time.monotonic_ns()
        channel.ask("AT+CSQ", 60)
        while told.empty():
            channel.listen(time.monotonic() + 0.05)
        told_both = [*first, told.get()]
        assert [one.line for one in told_both] == [CHANGE, "RING"]
        assert began_ns < told_both[0].monotonic_ns < between_ns[0] < told_both[1].monotonic_ns


def test_whoever_cannot_take_an_unsolicited_line_does_not_end_the_exchange(caplog):
    def play(modem: Modem) -> None:
        modem.expect()
        modem.send("\r\nRING\r\n" + csq(5))

    def broken(_told: Unsolicited) -> None:
        raise ZeroDivisionError

    with playing(play) as (_, channel, _u):
        channel.on_unsolicited = broken
        assert channel.ask("AT+CSQ", 60).lines == ("+CSQ: 5,99",)
    assert "ZeroDivisionError" in caplog.text


def test_a_modem_that_somebody_left_at_a_prompt_is_freed():
    heard: list[bytes] = []

    def play(modem: Modem) -> None:
        modem.expect()
        modem.send("\r\n> ")
        heard.append(os.read(modem.master, 10))
        modem.send("\r\nOK\r\n")

    with playing(play) as (_, channel, _u):
        assert channel.ask("ATE0", 60).final.ok
    assert heard == [b"\x1b"]
    chunks = {b"\r\n> ": True, b"\r\n>": False, b"> x": False, b"> \r\n": False, b"a> ": False}
    for chunk, prompt in chunks.items():
        splitter = LineSplitter()
        splitter.feed(chunk)
        assert (splitter.take_prompt(), splitter.take_prompt()) == (prompt, False), chunk


def test_basic_commands_are_chained_without_separators_and_errors_are_said_in_words():
    parts = {
        "ATE0V1+CMEE=1;+CSQ": ("E0", "V1", "+CMEE=1", "+CSQ"),
        "AT&FE0": ("&F", "E0"),
        "ATS0=0S7?": ("S0=0", "S7?"),
        "ATD*99#": ("D*99#",),
        "AT": (),
        'AT+QENG="a;b";+QCSQ': ('+QENG="a;b"', "+QCSQ"),
    }
    assert {text: Command(text).parts for text in parts} == parts
    words = {
        "cme_error 10": "+CME ERROR 10: no SIM inserted",
        "cme_error 999": "+CME ERROR 999",
        "cme_error ²": "+CME ERROR ²",
        "error": "ERROR",
        "no_carrier": "NO CARRIER",
    }
    assert {code: explained(code) for code in words} == words
