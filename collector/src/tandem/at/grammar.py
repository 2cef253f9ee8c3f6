"""AT lines and what they are: split out of a stream of bytes, command lines and the prefixes of their answers, values, final results, and
the errors' numbers in words (3GPP TS 27.007, V.250). Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

MAX_LINE_BYTES = 4096
"""Longer than any line a modem prints; what is longer is noise and is dropped, so that noise cannot fill the memory."""

_CONTROL = "".join(map(chr, (*range(0x20), *range(0x7F, 0xA0))))
_EDGE = _CONTROL + "".join(map(chr, range(0xA0, 0x100))) + " "


class LineSplitter:
    """Collects bytes and gives whole lines. A line ends at CR or LF (ITU-T V.250 5.7.1; some modems send only one of them).

    Bytes are read as Latin-1, so every byte is a character. Noise at either end of a line (bytes outside printable ASCII,
    spaces) is cut off and empty lines are dropped: a modem that wakes up often sends NUL or FF before its first line.
    """

    def __init__(self) -> None:
        self._partial = b""
        self._overlong = False

    def feed(self, chunk: bytes) -> list[str]:
        """The lines that ``chunk`` completes, in order."""
        *whole, rest = (self._partial + chunk).replace(b"\n", b"\r").split(b"\r")
        lines: list[str] = []
        for raw in whole:
            if self._overlong or len(raw) > MAX_LINE_BYTES:
                self._overlong = False
                continue
            text = raw.decode("latin-1").strip(_EDGE)
            if text:
                lines.append(text)
        if len(rest) > MAX_LINE_BYTES:
            self._overlong = True
        self._partial = b"" if self._overlong else rest
        return lines

    @property
    def pending_bytes(self) -> int:
        """How much of an unfinished line is kept: at most ``MAX_LINE_BYTES``."""
        return len(self._partial)

    def take_prompt(self) -> bool:
        """Whether the modem waits for text: ``> `` at the start of a line without an end (27.005 clause 3.5.1). Told once."""
        if self._partial != b"> ":
            return False
        self._partial = b""
        return True


def is_clean(line: str) -> bool:
    """Whether the line has no control characters but tabs, with which makers pad: one that has some was hit by noise."""
    return not any(char in _CONTROL and char != "\t" for char in line)


# --- the words of a dialogue: ITU-T V.250 clauses 5.2 (command line), 5.4 (extended syntax), 5.7 (result codes), 3GPP TS 27.007 clauses
# 4 and 9 (``+CME ERROR``), TS 27.005 clause 3.2.5 (``+CMS ERROR``).

FinalKind = Literal["ok", "error", "cme", "cms", "unsupported", "call_ended", "connected"]


@dataclass(frozen=True, slots=True)
class Final:
    """The final result of a command line. ``code`` is ``ok``, ``error``, ``cme_error 10``, ``unsupported`` …"""

    kind: FinalKind
    code: str

    @property
    def ok(self) -> bool:
        return self.kind == "ok"


_CODED_ERROR = re.compile(r"\+CM([ES]) ERROR: ?(.{0,80})\Z", re.IGNORECASE)
_PLAIN: dict[str, Final] = {
    "OK": Final("ok", "ok"),
    "ERROR": Final("error", "error"),
    "ABORTED": Final("error", "aborted"),
    "COMMAND NOT SUPPORT": Final("unsupported", "unsupported"),
    "COMMAND NOT SUPPORTED": Final("unsupported", "unsupported"),
    "TOO MANY PARAMETERS": Final("error", "too_many_parameters"),
}
_CALL_ENDED = ("NO CARRIER", "BUSY", "NO ANSWER", "NO DIALTONE", "NO DIAL TONE", "DELAYED", "BLACKLISTED")
_CONNECT = re.compile(r"CONNECT(?: [0-9A-Za-z/ .:]{1,40})?\Z", re.IGNORECASE)
_DIAL = re.compile(r"AT *(?:D|A\Z|O\d?\Z|\+CGDATA\b)", re.IGNORECASE)


@dataclass(frozen=True)
class Command:
    """One command line as it is sent, without its CR. Several commands may stand in it (``AT+CSQ;+CEREG?``).

    ``bare``: lines without a prefix belong to its response; None finds out from the commands (ATI, +CGMM …).
    """

    text: str
    bare: bool | None = None

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """The commands of the line without AT: ``+CSQ``, ``+CEREG?``."""
        body = self.text[2:] if self.text[:2].upper() == "AT" else self.text
        whole = (part.strip() for part in _split(body, ";"))
        return tuple(one for part in whole for one in _unchained(part) if one)

    @cached_property
    def prefixes(self) -> tuple[str, ...]:
        """What the lines of its response begin with: ``+CSQ``, ``+CEREG``."""
        found = (_NAME.match(part) for part in self.parts)
        return tuple(ascii_upper(match.group(0)) for match in found if match)

    @cached_property
    def takes_bare_lines(self) -> bool:
        """Whether lines without a prefix belong to its response: of commands that print text, and of makers' own commands
        (anything but ``+C…``), whose answers are often a heading and rows (``!GSTATUS?``, ``+GTCCINFO?``)."""
        if self.bare is not None:
            return self.bare
        return any(ascii_upper(part) in _PRINTS_TEXT or _MAKERS_OWN.match(part) for part in self.parts)

    @cached_property
    def prints_lines(self) -> bool:
        """Whether a good answer must hold lines: one of its commands reads something."""
        asking = (
            ascii_upper(p) in _PRINTS_TEXT or p.endswith("?") or ("=" not in p and _NAME.match(p)) for p in self.parts
        )
        return bool(self.bare) or any(asking)

    @cached_property
    def dials(self) -> bool:
        """Whether it may end in NO CARRIER, which is an unsolicited code after any other command."""
        return _DIAL.match(self.text) is not None


_NAME = re.compile(r"[+^!#*$%_@][A-Za-z][A-Za-z0-9_]*")
_MAKERS_OWN = re.compile(r"(?:[!#*$%_@^]|\+(?!C))[A-Za-z]", re.IGNORECASE)
_BASIC = re.compile(r"(?:&?[A-CE-RT-Z]\d*|S\d+(?:=\d*|\?))", re.IGNORECASE)
"""A basic command (V.250 clause 5.3). They are chained without separators; D takes the rest of the line and is none here."""
_PRINTS_TEXT = frozenset(
    "I I0 I1 I2 I3 +CGMI +CGMM +CGMR +CGSN +CIMI +GMI +GMM +GMR +GSN".split()  # noqa: SIM905 - reads better as a row
)


def final(line: str, command: Command) -> Final | None:
    """The final result that ``line`` is after ``command``, or None. NO CARRIER and its like end a dial command only."""
    upper = ascii_upper(line)
    if upper in _PLAIN:
        return _PLAIN[upper]
    match = _CODED_ERROR.match(line)
    if match:
        kind: FinalKind = "cme" if match.group(1) in "Ee" else "cms"
        return Final(kind, f"{kind}_error {match.group(2).strip() or 'unknown'}")
    if upper in _CALL_ENDED and command.dials:
        return Final("call_ended", upper.lower().replace(" ", "_"))
    if command.dials and _CONNECT.match(line):
        return Final("connected", "connect")
    return None


_UPPER = str.maketrans({chr(c): chr(c - 32) for c in range(ord("a"), ord("z") + 1)})


def ascii_upper(text: str) -> str:
    """Upper case of a to z only, so that the length stays: Latin-1 noise has letters that grow (ß)."""
    return text.translate(_UPPER)


def _unchained(part: str) -> list[str]:
    """``E0V1+CMEE=1`` → ``E0``, ``V1``, ``+CMEE=1``: basic commands need no separator between them and the next."""
    found: list[str] = []
    while (match := _BASIC.match(part)) and len(match.group(0)) < len(part):
        found.append(match.group(0))
        part = part[match.end() :].lstrip()
    return [*found, part]


_PREFIX = re.compile(r"([+^!#*$%_@][A-Za-z][A-Za-z0-9_ ]{0,30}?) *(?::|\Z)")
_BARE_UNSOLICITED = re.compile(
    r"(?:RING|NO CARRIER|RDY|START|READY|(?:SMS|CALL|PB|DIAL) ?(?:READY|DONE)|(?:NORMAL )?POWER(?:ED)? DOWN|APP RDY|SIM \w+"
    r"|STIN:.*)\Z",
    re.IGNORECASE,
)
# A registration code that came unasked has no <n> in front (27.007 clauses 7.2, 10.1.20, 10.1.22, 10.1.47): its first value
# is <stat>, and the next one, if any, an area code: quoted, empty or at least three digits.
_REGISTRATION_UNASKED = re.compile(r'\+C(?:E|G|5G)?REG: *\d{1,2} *(?:\Z|, *(?:"|,|\Z|[0-9A-Fa-f]{3,}))', re.IGNORECASE)


def prefix(line: str) -> str | None:
    """``+CSQ`` of ``+CSQ: 20,99``; None when the line has none."""
    match = _PREFIX.match(line)
    return ascii_upper(match.group(1)) if match else None


def is_unsolicited(line: str, expected: tuple[str, ...] = ()) -> bool:
    """Whether ``line`` came unasked while lines with the ``expected`` prefixes are awaited."""
    name = prefix(line)
    if name is None:
        return _BARE_UNSOLICITED.match(line) is not None
    return name not in expected or _REGISTRATION_UNASKED.match(line) is not None


def values(line: str) -> tuple[str, ...]:
    """The values of a result line, unquoted: ``+CEREG: 2,1,"1A2B"`` → ``("2", "1", "1A2B")``. An absent one is ""."""
    body = line.partition(":")[2] if prefix(line) else line
    return tuple(value.strip().strip('"').strip() for value in _split(body.strip(), ","))


def _split(text: str, separator: str) -> list[str]:
    """Split at ``separator`` outside quotes. A quote that is never closed ends with the text."""
    if '"' not in text:
        return text.split(separator)
    out: list[str] = []
    start = 0
    quoted = False
    for i, char in enumerate(text):
        if char == '"':
            quoted = not quoted
        elif char == separator and not quoted:
            out.append(text[start:i])
            start = i + 1
    out.append(text[start:])
    return out


MEANINGS = {
    0: "phone failure", 1: "no connection to the phone", 2: "the link to the phone is reserved", 3: "operation not allowed",
    4: "operation not supported", 5: "the phone wants its SIM's PIN", 6: "the phone wants its first SIM's PIN",
    7: "the phone wants its first SIM's PUK", 10: "no SIM inserted", 11: "the SIM wants its PIN", 12: "the SIM wants its PUK",
    13: "SIM failure", 14: "SIM busy", 15: "wrong SIM", 16: "wrong password", 17: "the SIM wants its PIN2",
    18: "the SIM wants its PUK2", 20: "memory full", 21: "invalid index", 22: "not found", 23: "memory failure",
    24: "text too long", 25: "invalid characters in a text", 26: "number too long", 27: "invalid characters in a number",
    30: "no network service", 31: "the network did not answer in time", 32: "network not allowed, emergency calls only",
    40: "locked to a network: PIN wanted", 41: "locked to a network: PUK wanted", 42: "locked to a part of a network: PIN wanted",
    43: "locked to a part of a network: PUK wanted", 44: "locked to a service provider: PIN wanted",
    45: "locked to a service provider: PUK wanted", 46: "locked to a company: PIN wanted", 47: "locked to a company: PUK wanted",
    48: "hidden key wanted", 49: "EAP method not supported", 50: "incorrect parameters", 51: "command known but switched off",
    52: "command ended by the user", 53: "not attached to the network, the modem's functions are restricted",
    54: "modem not allowed, emergency calls only", 55: "not allowed, the modem's functions are restricted",
    56: "fixed dial numbers only", 57: "out of service for now, the modem is used otherwise", 58: "language not supported",
    59: "unexpected value", 60: "system failure", 61: "data missing", 62: "call barred", 63: "message waiting not subscribed",
    100: "unknown error", 103: "illegal subscriber", 106: "illegal equipment", 107: "packet services not allowed",
    111: "network not allowed", 112: "location area not allowed", 113: "roaming not allowed here",
    132: "service not supported", 133: "service not subscribed", 134: "service out of order for now",
    148: "unspecified packet error", 149: "authentication failed", 150: "invalid class of mobile",
}  # fmt: skip
"""What ``+CME ERROR: n`` means: 3GPP TS 27.007 clauses 9.2.1 (general), 9.2.2 (packet domain)."""


def explained(code: str) -> str:
    """``cme_error 10`` → ``+CME ERROR 10: no SIM inserted``; other codes of a final result in words."""
    kind, _, number = code.partition(" ")
    if kind == "cme_error":
        known = MEANINGS.get(int(number)) if number.isascii() and number.isdigit() and len(number) < 6 else None
        return f"+CME ERROR {number}" + (f": {known}" if known else "")
    if kind == "cms_error":
        return f"+CMS ERROR {number}"
    return {"error": "ERROR", "unsupported": "COMMAND NOT SUPPORT"}.get(code, code.replace("_", " ").upper())
