"""Values of MPD attributes: whole numbers, durations, byte ranges, rates. Pure; MpdError names line, attribute and value."""

from __future__ import annotations

import re

from tandem.experiment.dash.model import ByteRange
from tandem.experiment.dash.xml_reading import Element, MpdError

_WHOLE = re.compile(r"\s*\+?([0-9]{1,18})\s*\Z")
_SIGNED = re.compile(r"\s*([+-]?[0-9]{1,18})\s*\Z")
_RANGE = re.compile(r"\s*([0-9]{1,18})-([0-9]{1,18})\s*\Z")
_RATE = re.compile(r"\s*([0-9]{1,9})(?:/([0-9]{1,9}))?\s*\Z")
_NUMBER = r"([0-9]{1,9})"
_DURATION = re.compile(
    rf"\s*P(?:{_NUMBER}Y)?(?:{_NUMBER}M)?(?:{_NUMBER}D)?(?:T(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:([0-9]{{1,9}}(?:\.[0-9]+)?)S)?)?\s*\Z"
)


def refuse(element: Element, what: str) -> MpdError:
    """The error to raise for ``element``."""
    return MpdError(f"line {element.line}: {element.name}: {what}")


def whole(element: Element, name: str, default: int | None = None, least: int = 0) -> int | None:
    """A whole number from ``least`` to 10^18; ``default`` when absent."""
    text = element.attributes.get(name)
    if text is None:
        return default
    match = _WHOLE.match(text)
    if match is None or int(match[1]) < least:
        raise refuse(element, f"{name}={text[:40]!r} is no whole number from {least}")
    return int(match[1])


def signed(element: Element, name: str, default: int) -> int:
    """A whole number that may be negative."""
    text = element.attributes.get(name)
    if text is None:
        return default
    match = _SIGNED.match(text)
    if match is None:
        raise refuse(element, f"{name}={text[:40]!r} is no whole number")
    return int(match[1])


def duration_s(element: Element, name: str) -> float | None:
    """An xs:duration in seconds. Years and months have no fixed length: only 0 of them is taken."""
    text = element.attributes.get(name)
    if text is None:
        return None
    match = _DURATION.match(text)
    if match is None or not any(match.groups()):
        raise refuse(element, f"{name}={text[:40]!r} is no duration as PT1M30.5S")
    years, months, days, hours, minutes, seconds = match.groups()
    if int(years or 0) or int(months or 0):
        raise refuse(element, f"{name}={text[:40]!r}: years and months have no length")
    return int(days or 0) * 86400 + int(hours or 0) * 3600 + int(minutes or 0) * 60 + float(seconds or 0)


def byte_range(element: Element, name: str) -> ByteRange | None:
    """``FIRST-LAST``, both included."""
    text = element.attributes.get(name)
    if text is None:
        return None
    match = _RANGE.match(text)
    if match is None or int(match[1]) > int(match[2]):
        raise refuse(element, f"{name}={text[:40]!r} is no range FIRST-LAST")
    return ByteRange(int(match[1]), int(match[2]))


def frame_rate(text: str | None) -> float | None:
    """``30`` or ``30000/1001``; None when absent or something else: nothing depends on it."""
    match = _RATE.match(text) if text is not None else None
    if match is None or int(match[2] or 1) == 0:
        return None
    return int(match[1]) / int(match[2] or 1)
