"""Pasted or piped bytes → responses as a channel would have given them, without a modem: character sets, several answers one
behind the other, and which commands they belong to. Pure."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable

from tandem.at.dialogue import Dialogue, Response
from tandem.at.grammar import Command, Final, ascii_upper, is_unsolicited, prefix, values
from tandem.at.lines import LineSplitter
from tandem.modem.http_exchange import Answer
from tandem.modem.http_transport import response as web_response
from tandem.modem.registration import NAMES

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


def pages(asked: str, raw: bytes) -> list[Response]:
    """The bodies in ``raw``: one, or several XML documents one behind the other; HTTP heads before them are passed over."""
    bodies = map(_headless, _DOCUMENT.split(raw.decode("utf-8", "replace")))
    return [web_response(asked, Answer(200, {}, body)) for body in bodies if body.strip()]


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


def dialogues(asked: str, further: Iterable[str], raw: bytes) -> list[Response]:
    """The answers in ``raw``, of which there may be several, the last without its final result. ``further``: prefixes of other
    commands whose answers are there, too.

    A registration that came unasked stands for the answer of its name where it tells a cell and there is no answer, and where
    there is nothing else at all.
    """
    prefixes = Command(asked).prefixes
    command = Command(";".join([asked, *(f"{name}?" for name in further if name not in prefixes)]))
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
    return [*found, Response(asked, used, Final("ok", "ok"))] if used else found
