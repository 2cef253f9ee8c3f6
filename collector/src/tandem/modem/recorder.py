"""Record a modem, or what a stick's web server answers, as a transcript in the form of ``families/transcripts``, and blank
identities out of recorded text and pages: IMEI, IMSI, ICCID, telephone numbers, in whatever notation.

What is removed of text becomes zeros, so that columns stay where they are and the text still parses. When in doubt it is removed: cell
identities have at most 11 decimal or 9 hexadecimal digits, and nothing that a radio record needs is longer."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tandem.at.channel import Channel, Port
from tandem.at.dialogue import Dialogue, NoAnswer, Response
from tandem.at.grammar import Command, Final, LineSplitter
from tandem.modem.base import Driver, Identity
from tandem.modem.families import FALLBACK, drivers
from tandem.modem.families.hilink import flat
from tandem.modem.session import identify
from tandem.modem.web import Answer, WebChannel

OPENING = ("ATE0", "AT+CMEE=1", "AT+CGMI", "AT+CGMM", "AT+CGMR", "ATI")
HARMLESS = (
    "AT+CPIN?", "AT+CFUN?", "AT+CSQ", "AT+CESQ", "AT+COPS?", "AT+CREG?", "AT+CGREG?", "AT+CEREG?", "AT+C5GREG?", "AT+CGATT?",
)  # fmt: skip
"""Asked of every modem: reads only, of the standard, none that takes longer than a moment or prints a serial number."""

WHO = {
    "hilink": ("GET /api/device/information", "GET /api/device/basic_information"),
    "zte_web": ("GET /goform/goform_get_cmd_process?multi_data=1&isTest=false&cmd=model_name,wa_inner_version",),
}
"""Asked beside a web family's poll: which model and firmware it is."""

MODEL, REVISION = ("DeviceName", "devicename", "model_name"), ("SoftwareVersion", "wa_inner_version")
DEADLINE_S = 5.0


@dataclass(frozen=True)
class Turn:
    """One command and what came, scrubbed; ``failure`` when no answer came, or none that is kept."""

    send: str
    receive: str
    failure: str | None = None

    def as_json(self) -> dict[str, str]:
        return {name: value for name, value in asdict(self).items() if value is not None}


OnTurn = Callable[[Turn], None]


def record_at(port: Port, on_turn: OnTurn = lambda _turn: None) -> dict[str, Any]:
    """The transcript of the modem at an open port: who it is, what every modem is asked, and what the drivers that match it ask, of the
    first of these. PortLost when it goes away, NoAnswer when no modem answers; a command that is not answered is a turn with a failure."""
    heard = bytearray()
    channel = Channel(port, on_bytes=heard.extend)
    turns: list[Turn] = []
    answers: list[Response] = []

    def ask(command: str) -> bool:
        heard.clear()
        failure = None
        try:
            answers.append(channel.ask(command, DEADLINE_S))
        except NoAnswer:
            failure = "no_answer"
        turns.append(Turn(command, scrub(heard.decode("latin-1")), failure))
        on_turn(turns[-1])
        return failure is None

    if not ask(OPENING[0]) and not ask(OPENING[0]):
        raise NoAnswer(f"no modem answers {OPENING[0]} here")
    for command in OPENING[1:]:
        ask(command)
    identity, known = identify(answers), drivers()
    matching = [d for d in known.values() if d.name != FALLBACK and d.transport == "at" and d.matches(identity)]
    wanted = [(*d.setup_commands(identity), *d.poll_commands(identity)) for d in (*matching, known[FALLBACK])]
    for command in (*HARMLESS, *(command for commands in wanted for command in commands)):
        ask(command)
    driver = (*matching, known[FALLBACK])[0]
    plain = {turn.send: turn for turn in turns if turn.failure is None}
    poll = [plain[command] for command in driver.poll_commands(identity) if command in plain]
    return _transcript(driver, Identity(**scrubbed(asdict(identity))), poll, list(map(_replay, poll)), turns)


def _transcript(
    driver: Driver, identity: Identity, poll: Sequence[Turn], answers: Sequence[Response], turns: Sequence[Turn]
) -> dict[str, Any]:
    """``expected`` is what the driver reads in it now: to be compared with what the modem is known to have seen. Everything that was asked
    beside its poll is in ``further``."""
    reading = driver.decode(answers, identity)
    expected = {**reading.as_fields(), "rat": reading.rat}
    return {
        "behaviour": "as recorded; say here what is particular",
        "source": "recorded by tandem modem record",
        "recorded": time.strftime("%Y-%m-%d", time.gmtime()),
        "identity": asdict(identity),
        "driver": driver.name,
        "dialogue": [turn.as_json() for turn in poll],
        "expected": {name: value for name, value in expected.items() if value is not None},
        "further": [turn.as_json() for turn in turns],
    }


def _replay(turn: Turn) -> Response:
    dialogue = Dialogue(Command(turn.send))
    responses = (dialogue.feed(line) for line in LineSplitter().feed(turn.receive.encode("latin-1")))
    return next(response for response in responses if response is not None)


def record_web(url: str, interface: str | None = None, on_turn: OnTurn = lambda _turn: None) -> dict[str, Any]:
    """The transcript of a stick's web server, of the family whose pages tell the most. PortLost when nobody is there, NoAnswer when none
    tells anything; a page that is not answered, or is none, is a turn with a failure. Of an answer only the body is kept, scrubbed at
    once: no headers, cookies, tokens."""
    answers: list[Answer] = []
    channel = WebChannel(url, interface, on_answer=answers.append)
    turns: list[Turn] = []

    def ask(command: str) -> Turn:
        answers.clear()
        failure, body = None, ""
        try:
            channel.ask(command, DEADLINE_S)
        except NoAnswer:
            failure = "no_answer"
        if answers and answers[-1].status != 200:
            failure = f"http_{answers[-1].status}"
        elif answers:
            found = scrub_page(answers[-1].body)
            failure, body = ("no_page_of_fields", "") if found is None else (failure, found)
        turns.append(Turn(command, body, failure))
        on_turn(turns[-1])
        return turns[-1]

    scored: list[tuple[int, Driver, list[Turn]]] = []
    for driver in (d for d in drivers().values() if d.transport == "http"):
        dialogue = [ask(command) for command in driver.poll_commands(Identity())]
        fields = driver.decode(list(map(_answered, dialogue)), Identity()).as_fields()
        scored.append((sum(value is not None for value in fields.values()), driver, dialogue))
    most, driver, poll = max(scored, key=lambda one: one[0])
    # The state alone is always there: a family that tells no more has not answered.
    if most <= 1:
        failures = ", ".join(sorted({turn.failure for turn in turns if turn.failure})) or "nothing that is known"
        raise NoAnswer(f"{url}: its web server answers no family's questions ({failures})")
    who: dict[str, str] = {}
    for command in WHO.get(driver.name, ()):
        who |= _fields(ask(command).receive)
    model, revision = (next((who[n] for n in names if who.get(n)), "") for names in (MODEL, REVISION))
    # The manufacturer is the family's name, by which ``auto`` knows it: web pages do not say it.
    identity = Identity(driver.name.replace("_", " "), model[:64], revision[:64])
    return _transcript(driver, identity, poll, list(map(_answered, poll)), turns)


def _answered(turn: Turn) -> Response:
    """A page of a transcript as a driver reads it."""
    return Response(turn.send, tuple(turn.receive.splitlines()), Final("ok", "ok"))


def _fields(body: str) -> dict[str, str]:
    if not body.startswith("{"):
        return flat(body)[1]
    return {name: value for name, value in json.loads(body).items() if isinstance(value, str)}


# --- identities out of text ------------------------------------------------------------------------------------------

SHORTEST = 12
"""Digits in a row from which on a number is an identity: IMEI 14 to 16, IMSI 14 or 15, ICCID 18 to 20, telephone numbers to 15."""

_RUN = re.compile(rf"[0-9]{{{SHORTEST},}}")
_HEX_RUN = re.compile(r"[0-9A-Fa-f]{14,}")
# Digits in groups, the same single separator between them. Not a dot: addresses and firmware versions have dots.
_GROUPS = re.compile(
    r"(?<![0-9A-Za-z])[0-9A-Fa-f]{1,16}([ \-/_:])[0-9A-Fa-f]{1,16}(?:\1[0-9A-Fa-f]{1,16})*(?![0-9A-Za-z])"
)
_HEX_BYTES = re.compile(r"(?:0x[0-9A-Fa-f]{2}[ ,;:]{0,2}){7,}|(?:\\x[0-9A-Fa-f]{2}){7,}")
_TELEPHONE = re.compile(r"\+[0-9](?:[ \-()/]{0,2}[0-9]){5,18}")
_TYPED_NUMBER = re.compile(r'"[0-9*#]{3,20}"(?= *, *(?:128|129|145|161|177) *(?:,|\r|\n|\Z))')
_PERSONAL_ANSWERS = re.compile(
    r"([+^*#$%!]C(?:NUM|LIP|LCC|DIP|OLP|CWA|SCA|MT|MTI|MGR|MGL|DS|DSI|BM|USD|PBR|PBF)\b *:)"
    r"([^\r\n]*)((?:\r?\n(?![+^*#$%!]|OK|ERROR)[^\r\n]*)?)"
)
_KEYED = re.compile(
    r"""((?:imei(?:sv)?|imsi|iccid|msisdn|meid|esn|serial(?:_?number)?|sn|phone(?:_?number)?|mac(?:_?addr(?:ess)?)?[0-9]?|ssid|passw(?:or)?d
    |psk|token|sesinfo|tokinfo|cookie|sim_?(?:card)?_?id)["']?\s*(?:[:=>]|\]\s*=)\s*["']?)([^\r\n"'<,;]+)""",
    re.IGNORECASE | re.VERBOSE,
)
_MAC = re.compile(r"\b(?:[0-9A-Fa-f]{2}([:\-]))(?:[0-9A-Fa-f]{2}\1){4}[0-9A-Fa-f]{2}\b")
_HEX_DIGIT = re.compile(r"[0-9A-Fa-f]")
_WORD = re.compile(r"[0-9A-Za-z]")


def scrub(text: str) -> str:
    """``text`` without identities. Scrubbing twice changes nothing more."""
    text = _PERSONAL_ANSWERS.sub(lambda m: m.group(1) + _blank(m.group(2)) + _blank(m.group(3)), text)
    text = _KEYED.sub(lambda m: m.group(1) + _blank(m.group(2)), text)
    text = _MAC.sub(lambda m: _zeros(m.group()), text)
    text = _HEX_BYTES.sub(_hex_bytes, text)
    text = _GROUPS.sub(_groups, text)
    text = _TELEPHONE.sub(lambda m: _zeros(m.group()), text)
    text = _TYPED_NUMBER.sub(lambda m: _zeros(m.group()), text)
    text = _HEX_RUN.sub(lambda m: _zeros(m.group()) if any(c.isdigit() for c in m.group()) else m.group(), text)
    return _RUN.sub(lambda m: _zeros(m.group()), text)


def scrubbed(value: Any) -> Any:  # noqa: ANN401 - any JSON value, the same kind back
    """Every text within a JSON value scrubbed; keys stay."""
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, Mapping):
        return {key: scrubbed(one) for key, one in value.items()}
    if isinstance(value, Sequence):
        return [scrubbed(one) for one in value]
    return value


def _zeros(text: str) -> str:
    return _HEX_DIGIT.sub("0", text)


def _blank(text: str) -> str:
    return _WORD.sub("0", text)


def _hex_bytes(match: re.Match[str]) -> str:
    return re.sub(r"(?<=[xX])[0-9A-Fa-f]{2}", "00", match.group())


def _groups(match: re.Match[str]) -> str:
    """Groups that together are an identity: of one size (bytes of a file, digits of a number), or few, or with an identity's form.

    A row of a table (``1300 244 91 6699 94552843``) is none of these.
    """
    text = match.group()
    parts = text.split(match.group(1))
    digits = "".join(c for c in text if c.isdigit())
    even = len({len(part) for part in parts[:-1]}) == 1 and len(parts[-1]) <= len(parts[0])
    if len(digits) < SHORTEST:
        return text
    if not all(part.isdigit() for part in parts):
        return _zeros(text) if even and len(parts) > 2 else text
    row = match.group(1) == " " and len(parts) > 4 and not digits.startswith("89") and not _luhn(digits)
    formed = 14 <= len(digits) <= 20 and not row
    return _zeros(text) if even or formed else text


def _luhn(digits: str) -> bool:
    """Whether the last digit is the check digit that IMEIs and ICCIDs end in (ISO/IEC 7812-1 annex B)."""
    doubled = (int(c) * (2 if i % 2 else 1) for i, c in enumerate(reversed(digits)))
    return sum(n - 9 if n > 9 else n for n in doubled) % 10 == 0


# ---------------------------------------------------------------------------------------------------------------------
# Identities and secrets out of a web server's page: by the names of its fields, then as any text (``scrub``). Pure.
# What is no flat page of fields is left out as a whole: a login page holds tokens in scripts, which no rule would
# find for certain.


_PERSONAL_FIELDS = re.compile(
    r"imei|imsi|iccid|msisdn|meid|\besn\b|serial|\bsn\b|uuid|mac|ssid|pass|psw|pwd|psk|wep|key|tok|sesinfo|session|cookie|csrf|phone|pin"
    r"|puk|user|login|account|mail|host|addr|_ip\b|ip$|ipv|\bip|dns|gateway|number|\bld\b|\brd\b|\bad\b|sim_?card|longitude|latitude",
    re.IGNORECASE,
)
"""Names of fields whose values identify a person, a device, a SIM, a network at home, or open a session. No radio quantity has such
a name."""

_XML = re.compile(r"\s*(?:<\?xml[^>]*\?>\s*)?<(?:response|error)[\s/>]", re.IGNORECASE)
_ELEMENT = re.compile(r"<([A-Za-z_][\w.\-]*)([^<>]*)>((?:<!\[CDATA\[.*?\]\]>|[^<])*)</\1\s*>", re.DOTALL)
_ATTRIBUTE = re.compile(r"([\w.\-:]+)\s*=\s*(\"[^\"]*\"|'[^']*')")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_LONG = re.compile(r"0{12,}")
_BARE_MAC = re.compile(r"(?<![0-9A-Za-z])[0-9A-Fa-f]{12,}(?![0-9A-Za-z])")
_ADDRESS = re.compile(r"(?<![0-9.])[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?![0-9.])")

REMOVED = "removed"
"""Instead of a value: its length would tell something of a password, and columns do not matter here."""


def scrub_page(body: str) -> str | None:
    """HiLink's XML or goform's JSON without identities, by the names of its fields and then as any text; None for any other page: a login
    page holds tokens in scripts, which no rule would find for certain."""
    if _XML.match(body):
        declared, _, rest = body.partition("?>") if body.lstrip().startswith("<?xml") else ("", "", body)
        text = _ELEMENT.sub(_element, _COMMENT.sub("", rest))
        return declared + ("?>" if declared else "") + _short(scrub(text))
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    return _short(scrub(json.dumps(_values(found), ensure_ascii=False, separators=(",", ":"))))


def _short(text: str) -> str:
    """Addresses under whatever name too; so many zeros were a number of somebody's."""
    return _LONG.sub("0" * 11, _ADDRESS.sub(lambda m: re.sub("[0-9]", "0", m.group()), _BARE_MAC.sub("0" * 11, text)))


def _removed(text: str) -> str:
    return REMOVED if text.strip() else text


def _element(match: re.Match[str]) -> str:
    name, attributes, value = match.groups()
    attributes = _ATTRIBUTE.sub(lambda m: f'{m.group(1)}="{_removed(m.group(2)[1:-1])}"', attributes)
    if _PERSONAL_FIELDS.search(name):
        value = _removed(value)
    return f"<{name}{attributes}>{value}</{name}>"


def _values(found: Any, personal: bool = False) -> Any:  # noqa: ANN401 - any JSON value, the same kind back
    """``personal``: it stands under a name of ``_PERSONAL_FIELDS``."""
    if isinstance(found, dict):
        return {name: _values(one, personal or bool(_PERSONAL_FIELDS.search(name))) for name, one in found.items()}
    if isinstance(found, list):
        return [_values(one, personal) for one in found]
    return _removed(str(found)) if personal and not isinstance(found, bool | None) else found
