"""What a guide leaves open: ``⟨name⟩`` in its Markdown. Filled from options, else a line to write on. Pure."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass

from tandem_hardware.errors import SourceError

BLANK = re.compile(r"⟨([^⟨⟩\n]*)⟩")


@dataclass(frozen=True, slots=True)
class Blank:
    """``asks``: what is to be written there, in small print below the line; ``width_mm``: of the line on paper."""

    asks: str
    width_mm: int


BLANKS: Mapping[str, Blank] = {
    "probe": Blank("the kit's name", 28),
    "call": Blank("name, telephone, hours", 62),
    "study": Blank("the study's title", 110),
    "institution": Blank("institution, address", 110),
    "responsible": Blank("who is responsible: name, function", 110),
    "protection": Blank("data protection officer: name, address", 110),
    "authority": Blank("supervisory authority", 110),
    "review": Blank("reviewed by the ethics board: number, date", 70),
    "from": Blank("from", 30),
    "until": Blank("until", 30),
    "server": Blank("place and keeper of the server", 110),
    "readers": Blank("who else gets records, in what form", 110),
    "keep-records": Blank("until when", 40),
    "keep-captures": Blank("until when", 40),
    "keep-backups": Blank("until when", 40),
    "keep-forms": Blank("until when", 40),
    "withdrawal-until": Blank("last day", 34),
    "publication": Blank("what is published, in what form", 90),
    "basis": Blank("legal basis, as the institution's office names it", 90),
    "name": Blank("name in capitals", 70),
    "place-date": Blank("place, date", 55),
    "signature": Blank("signature", 70),
}
"""Every blank of every guide. ``probe`` and ``call`` are filled by options; the others by hand, or in a copy of the Markdown."""


def names(text: str) -> set[str]:
    """The blanks of a text."""
    return set(BLANK.findall(text))


def filled(page: str, values: Mapping[str, str]) -> str:
    """``page`` (HTML) with each blank filled from ``values``, or as a line to write on. SourceError: a blank that is none of ``BLANKS``."""

    def put(found: re.Match[str]) -> str:
        name = found[1]
        blank = BLANKS.get(name)
        if blank is None:
            raise SourceError(f"no blank is called {name!r}; mend: one of {', '.join(BLANKS)}")
        if value := values.get(name, "").strip():
            return f'<span class="filled">{html.escape(value)}</span>'
        return f'<span class="blank" style="width:{blank.width_mm}mm"><span class="asks">{html.escape(blank.asks)}</span></span>'

    return BLANK.sub(put, page)


def titled(text: str, values: Mapping[str, str]) -> str:
    """Plain ``text`` with its blanks filled, or left out."""
    return " ".join(BLANK.sub(lambda found: values.get(found[1], ""), text).split())
