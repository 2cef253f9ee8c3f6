"""Ask a modem who it is and make it ready for polling."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile

from tandem.at.channel import Channel
from tandem.at.dialogue import Response
from tandem.at.errors import NoAnswer
from tandem.at.grammar import prefix, values
from tandem.modem.access import Conversation
from tandem.modem.base import Driver, Identity
from tandem.modem.registry import AUTO, FALLBACK, choose, drivers
from tandem.modem.reports import WANTED
from tandem.modem.web_faults import WebDriver

log = logging.getLogger(__name__)

FIRST_DEADLINE_S = 0.5
"""For the first command: is anybody there?"""

COMMAND_DEADLINE_S = 2.0
"""For each later one: modems that just registered are slow."""

MoreSetup = Callable[[str, Identity], Sequence[str]]
"""Commands to be sent once after a family's own set-up, by the driver's name and what the modem is: the wiring asks for what other
parts of the kit need of a modem (its GNSS), without a family knowing of it."""

_LABEL = re.compile(r"(manufacturer|model|revision)\s*:\s*(.+)\Z", re.IGNORECASE)
_SERIAL_NUMBER = re.compile(r"[0-9]{14,20}")
MAX_NAME = 64


def prepare(channel: Channel, driver_name: str, more_setup: MoreSetup | None = None) -> tuple[Identity, Driver]:
    """Echo off, errors as numbers, who are you, the family's set-up commands, then ``more_setup``'s, then registration reports
    switched on. NoAnswer or PortLost when that fails.

    Echo off is V.250 clause 6.2.4, errors as numbers 27.007 clause 9.1. A modem may refuse any of it: the channel bears echo
    and plain ERROR too.
    """
    channel.ask("ATE0", FIRST_DEADLINE_S)
    channel.ask("AT+CMEE=1", COMMAND_DEADLINE_S)
    asked = [channel.ask(command, COMMAND_DEADLINE_S) for command in ("AT+CGMI", "AT+CGMM", "AT+CGMR")]
    if not all(answer.final.ok and answer.lines for answer in asked[:2]):
        asked.append(channel.ask("ATI", COMMAND_DEADLINE_S))
    identity = identify(asked)
    driver = choose(driver_name, identity)
    if driver.transport != "at":  # the maker's name fits both, but what answers here is an AT port
        driver = drivers()[FALLBACK]
    more = () if more_setup is None else more_setup(driver.name, identity)
    for command in (*driver.setup_commands(identity), *more):
        answer = channel.ask(command, COMMAND_DEADLINE_S)
        if not answer.final.ok:
            log.warning("%s %s refuses %s: %s", identity.manufacturer, identity.model, command, answer.final.code)
    for command in WANTED:
        if command not in driver.setup_commands(identity):
            channel.ask(command, COMMAND_DEADLINE_S)
    return identity, driver


def prepare_web(channel: Conversation, driver_name: str) -> tuple[Identity, Driver]:
    """The family of a stick that has only a web server: the one named, else the first whose questions it answers.

    A web page does not say of itself what the standard's commands say, so the identity stays empty. A family whose own kind of
    refusal comes (its session ended, it is busy) is taken where none answers: the polls then tell that.
    """
    identity = Identity()
    if driver_name != AUTO:
        driver = choose(driver_name, identity)
        for command in driver.setup_commands(identity):
            channel.ask(command, COMMAND_DEADLINE_S)
        return identity, driver
    refusing: Driver | None = None
    for driver in drivers().values():
        if driver.transport == "http":
            asked = (*driver.setup_commands(identity), *driver.poll_commands(identity))
            answers = [channel.ask(command, COMMAND_DEADLINE_S) for command in asked]
            if not driver.decode(answers, identity).empty:
                return identity, driver
            refusing = refusing or (driver if any(_its_own_fault(driver, answer) for answer in answers) else None)
    if refusing is not None:
        return identity, refusing
    raise NoAnswer("its web server answers no family's questions; name the driver")


def _its_own_fault(driver: Driver, answer: Response) -> bool:
    """Any web server has statuses and pages that are no family's."""
    named = driver.fault(answer) if isinstance(driver, WebDriver) else None
    return named is not None and named != "not_json"


def identify(responses: Iterable[Response]) -> Identity:
    """Manufacturer, model and revision from +CGMI, +CGMM, +CGMR (27.007 clauses 5.1 to 5.3) and, for what is missing, ATI.

    ATI is free text: labelled lines (``Model: EC25``), the three in their usual order, or that and then labels (``Quectel``,
    ``EC25``, ``Revision: …``).
    """
    found = {"manufacturer": "", "model": "", "revision": ""}
    of_command = {"AT+CGMI": "manufacturer", "AT+CGMM": "model", "AT+CGMR": "revision"}
    for response in responses:
        texts = [text for text in map(_text, response.lines) if text]
        key = of_command.get(response.command)
        if not response.final.ok or not texts:
            continue
        if key is not None:
            label = _LABEL.match(texts[0])
            found[key] = label.group(2) if label else texts[0]
            continue
        labelled = {m.group(1).lower(): m.group(2) for m in map(_LABEL.match, texts) if m}
        unlabelled = takewhile(lambda text: not _LABEL.match(text), texts)
        ordered = labelled | dict(zip((name for name in found if name not in labelled), unlabelled, strict=False))
        found = {name: value or ordered.get(name, "") for name, value in found.items()}
    return Identity(**{name: value.strip()[:MAX_NAME] for name, value in found.items()})


def _text(line: str) -> str:
    """A line of text without its prefix and quotes; empty when it holds what may be a serial number."""
    plain = ",".join(values(line)) if prefix(line) else line.strip().strip('"')
    return "" if _SERIAL_NUMBER.search(plain) else plain
