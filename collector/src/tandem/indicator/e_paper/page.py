"""What the e-paper shows, drawn: the kit's name, the state in words, what to do, whom to call, when data last reached the server. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from tandem.indicator.e_paper.font import ADVANCE, HEIGHT, glyph, spelt, wrapped
from tandem.schema.status_led import MEASURING, WELL, LedState

COLUMNS, ROWS = 250, 122
_MARGIN = 3
_ROOM = (COLUMNS - 2 * _MARGIN) // ADVANCE
"""Letters a line."""
_LINES = 5
_HOUR_NS = 3600 * 10**9
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@dataclass(frozen=True, slots=True)
class Page:
    """All that is shown. Two pages that are equal look the same."""

    kit: str
    state: LedState
    call: str
    reached: str
    as_of: str


class Picture:
    """``COLUMNS`` × ``ROWS`` dots, white at first; ``black`` holds the rows, each a list of truths."""

    def __init__(self) -> None:
        self.black = [[False] * COLUMNS for _ in range(ROWS)]

    def text(self, x: int, y: int, text: str, *, wide: int = 1, tall: int = 1) -> None:
        """Letters from left to right, each dot ``wide`` × ``tall``; what lies outside is left out."""
        for number, letter in enumerate(text):
            left = x + number * ADVANCE * wide
            for row, dots in enumerate(glyph(letter)):
                for column, dot in enumerate(dots):
                    if dot:
                        self.fill(left + column * wide, y + row * tall, wide, tall)

    def fill(self, x: int, y: int, width: int, height: int) -> None:
        """A black rectangle."""
        for row in range(max(0, y), min(ROWS, y + height)):
            for column in range(max(0, x), min(COLUMNS, x + width)):
                self.black[row][column] = True


def shown(state: LedState) -> LedState:
    """A measurement is not told on paper: each change makes it flash for seconds, and all is well either way."""
    return WELL if state is MEASURING else state


def reached(last_ns: int | None, now_ns: int | None) -> str:
    """When data last reached the server, UTC in ns, in words that change seldom."""
    if last_ns is None or now_ns is None:
        return "Sent: not since start"
    return "Sent: within the hour" if now_ns - last_ns < _HOUR_NS else f"Sent: {_day(last_ns)}"


def as_of(now_ns: int | None) -> str:
    """The hour of the picture, which stays when the power is gone."""
    return "" if now_ns is None else f"as of {_day(now_ns - now_ns % _HOUR_NS)}"


def _day(utc_ns: int) -> str:
    moment = datetime.fromtimestamp(utc_ns // 10**9, UTC)
    return f"{moment.day} {_MONTHS[moment.month - 1]} {moment:%H:%M}"


def sentences(state: LedState) -> list[str]:
    """What it means and what to do, in the lines there are; a sentence begins on a line of its own."""
    means = wrapped(state.means, _ROOM, _LINES - 1)
    return means + wrapped(state.do, _ROOM, _LINES - len(means))


def drawn(page: Page) -> Picture:
    """The picture. Sentences are drawn narrow and tall, 40 letters a line and 2.7 mm high."""
    picture, room = Picture(), _ROOM
    picture.text(_MARGIN, 2, page.state.title[: room // 2], wide=2, tall=2)
    kit = spelt(page.kit)[: room - 2 * len(page.state.title) - 1]
    picture.text(COLUMNS - _MARGIN - len(kit) * ADVANCE, 6, kit)
    picture.fill(0, 19, COLUMNS, 1)
    for number, line in enumerate(sentences(page.state)):
        picture.text(_MARGIN, 22 + number * 2 * HEIGHT, line, tall=2)
    picture.fill(0, 101, COLUMNS, 1)
    if spelt(page.call):
        picture.text(_MARGIN, 104, wrapped(f"Call {page.call}", room, 1)[0])
    picture.text(_MARGIN, 113, page.reached)
    picture.text(COLUMNS - _MARGIN - len(page.as_of) * ADVANCE, 113, page.as_of)
    return picture
