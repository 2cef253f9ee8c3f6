"""What one load came to, by a browser or by the object graph alone."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Load:
    """Times in ms since the load began, None for what was not reached. ``failure``: None when the page was loaded whole as far as it can
    be; objects that failed are no failure of the load, as a browser sees it."""

    page: str
    by: str
    load_ms: float | None = None
    content_loaded_ms: float | None = None
    first_paint_ms: float | None = None
    objects: int = 0
    failed: int = 0
    missed: int = 0
    failure: str | None = None
    retry: bool = True
