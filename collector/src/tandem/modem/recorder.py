"""Record a modem's dialogue as a transcript for a driver: scrubbed of identities, in the form of ``transcripts/*.json``."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tandem.at.channel import Channel, Port
from tandem.at.dialogue import Dialogue, Response
from tandem.at.errors import NoAnswer
from tandem.at.grammar import Command
from tandem.at.lines import LineSplitter
from tandem.modem.base import Driver, Identity
from tandem.modem.identification import identify
from tandem.modem.registry import FALLBACK, drivers
from tandem.modem.scrub import scrub, scrubbed
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
