"""Local time: zones by their IANA names, and spans of the local day. Standard library only, with the system's tzdata.

A span holds while the local clock shows a time in it, so what daylight saving does to the clock it does to the span: one in the hour that
is left out in spring is not reached that day, one that begins in that hour opens at its end, and one in the hour that is repeated in
autumn holds twice.
"""

from __future__ import annotations

import difflib
import math
import zoneinfo
from datetime import UTC, date, datetime, timedelta, tzinfo
from pathlib import Path

from tandem.schema.campaign import Campaign, CampaignError

LOCALTIME = Path("/etc/localtime")
"""A link to the machine's zone, as systemd keeps it."""

_DAY_S = 86400


class ZoneError(CampaignError):
    """No such zone, or this machine has none: one line with its hint."""


def zone(name: str) -> tzinfo:
    """The zone of an IANA name; ZoneError. UTC needs no tzdata. Reads the system's folder of zones."""
    if name in ("UTC", "Etc/UTC"):
        return UTC
    known = zoneinfo.available_timezones()
    if name in known:
        return zoneinfo.ZoneInfo(name)
    if not known:
        raise ZoneError(f"timezone {name!r}: this machine has no time zones; hint: sudo apt install tzdata")
    raise ZoneError(f"timezone {name!r}: no such zone; hint: {_nearest(name, known)}")


def machine() -> str:
    """The name of this machine's own zone; UTC where it has none, or one that is not installed."""
    try:
        name = str(LOCALTIME.readlink()).partition("zoneinfo/")[2]
        zone(name)
    except (OSError, ZoneError):
        return "UTC"
    return name


def of(campaign: Campaign) -> tzinfo:
    """The zone of the campaign's local time: the one that it names, else this machine's. CampaignError with the line."""
    try:
        return zone(campaign.timezone or machine())
    except ZoneError as error:
        raise CampaignError(f"{campaign.where('timezone')}: {error}") from error


def until(start: int, end: int, utc_s: float, local: tzinfo) -> float:
    """Seconds until the local clock shows a time from ``start`` to before ``end`` (minutes of the day; over midnight when ``end`` is
    smaller); 0.0 while it does."""
    at = math.floor(utc_s)  # of whole seconds, as spans and zones begin with: no fraction is left to wait for
    while not _within(start, end, _second(at, local)):
        opens = at + (start * 60 - _second(at, local)) % _DAY_S
        at = opens if _offset_s(at, local) == _offset_s(opens, local) else _change(at, opens, local)
    return max(0.0, at - utc_s)


def day_of(utc_s: float, local: tzinfo) -> date:
    return datetime.fromtimestamp(utc_s, local).date()


def to_midnight(utc_s: float, local: tzinfo) -> float:
    following = day_of(utc_s, local) + timedelta(days=1)
    return datetime(following.year, following.month, following.day, tzinfo=local).timestamp() - utc_s


def shown(utc_s: float, local: tzinfo) -> str:
    """Hour and minute with the zone's abbreviation, as in 00:00 PDT."""
    return f"{datetime.fromtimestamp(utc_s, local):%H:%M %Z}"


def offset_s(utc_s: float | None, local: tzinfo) -> int | None:
    """Local time less UTC, in seconds; None while UTC is not known."""
    return None if utc_s is None else _offset_s(utc_s, local)


def _within(start: int, end: int, second: int) -> bool:
    minute = second // 60
    return (start <= minute < end) if start < end else (minute >= start or minute < end)


def _second(utc_s: int, local: tzinfo) -> int:
    return (utc_s + _offset_s(utc_s, local)) % _DAY_S


def _offset_s(utc_s: float, local: tzinfo) -> int:
    offset = datetime.fromtimestamp(utc_s, local).utcoffset()
    return 0 if offset is None else round(offset.total_seconds())


def _change(low: int, high: int, local: tzinfo) -> int:
    """The first second after the offset changed between two."""
    old = _offset_s(low, local)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _offset_s(middle, local) == old else (low, middle)
    return high


def _nearest(name: str, known: set[str]) -> str:
    """Places whose name, or whose city's, is nearly that."""
    places = {plain: one for one in known if "/" in one for plain in (_plain(one), _plain(one.rpartition("/")[2]))}
    words = (_plain(name), _plain(name.rpartition("/")[2]))
    close = next((found for word in words if (found := difflib.get_close_matches(word, places, 3, 0.75))), [])
    found = list(dict.fromkeys(places[one] for one in close))
    return f"write {' or '.join(found)}" if found else "as in America/Los_Angeles (timedatectl list-timezones)"


def _plain(name: str) -> str:
    return name.lower().replace("_", " ")
