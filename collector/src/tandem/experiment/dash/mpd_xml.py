"""The XML of an MPD into bounded elements, whose attributes are read by their kind. Pure: bytes in, values out, MpdError otherwise.

It comes over a network from a server that may be hostile: a document type declaration is refused, and with it every entity but the five of
XML itself: no entity bomb, no external file. Size, depth, elements and attributes are bounded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from xml.parsers import expat


class MpdError(ValueError):
    """An MPD that cannot be played; one line that says where and why."""


@dataclass(frozen=True, slots=True)
class ByteRange:
    """Bytes ``first`` to ``last``, both included, as HTTP counts them."""

    first: int
    last: int

    @property
    def length(self) -> int:
        return self.last - self.first + 1


LONGEST_BYTES = 4 << 20
DEEPEST = 32
MOST_ELEMENTS = 200_000
MOST_ATTRIBUTES = 64
LONGEST_TEXT = 65_536
"""Characters of one element's text, and of one attribute's value."""

_LONGEST_S = 7 * 86400.0
_DASH = "urn:mpeg:dash:schema:mpd:2011"
"""Some packagers write it, as drafts of the standard did, in other cases of its letters."""

_WHOLE = re.compile(r"\s*\+?([0-9]{1,18})\s*\Z")
_SIGNED = re.compile(r"\s*([+-]?[0-9]{1,18})\s*\Z")
_RANGE = re.compile(r"\s*([0-9]{1,18})-([0-9]{1,18})\s*\Z")
_RATE = re.compile(r"\s*([0-9]{1,9})(?:/([0-9]{1,9}))?\s*\Z")
_NUMBER = r"([0-9]{1,9})"
_DURATION = re.compile(
    rf"\s*P(?:{_NUMBER}Y)?(?:{_NUMBER}M)?(?:{_NUMBER}D)?(?:T(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:([0-9]{{1,9}}(?:\.[0-9]+)?)S)?)?\s*\Z"
)


@dataclass(slots=True)
class Element:
    """One element: local name, attributes by local name, children of the DASH namespace (or of none), its text, its line. The values of
    attributes are read by its methods: None or ``default`` when absent, MpdError when it is something else."""

    name: str
    line: int
    attributes: dict[str, str]
    children: list[Element] = field(default_factory=list)
    text: str = ""

    def all(self, name: str) -> list[Element]:
        """The children called ``name``, in order."""
        return [child for child in self.children if child.name == name]

    def first(self, name: str) -> Element | None:
        """The first child called ``name``."""
        return next((child for child in self.children if child.name == name), None)

    def refuse(self, what: str) -> MpdError:
        return MpdError(f"line {self.line}: {self.name}: {what}")

    def whole(self, name: str, default: int | None = None, least: int = 0) -> int | None:
        """A whole number from ``least`` to 10^18."""
        what = f"whole number from {least}"
        match = self._match(name, _WHOLE, what)
        if match is not None and int(match[1]) < least:
            raise self._wrong(name, what)
        return default if match is None else int(match[1])

    def signed(self, name: str, default: int) -> int:
        """A whole number that may be negative."""
        match = self._match(name, _SIGNED, "whole number")
        return default if match is None else int(match[1])

    def duration_s(self, name: str) -> float | None:
        """An xs:duration in seconds, a week at most. Years and months have no fixed length: only 0 of them is taken."""
        match = self._match(name, _DURATION, "duration as PT1M30.5S")
        if match is None:
            return None
        if not any(match.groups()):
            raise self._wrong(name, "duration as PT1M30.5S")
        years, months, days, hours, minutes, seconds = (float(number or 0) for number in match.groups())
        if years or months:
            raise self.refuse(f"{name}={match[0][:40]!r}: years and months have no length")
        found = days * 86400 + hours * 3600 + minutes * 60 + seconds
        if found > _LONGEST_S:
            raise self.refuse(f"{found:g} s is longer than {_LONGEST_S:g} s")
        return found

    def byte_range(self, name: str) -> ByteRange | None:
        """``FIRST-LAST``, both included."""
        match = self._match(name, _RANGE, "range FIRST-LAST")
        if match is not None and int(match[1]) > int(match[2]):
            raise self._wrong(name, "range FIRST-LAST")
        return None if match is None else ByteRange(int(match[1]), int(match[2]))

    def frame_rate(self) -> float | None:
        """``30`` or ``30000/1001``; None when absent or something else: nothing depends on it."""
        match = _RATE.match(self.attributes.get("frameRate", ""))
        return None if match is None or int(match[2] or 1) == 0 else int(match[1]) / int(match[2] or 1)

    def _match(self, name: str, pattern: re.Pattern[str], what: str) -> re.Match[str] | None:
        text = self.attributes.get(name)
        match = None if text is None else pattern.match(text)
        if text is not None and match is None:
            raise self._wrong(name, what)
        return match

    def _wrong(self, name: str, what: str) -> MpdError:
        return self.refuse(f"{name}={self.attributes[name][:40]!r} is no {what}")


def read(document: bytes) -> Element:
    """The root element; MpdError when it is no XML or breaks a bound."""
    if len(document) > LONGEST_BYTES:
        raise MpdError(f"{len(document)} bytes, more than {LONGEST_BYTES}")
    return _Reader().read(document)


class _Reader:
    def __init__(self) -> None:
        self._parser = expat.ParserCreate(namespace_separator=" ")
        self._parser.buffer_text = True
        self._parser.StartDoctypeDeclHandler = self._doctype
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text
        self._open: list[tuple[Element, list[str]]] = []
        self._foreign = self._seen = 0
        self._root: Element | None = None

    def read(self, document: bytes) -> Element:
        try:
            self._parser.Parse(document, True)
        except expat.ExpatError as error:
            raise MpdError(f"line {error.lineno}: no XML: {expat.ErrorString(error.code)}") from error
        except MpdError:
            raise
        except (ValueError, LookupError) as error:  # an encoding that it declares and Python does not have, or not so
            raise MpdError(f"no XML: {' '.join(str(error).split())[:100]}") from error
        assert self._root is not None  # noqa: S101  (expat takes no document without one)
        return self._root

    def _refuse(self, what: str) -> MpdError:
        return MpdError(f"line {self._parser.CurrentLineNumber}: {what}")

    def _doctype(self, *_: object) -> None:
        raise self._refuse("a document type declaration is not read")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._seen += 1
        if self._seen > MOST_ELEMENTS:
            raise self._refuse(f"more than {MOST_ELEMENTS} elements")
        if len(self._open) + self._foreign >= DEEPEST:
            raise self._refuse(f"deeper than {DEEPEST} elements")
        if len(attributes) > MOST_ATTRIBUTES:
            raise self._refuse(f"more than {MOST_ATTRIBUTES} attributes")
        if any(len(value) > LONGEST_TEXT for value in attributes.values()):
            raise self._refuse(f"an attribute longer than {LONGEST_TEXT} characters")
        namespace, _, local = name.rpartition(" ")
        ours = namespace == "" or namespace.lower() == _DASH
        if self._root is None and not ours:
            raise self._refuse(f"{local[:40]!r} is of the namespace {namespace[:80]!r}; read is {_DASH!r}")
        if self._foreign or not ours:
            self._foreign += 1  # extensions of others, with all that is in them
            return
        line = self._parser.CurrentLineNumber
        element = Element(local, line, {key.rpartition(" ")[2]: value for key, value in attributes.items()})
        if self._open:
            self._open[-1][0].children.append(element)
        else:
            self._root = element
        self._open.append((element, []))

    def _end(self, _name: str) -> None:
        if self._foreign:
            self._foreign -= 1
            return
        element, pieces = self._open.pop()
        element.text = "".join(pieces).strip()
        if len(element.text) > LONGEST_TEXT:
            raise MpdError(f"line {element.line}: more than {LONGEST_TEXT} characters of text")

    def _text(self, text: str) -> None:
        if not self._foreign and self._open:
            self._open[-1][1].append(text)  # all of it is no longer than the document
