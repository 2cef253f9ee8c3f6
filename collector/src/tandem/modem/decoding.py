"""A raw answer of any modem → a reading, without a modem: which family's answer it is, what it tells, or why it tells nothing. Pure."""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from tandem.at.dialogue import Dialogue, Response
from tandem.at.grammar import Command, Final, LineSplitter, ascii_upper, explained, is_unsolicited, prefix, values
from tandem.modem.base import Driver, Identity, Reading
from tandem.modem.families import FALLBACK, drivers
from tandem.modem.poll import in_range
from tandem.modem.ts27007 import NAMES, registration
from tandem.modem.usb import known_devices
from tandem.modem.web import Answer
from tandem.modem.web import response as web_response
from tandem.schema.record import Value

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_BLANK = re.compile(r"\r?\n\r?\n")
_LOST_END = re.compile(rb"(?<=[^:\s])[ \t]+((?:OK|ERROR)[ \t]*(?=[\r\n]|\Z|AT[+^!#_]|[+^!#_][A-Z]))")
_LOST_BEGIN = re.compile(rb"(?<=\S)[ \t]+(?=[+^!#_][A-Z][A-Z0-9]{2,}: ?)")
"""Where scripts made one line of several: a final result behind an answer, and an answer behind something else."""
_DOCUMENT = re.compile(r"(?=<\?xml)|^(?=HTTP/1\.[01] [0-9]{3})", re.MULTILINE)


def lines(raw: bytes) -> list[str]:
    """As a port gives them; where line ends were lost, they are put back."""
    return LineSplitter().feed(_LOST_BEGIN.sub(b"\r", _LOST_END.sub(b"\r\\1\r", raw)) + b"\r")


def plain(raw: bytes) -> bytes:
    """The text as UTF-8 (AT: bytes as they came), where a mark, or a NUL at every second byte, says that it was saved as UTF-16."""
    for mark, charset in _MARKS:
        if raw.startswith(mark):
            return raw[len(mark) :].decode(charset, "replace").encode()
    for odd, charset in ((1, "utf-16-le"), (0, "utf-16-be")):
        if len(raw) >= 8 and not any(raw[odd::2]) and all(raw[1 - odd : 64 : 2]):
            return raw.decode(charset, "replace").encode()
    return raw


def pages(question: str, raw: bytes) -> list[Response]:
    """The bodies in ``raw``: one, or several XML documents one behind the other; HTTP heads before them are passed over."""
    bodies = map(_headless, _DOCUMENT.split(raw.decode("utf-8", "replace")))
    return [web_response(question, Answer(200, {}, body)) for body in bodies if body.strip()]


def _headless(part: str) -> str:
    return _BLANK.split(part, maxsplit=1)[-1] if part.startswith("HTTP/1.") else part


def found_questions(raw: bytes, known: Iterable[str]) -> tuple[str, ...]:
    """What was asked according to ``raw`` itself: the echoed commands, and the prefixes of its lines that are ``known``."""
    names = frozenset(known)
    found: dict[str, None] = {}
    for line in lines(raw):
        if ascii_upper(line[:2]) == "AT":
            wanted = [name for name in Command(line).prefixes if name in names]
        else:
            name = prefix(line)
            wanted = [name] if name in names and name is not None and not is_unsolicited(line, (name,)) else []
        found |= dict.fromkeys(wanted)
    return tuple(found)


def dialogues(question: str, further: Iterable[str], raw: bytes) -> list[Response]:
    """The answers in ``raw``, of which there may be several, the last without its final result. ``further``: prefixes of other
    commands whose answers are there, too.

    A registration that came unasked stands for the answer of its name where it tells a cell and there is no answer, and where
    there is nothing else at all.
    """
    prefixes = Command(question).prefixes
    command = Command(";".join([question, *(f"{name}?" for name in further if name not in prefixes)]))
    unasked: list[str] = []
    found: list[Response] = []
    dialogue = Dialogue(command, on_unsolicited=unasked.append)
    for line in lines(raw):
        response = dialogue.feed(line)
        if response is not None:
            found.append(response)
            dialogue = Dialogue(command, on_unsolicited=unasked.append)
    rest = dialogue.feed("OK")
    if rest is not None and rest.lines:
        found.append(rest)
    answered = {prefix(line) for response in found for line in response.lines}
    mine = [line for line in unasked if prefix(line) in (*prefixes, *NAMES)]
    used = tuple(line for line in mine if prefix(line) not in answered and (not answered or len(values(line)) >= 3))
    return [*found, Response(question, used, Final("ok", "ok"))] if used else found


MAX_BYTES = 1024 * 1024
ALWAYS = (
    "rsrp_dbm", "rsrq_db", "sinr_db", "rssi_dbm", "earfcn", "pci", "tac", "plmn", "eci", "enb_id", "sector_id", "rat", "state",
    "driver",
)  # fmt: skip
"""Keys of ``Decoded.as_json`` that are always there, None when absent; others only when they are reported."""


NOBODY = Identity()


class UndecodableError(ValueError):
    """Nothing can be read in this answer; the text says why, in one line."""


@dataclass(frozen=True)
class Decoded:
    """What an answer tells and whose form it has."""

    driver: str
    reading: Reading

    def as_json(self) -> dict[str, Value | None]:
        """One flat object; units are in the names."""
        found: dict[str, Value | None] = {**self.reading.as_fields(), "rat": self.reading.rat, "driver": self.driver}
        further = {name: value for name, value in found.items() if name not in ALWAYS and value is not None}
        return {**{name: found[name] for name in ALWAYS}, **further}


def decode(command: str, raw: bytes, driver: str | None = None, model: str = "") -> Decoded:
    """What ``raw`` tells, the answer to ``command``: with or without echo and final result, lines ended in any way, perhaps with
    answers to other commands before or behind it.

    ``command``: with or without AT in front, several in one line, or ``GET /path``. ``driver``: the family; without it the one
    whose questions these and the other answers' are, see ``candidates``. UndecodableError says why nothing can be read. The
    registry's UnknownDriver is the caller's to check.
    """
    question = normalised(command)
    if len(raw) > MAX_BYTES:
        raise UndecodableError(f"the answer is longer than {MAX_BYTES} bytes")
    text = plain(raw)
    if not text.strip():
        raise UndecodableError("the answer is empty")
    web = question.startswith("GET ")
    identity = Identity(model=model)
    further = () if web else found_questions(text, _all_prefixes())
    families = [drivers()[driver]] if driver is not None else candidates(question, identity, further)
    if not families:
        raise UndecodableError(
            f"no known family asks {shown(question)}; name one with --driver ({', '.join(drivers())})"
        )
    responses = pages(question, text) if web else dialogues(question, further, text)
    best, reading = families[0], _read(families[0], responses, identity)
    if reading.empty or not (_standard(question, further) or _knows(best, identity)):
        others = [(one, _read(one, responses, identity)) for one in families[1:]]
        best, reading = max(
            [(best, reading), *others], key=lambda found: _quantities(found[1])
        )  # the first of the best
    if reading.empty and not all_unknown(responses):
        raise UndecodableError(_why(question, responses))
    return Decoded(best.name, reading)


def normalised(command: str) -> str:
    """The command line as it is sent: ``+CSQ`` → ``AT+CSQ``, ``/api/x`` → ``GET /api/x``."""
    text = command.strip()
    text = re.sub(r"(?i)\A(GET )?https?://[^/]*(?=/|\Z)", "GET ", text)
    if text.startswith("/"):
        return f"GET {text}"
    if text[:4].upper() == "GET ":
        return f"GET {text[4:].strip()}"
    return text if text[:2].upper() == "AT" else f"AT{text}"


def candidates(question: str, identity: Identity = NOBODY, further: Iterable[str] = ()) -> list[Driver]:
    """The families that ask this at a poll or read it, whatever their model: those that know the most of the line's commands and of
    the ``further`` prefixes, makers' own before the standard's. First those that know the model, then the standard's family, then
    those that ask just this line, then the one of which more devices are known."""
    devices = Counter(device.family for device in known_devices())

    def order(one: Driver) -> tuple[bool, bool, bool, int, str]:
        exact = question in _questions(one.name)
        return (not _knows(one, identity), one.name != FALLBACK, not exact, -devices[one.name], one.name)

    return sorted(_askers(question, further), key=order)


def _knows(driver: Driver, identity: Identity) -> bool:
    """Whether it is the model's family; the standard's takes every model and knows none."""
    return bool(identity.model) and driver.name != FALLBACK and driver.matches(identity)


def _askers(question: str, further: Iterable[str]) -> list[Driver]:
    if question.startswith("GET "):
        path = _path(question)
        return [d for d in drivers().values() if d.transport == "http" and path in map(_path, _questions(d.name))]
    wanted = {*Command(question).prefixes, *further}
    own = {
        name for name in wanted - _prefixes(FALLBACK) if name in _all_prefixes()
    }  # the standard's are read by every family
    share = {name: len((own or wanted) & _prefixes(name)) for name, d in drivers().items() if d.transport == "at"}
    most = max(share.values(), default=0)
    return [drivers()[name] for name in share if most and share[name] == most]


def all_unknown(responses: Iterable[Response]) -> bool:
    """Whether the answer is a proper one that says that nothing is known: 27.007's 99 and 255, makers' ``-`` and the like; or that
    says that it is registered and not where."""
    lines = [line for response in responses for line in response.lines]
    return bool(lines) and all(_says_nothing(line) for line in lines)


def _says_nothing(line: str) -> bool:
    name = prefix(line)
    if name in NAMES and name is not None and registration([line], name).registered:
        return True
    return name is not None and bool(values(line)) and _UNKNOWN.fullmatch(",".join(values(line))) is not None


_UNKNOWN = re.compile(
    r"0|(?:[01],)?(?:99|255|-|--|N/A|-32768|-3276|-?1000)(?:,(?:99|255|-|--|N/A|-32768|-3276|-?1000|))*", re.IGNORECASE
)
"""A lone 0 is ``+COPS: 0``: no network chosen; a 0 or 1 in front is a setting (``+XCESQ``)."""


def _standard(question: str, further: Iterable[str]) -> bool:
    return {*Command(question).prefixes, *further} <= _prefixes(FALLBACK)


@cache
def _questions(family: str) -> frozenset[str]:
    """What a family asks at a poll, of any of its models, and what it reads besides."""
    driver = drivers()[family]
    models = {model for device in known_devices() if device.family == family for model in device.models}
    identities = [Identity(), *(Identity(model=model) for model in sorted(models))]
    questions = {command for identity in identities for command in driver.poll_commands(identity)}
    return frozenset(questions | set(driver.reads))


@cache
def _prefixes(family: str) -> frozenset[str]:
    return frozenset(name for command in _questions(family) for name in Command(command).prefixes)


@cache
def _all_prefixes() -> frozenset[str]:
    return frozenset().union(*(_prefixes(name) for name, one in drivers().items() if one.transport == "at"))


def shown(text: str) -> str:
    """In an error's line: not longer than anybody reads."""
    return text if len(text) <= 80 else f"{text[:77]}..."


def _path(question: str) -> str:
    return question.removeprefix("GET ").partition("?")[0]


def _read(driver: Driver, responses: Sequence[Response], identity: Identity) -> Reading:
    return in_range(driver.decode(responses, identity))[0]


def _quantities(reading: Reading) -> int:
    return sum(value is not None for value in reading.as_fields().values()) + (reading.state != "unknown")


def _why(question: str, responses: Sequence[Response]) -> str:
    failed = next((r.final.code for r in responses if not r.final.ok), None)
    if failed is not None:
        return f"{shown(question)}: the modem answered {explained(failed)}"
    lines = [line for response in responses for line in response.lines]
    if not lines and question.startswith("GET "):
        return f"{shown(question)}: the body has nothing in it"
    if not lines:
        names = ", ".join(Command(question).prefixes) or "the command"
        return f"{shown(question)}: no line of the answer belongs to {names}"
    if any(prefix(line) == "+COPS" and values(line)[1:2] in (("0",), ("1",)) for line in lines):
        return f"{shown(question)}: the network is told by its name only; AT+COPS=3,2 makes the modem tell MCC and MNC"
    if all("neighbour" in line.lower() for line in lines):
        return f"{shown(question)}: the answer tells of neighbour cells only, not of the serving cell"
    return f"{shown(question)}: nothing can be read in {lines[0][:80]!r}" + (
        "" if len(lines) == 1 else f" and {len(lines) - 1} more"
    )
