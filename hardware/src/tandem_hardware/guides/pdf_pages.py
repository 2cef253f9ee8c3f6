"""How many pages a PDF has, and how large they are: by its cross-reference table (ISO 32000-1, 7.5.4 and 7.7.3). Pure.

For PDFs as Chromium writes them: a classic table, objects not compressed into streams.
"""

from __future__ import annotations

import re


class PdfError(ValueError):
    """Not a PDF as it is read here."""


def pages(pdf: bytes) -> list[tuple[float, float]]:
    """Width and height of each page in mm, in order. PdfError."""
    trailer, places = _table(pdf)
    root = _object(pdf, places, _reference(trailer, b"Root"))
    found: list[tuple[float, float]] = []
    _walk(pdf, places, _reference(root, b"Pages"), None, found)
    return found


def _walk(
    pdf: bytes, places: dict[int, int], number: int, box: tuple[float, float] | None, found: list[tuple[float, float]]
) -> None:
    body = _object(pdf, places, number)
    if size := re.search(rb"/MediaBox\s*\[\s*([-\d.]+)\s+([-\d.]+)\s+([-\d.]+)\s+([-\d.]+)\s*\]", body):
        left, low, right, high = (float(value) for value in size.groups())
        box = ((right - left) * 25.4 / 72, (high - low) * 25.4 / 72)
    if re.search(rb"/Type\s*/Pages\b", body):
        kids = re.search(rb"/Kids\s*\[([^\]]*)\]", body)
        for kid in re.findall(rb"(\d+)\s+\d+\s+R", kids[1] if kids else b""):
            _walk(pdf, places, int(kid), box, found)
    elif box is None:
        raise PdfError(f"object {number}: a page without a size")
    else:
        found.append(box)


def _table(pdf: bytes) -> tuple[bytes, dict[int, int]]:
    starts = re.findall(rb"startxref\s+(\d+)\s+%%EOF", pdf)
    if not starts:
        raise PdfError("no cross-reference table")
    head = re.compile(rb"xref\s+").match(pdf, int(starts[-1]))
    if head is None:
        raise PdfError("the cross-reference table is not where it is said to be")
    places: dict[int, int] = {}
    at = head.end()
    section = re.compile(rb"(\d+) (\d+)\s+")
    while found := section.match(pdf, at):
        first, count = int(found[1]), int(found[2])
        at = found.end()
        for number in range(first, first + count):
            if pdf[at + 17 : at + 18] == b"n":
                places[number] = int(pdf[at : at + 10])
            at += 20  # each entry has 20 bytes, its line's end included
    return pdf[at:], places


def _reference(body: bytes, key: bytes) -> int:
    found = re.search(rb"/" + key + rb"\s+(\d+)\s+\d+\s+R", body)
    if found is None:
        raise PdfError(f"no /{key.decode()}")
    return int(found[1])


def _object(pdf: bytes, places: dict[int, int], number: int) -> bytes:
    try:
        at = places[number]
    except KeyError:
        raise PdfError(f"object {number} is not there") from None
    if not re.compile(rb"%d\s+\d+\s+obj\b" % number).match(pdf, at):
        raise PdfError(f"object {number} is not where it is said to be")
    end = pdf.find(b"endobj", at)
    return pdf[at:end]
