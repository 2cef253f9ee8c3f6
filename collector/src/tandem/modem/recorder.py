"""Record a modem's dialogue, or what a stick's web server answers, as a transcript for a driver: scrubbed of identities, in the form of
``families/transcripts``."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tandem.at.channel import Channel, Port
from tandem.at.dialogue import Dialogue, Response
from tandem.at.errors import NoAnswer
from tandem.at.grammar import Command, Final
from tandem.at.lines import LineSplitter
from tandem.modem.base import Driver, Identity
from tandem.modem.families import FALLBACK, drivers
from tandem.modem.families.hilink import flat
from tandem.modem.scrub import scrub, scrub_page, scrubbed
from tandem.modem.session import identify
from tandem.modem.web import Answer, WebChannel
from tandem.schema.record import Value

OPENING = ("ATE0", "AT+CMEE=1", "AT+CGMI", "AT+CGMM", "AT+CGMR", "ATI")
HARMLESS = (
    "AT+CPIN?", "AT+CFUN?", "AT+CSQ", "AT+CESQ", "AT+COPS?", "AT+CREG?", "AT+CGREG?", "AT+CEREG?", "AT+C5GREG?", "AT+CGATT?",
)  # fmt: skip
"""Asked of every modem: reads only, of the standard, none that takes longer than a moment or prints a serial number."""

DEADLINE_S = 5.0


@dataclass(frozen=True)
class Turn:
    """One command and the bytes that came, as text; ``failure`` when no final result came."""

    send: str
    receive: str
    failure: str | None = None

    def as_json(self) -> dict[str, str]:
        """Scrubbed."""
        found = {"send": self.send, "receive": scrub(self.receive)}
        return found if self.failure is None else {**found, "failure": self.failure}


class Recorder:
    """Asks one modem. PortLost when it goes away; a command that is not answered is a turn with a failure."""

    def __init__(self, port: Port, on_turn: Callable[[Turn], None] | None = None) -> None:
        self._heard = bytearray()
        self._channel = Channel(port, on_bytes=self._heard.extend)
        self._on_turn = on_turn
        self.turns: list[Turn] = []
        self._answers: list[Response] = []

    def record(self) -> tuple[Identity, list[Driver]]:
        """Who it is, what every modem is asked, and what the drivers that match it ask. The drivers, the standard's last."""
        if self._ask(OPENING[0]) is None and self._ask(OPENING[0]) is None:
            raise NoAnswer(f"no modem answers {OPENING[0]} here")
        for command in OPENING[1:]:
            self._ask(command)
        identity = identify(self._answers)
        known = drivers()
        matching = [d for d in known.values() if d.name != FALLBACK and d.transport == "at" and d.matches(identity)]
        matching.append(known[FALLBACK])
        for command in HARMLESS:
            self._ask(command)
        for driver in matching:
            for command in (*driver.setup_commands(identity), *driver.poll_commands(identity)):
                self._ask(command)
        return identity, matching

    def _ask(self, command: str) -> Response | None:
        self._heard.clear()
        answer, failure = None, None
        try:
            answer = self._channel.ask(command, DEADLINE_S)
            self._answers.append(answer)
        except NoAnswer:
            failure = "no_answer"
        turn = Turn(command, self._heard.decode("latin-1"), failure)
        self.turns.append(turn)
        if self._on_turn is not None:
            self._on_turn(turn)
        return answer


def transcript(identity: Identity, driver: Driver, turns: Sequence[Turn], recorded: str) -> dict[str, Any]:
    """The transcript of ``driver``'s poll, with everything that was asked beside it in ``further``. ``recorded``: the date.

    ``expected`` is what the driver reads in it now: to be compared with what the modem is known to have seen.
    """
    plain = {turn.send: turn for turn in turns if turn.failure is None}
    poll = [plain[command] for command in driver.poll_commands(identity) if command in plain]
    dialogue = [turn.as_json() for turn in poll]
    scrubbed_identity: dict[str, str] = scrubbed(asdict(identity))
    responses = [replay(t["send"], t["receive"]) for t in dialogue]
    return {
        "behaviour": "as recorded; say here what is particular",
        "source": "recorded by tandem modem record",
        "recorded": recorded,
        "identity": scrubbed_identity,
        "driver": driver.name,
        "dialogue": dialogue,
        "expected": expected_of(driver, responses, Identity(**scrubbed_identity)),
        "further": [turn.as_json() for turn in turns],
    }


def expected_of(driver: Driver, responses: Sequence[Response], identity: Identity) -> dict[str, Value]:
    """What the driver reads in a dialogue now: all fields that are not None, and ``rat``."""
    reading = driver.decode(responses, identity)
    found = {**reading.as_fields(), "rat": reading.rat}
    return {name: value for name, value in found.items() if value is not None}


def replay(command: str, received: str) -> Response:
    """The response that these bytes are; ValueError when they do not end in a final result."""
    dialogue = Dialogue(Command(command))
    for line in LineSplitter().feed(received.encode("latin-1")):
        response = dialogue.feed(line)
        if response is not None:
            return response
    raise ValueError(f"{command}: no final result")


def today() -> str:
    """The date of recording."""
    return time.strftime("%Y-%m-%d", time.gmtime())


# ---------------------------------------------------------------------------------------------------------------------
# Record what a stick's web server answers as a transcript for a driver: scrubbed, in the form of
# ``transcripts/*.json``.


WHO = {
    "hilink": ("GET /api/device/information", "GET /api/device/basic_information"),
    "zte_web": ("GET /goform/goform_get_cmd_process?multi_data=1&isTest=false&cmd=model_name,wa_inner_version",),
}
"""Asked beside a family's poll: which model and firmware it is."""

MODEL, REVISION = ("DeviceName", "devicename", "model_name"), ("SoftwareVersion", "wa_inner_version")


class WebRecorder:
    """Asks one stick. PortLost when nobody is there; a page that is not answered, or is none, is a turn with a failure."""

    def __init__(self, url: str, interface: str | None = None, on_turn: Callable[[Turn], None] | None = None) -> None:
        self._answer: Answer | None = None
        self._channel = WebChannel(url, interface, on_answer=self._heard)
        self._on_turn = on_turn
        self.turns: list[Turn] = []

    def record(self) -> dict[str, Any]:
        """The transcript of the family whose pages tell the most, without ``recorded``. NoAnswer when none tells anything."""
        told: list[tuple[int, Driver, list[Turn]]] = []
        for driver in (d for d in drivers().values() if d.transport == "http"):
            turns = [self._ask(command) for command in driver.poll_commands(Identity())]
            reading = driver.decode([answered(turn) for turn in turns], Identity())
            told.append((sum(value is not None for value in reading.as_fields().values()), driver, turns))
        most, driver, turns = max(told, key=lambda one: one[0])
        # The state alone is always there: a family that tells no more has not answered.
        if most <= 1:
            failures = (
                ", ".join(sorted({turn.failure for turn in self.turns if turn.failure})) or "nothing that is known"
            )
            raise NoAnswer(f"{self._channel.url}: its web server answers no family's questions ({failures})")
        identity = self._who(driver)
        return {
            "behaviour": "as recorded; say here what is particular",
            "source": "recorded by tandem modem record",
            "identity": {"manufacturer": identity.manufacturer, "model": identity.model, "revision": identity.revision},
            "driver": driver.name,
            "dialogue": [{"send": turn.send, "receive": turn.receive} for turn in turns],
            "expected": expected_of(driver, [answered(turn) for turn in turns], identity),
            "further": [_as_json(turn) for turn in self.turns],
        }

    def _who(self, driver: Driver) -> Identity:
        """The manufacturer is the family's name, by which ``auto`` knows it: web pages do not say it."""
        fields: dict[str, str] = {}
        for command in WHO.get(driver.name, ()):
            fields |= _fields(self._ask(command).receive)
        model, revision = (next((fields[n] for n in names if fields.get(n)), "") for names in (MODEL, REVISION))
        return Identity(driver.name.replace("_", " "), model[:64], revision[:64])

    def _heard(self, answer: Answer) -> None:
        self._answer = answer

    def _ask(self, command: str) -> Turn:
        """The body as it came, scrubbed at once: nothing else of an answer (headers, cookies, tokens) is kept."""
        self._answer, failure, body = None, None, None
        try:
            self._channel.ask(command, DEADLINE_S)
        except NoAnswer:
            failure = "no_answer"
        if self._answer is not None:
            body = scrub_page(self._answer.body)
            if self._answer.status != 200:
                failure, body = f"http_{self._answer.status}", None
            elif body is None:
                failure = "no_page_of_fields"
        turn = Turn(command, body or "", failure)
        self.turns.append(turn)
        if self._on_turn is not None:
            self._on_turn(turn)
        return turn


def answered(turn: Turn) -> Response:
    """A page of a transcript as a driver reads it."""
    return Response(turn.send, tuple(turn.receive.splitlines()), Final("ok", "ok"))


def _as_json(turn: Turn) -> dict[str, str]:
    """Scrubbed already, by the names of its fields."""
    found = {"send": turn.send, "receive": turn.receive}
    return found if turn.failure is None else {**found, "failure": turn.failure}


def _fields(body: str) -> dict[str, str]:
    if not body.startswith("{"):
        return flat(body)[1]
    return {name: value for name, value in json.loads(body).items() if isinstance(value, str)}
