"""Drawing is most of a report's time: what looks at no picture, or at none for a printer, goes without."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from html import escape

import pytest

from tandem_server.report.figures import canvas
from tandem_server.report.figures.sheet import Picture, Sheet

_drawn = canvas.picture


@contextmanager
def none() -> Iterator[None]:
    """Sheets are made and their numbers written; a picture is an empty one with its title."""

    def empty(_sheet: Sheet, title: str, *, pdf: bool) -> Picture:
        return Picture(f'<svg class="paper" aria-label="{escape(title)}"/>', b"%PDF-" if pdf else b"")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(canvas, "picture", empty)
        yield


@contextmanager
def of_the_page() -> Iterator[None]:
    """Drawn, and none for a printer."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(canvas, "picture", lambda sheet, title, **_: _drawn(sheet, title, pdf=False))
        yield
