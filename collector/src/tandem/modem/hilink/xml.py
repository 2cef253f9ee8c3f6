"""The XML of HiLink's web server: one level of elements under ``response`` or ``error``. Bytes from outside, so nothing in it
is trusted: no document type, no entities of its own, no depth, no great size."""

from __future__ import annotations

from xml.parsers import expat

MAX_CHARACTERS = 65536
MAX_ELEMENTS = 512


class _RefusedError(Exception):
    """The document has something that no answer of a stick has."""


def flat(text: str) -> tuple[str, dict[str, str]]:
    """The root's name and the texts of the elements right under it, stripped. ("", {}) when it is no such document."""
    if len(text) > MAX_CHARACTERS:
        return "", {}
    path: list[str] = []
    root, found = [""], dict[str, str]()

    def start(name: str, _attributes: dict[str, str]) -> None:
        path.append(name)
        if len(path) == 1:
            root[0] = name
        if len(path) == 2:
            found[name] = ""
        if len(path) > 8 or len(found) > MAX_ELEMENTS:
            raise _RefusedError

    def end(_name: str) -> None:
        path.pop()

    def characters(data: str) -> None:
        if len(path) == 2:
            found[path[1]] += data

    def refuse(*_declaration: object) -> None:
        raise _RefusedError

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, characters
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = refuse
    try:
        parser.Parse(text, True)
    except (expat.ExpatError, _RefusedError, UnicodeError):
        return "", {}
    return root[0], {name: value.strip() for name, value in found.items()}
