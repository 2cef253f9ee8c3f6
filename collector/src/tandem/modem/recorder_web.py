"""Record what a stick's web server answers as a transcript for a driver: scrubbed, in the form of ``transcripts/*.json``."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tandem.at.dialogue import Response
from tandem.at.errors import NoAnswer
from tandem.at.grammar import Final
from tandem.modem.base import Driver, Identity
from tandem.modem.hilink.xml import flat
from tandem.modem.http_exchange import Answer
from tandem.modem.http_transport import WebChannel
from tandem.modem.recorder import Turn, expected_of
from tandem.modem.registry import drivers
from tandem.modem.scrub_page import scrub_page

WHO = {
    "hilink": ("GET /api/device/information", "GET /api/device/basic_information"),
    "zte_web": ("GET /goform/goform_get_cmd_process?multi_data=1&isTest=false&cmd=model_name,wa_inner_version",),
}
"""Asked beside a family's poll: which model and firmware it is."""

MODEL, REVISION = ("DeviceName", "devicename", "model_name"), ("SoftwareVersion", "wa_inner_version")

DEADLINE_S = 5.0


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
