"""Identities and secrets out of a web server's page: by the names of its fields, then as any text (``scrub``). Pure.

What is no flat page of fields is left out as a whole: a login page holds tokens in scripts, which no rule would find for certain.
"""

from __future__ import annotations

import json
import re
from typing import Any

from tandem.modem.scrub import scrub

PERSONAL = re.compile(
    r"imei|imsi|iccid|msisdn|meid|\besn\b|serial|\bsn\b|uuid|mac|ssid|pass|psw|pwd|psk|wep|key|tok|sesinfo|session|cookie|csrf|phone|pin"
    r"|puk|user|login|account|mail|host|addr|_ip\b|ip$|ipv|\bip|dns|gateway|number|\bld\b|\brd\b|\bad\b|sim_?card|longitude|latitude",
    re.IGNORECASE,
)
"""Names of fields whose values identify a person, a device, a SIM, a network at home, or open a session. No radio quantity has such
a name."""

_XML = re.compile(r"\s*(?:<\?xml[^>]*\?>\s*)?<(?:response|error)[\s/>]", re.IGNORECASE)
_ELEMENT = re.compile(r"<([A-Za-z_][\w.\-]*)([^<>]*)>((?:<!\[CDATA\[.*?\]\]>|[^<])*)</\1\s*>", re.DOTALL)
_ATTRIBUTE = re.compile(r"([\w.\-:]+)\s*=\s*(\"[^\"]*\"|'[^']*')")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_LONG = re.compile(r"0{12,}")
_BARE_MAC = re.compile(r"(?<![0-9A-Za-z])[0-9A-Fa-f]{12,}(?![0-9A-Za-z])")
_ADDRESS = re.compile(r"(?<![0-9.])[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?![0-9.])")

REMOVED = "removed"
"""Instead of a value: its length would tell something of a password, and columns do not matter here."""


def scrub_page(body: str) -> str | None:
    """HiLink's XML or goform's JSON without identities; None for any other page."""
    if _XML.match(body):
        declared, _, rest = body.partition("?>") if body.lstrip().startswith("<?xml") else ("", "", body)
        text = _ELEMENT.sub(_element, _COMMENT.sub("", rest))
        return declared + ("?>" if declared else "") + _short(scrub(text))
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    return _short(scrub(json.dumps(_values(found), ensure_ascii=False, separators=(",", ":"))))


def _short(text: str) -> str:
    """Addresses under whatever name too; so many zeros were a number of somebody's."""
    return _LONG.sub("0" * 11, _ADDRESS.sub(lambda m: re.sub("[0-9]", "0", m.group()), _BARE_MAC.sub("0" * 11, text)))


def _blank(text: str) -> str:
    return REMOVED if text.strip() else text


def _element(match: re.Match[str]) -> str:
    name, attributes, value = match.groups()
    attributes = _ATTRIBUTE.sub(lambda m: f'{m.group(1)}="{_blank(m.group(2)[1:-1])}"', attributes)
    if PERSONAL.search(name):
        value = _blank(value)
    return f"<{name}{attributes}>{value}</{name}>"


def _values(found: Any) -> Any:  # noqa: ANN401 - any JSON value, the same kind back
    if isinstance(found, dict):
        return {name: _all_blank(one) if PERSONAL.search(name) else _values(one) for name, one in found.items()}
    return [_values(one) for one in found] if isinstance(found, list) else found


def _all_blank(found: Any) -> Any:  # noqa: ANN401 - as above
    if isinstance(found, dict):
        return {name: _all_blank(one) for name, one in found.items()}
    if isinstance(found, list):
        return [_all_blank(one) for one in found]
    return _blank(str(found)) if isinstance(found, str | int | float) and not isinstance(found, bool) else found
