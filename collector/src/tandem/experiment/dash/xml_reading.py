"""XML of an MPD into a small tree, with bounds: it comes over a network from a server that may be hostile.

A document type declaration is refused, and with it every entity but the five of XML itself: no entity bomb, no external file.
Size, depth, elements and attributes are bounded. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from xml.parsers import expat

LONGEST_BYTES = 4 << 20
DEEPEST = 32
MOST_ELEMENTS = 200_000
MOST_ATTRIBUTES = 64
LONGEST_TEXT = 65_536
"""Characters of one element's text, and of one attribute's value."""

_DASH = "urn:mpeg:dash:schema:mpd:2011"
"""Some packagers write it, as drafts of the standard did, in other cases of its letters."""


class MpdError(ValueError):
    """An MPD that cannot be played; one line that says where and why."""


@dataclass(slots=True)
class Element:
    """One element: local name, attributes by local name, children of the DASH namespace (or of none), its text, its line."""

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
        self._foreign = 0
        self._seen = 0
        self._root: Element | None = None

    def read(self, document: bytes) -> Element:
        try:
            self._parser.Parse(document, True)
        except expat.ExpatError as error:
            raise MpdError(f"line {error.lineno}: no XML: {expat.ErrorString(error.code)}") from error
        except (ValueError, LookupError) as error:  # an encoding that it declares and Python does not have, or not so
            if isinstance(error, MpdError):
                raise
            raise MpdError(f"no XML: {' '.join(str(error).split())[:100]}") from error
        assert self._root is not None  # noqa: S101  (expat takes no document without one)
        return self._root

    @property
    def _line(self) -> int:
        return int(self._parser.CurrentLineNumber)

    def _doctype(self, *_: object) -> None:
        raise MpdError(f"line {self._line}: a document type declaration is not read")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._seen += 1
        if self._seen > MOST_ELEMENTS:
            raise MpdError(f"line {self._line}: more than {MOST_ELEMENTS} elements")
        if len(self._open) + self._foreign >= DEEPEST:
            raise MpdError(f"line {self._line}: deeper than {DEEPEST} elements")
        if len(attributes) > MOST_ATTRIBUTES:
            raise MpdError(f"line {self._line}: more than {MOST_ATTRIBUTES} attributes")
        if any(len(value) > LONGEST_TEXT for value in attributes.values()):
            raise MpdError(f"line {self._line}: an attribute longer than {LONGEST_TEXT} characters")
        namespace, _, local = name.rpartition(" ")
        ours = namespace == "" or namespace.lower() == _DASH
        if self._root is None and not ours:
            raise MpdError(
                f"line {self._line}: {local[:40]!r} is of the namespace {namespace[:80]!r}; read is {_DASH!r}"
            )
        if self._foreign or not ours:
            self._foreign += 1  # extensions of others, with all that is in them
            return
        element = Element(local, self._line, {key.rpartition(" ")[2]: value for key, value in attributes.items()})
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
        if self._foreign or not self._open:
            return
        self._open[-1][1].append(text)  # all of it is no longer than the document
