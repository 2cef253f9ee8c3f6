"""Whose SIM is in a modem: its home network and that network's name. Of the subscriber's number (IMSI) only the network's part is kept."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tandem.at.channel import Channel
from tandem.at.dialogue import Response
from tandem.at.errors import NoAnswer
from tandem.at.grammar import prefix, values

_DEADLINE_S = 2.0
_MNC_LENGTH = "AT+CRSM=176,28589,0,0,4"
"""READ BINARY of EF-AD (3GPP TS 31.102 clause 4.2.18): byte 4 is the number of digits of the MNC."""
_PROVIDER = "AT+CRSM=176,28486,0,0,17"
"""READ BINARY of EF-SPN (clause 4.2.12): a byte for when to show it, then the service provider's name, filled with FF."""


@dataclass(frozen=True, slots=True)
class HomeNetwork:
    """``plmn``: MCC and MNC of the SIM, five or six digits; ``name``: the service provider's as the SIM has it, else the operator's that
    the modem is registered with, where that is at home. None: not told."""

    plmn: str | None = None
    name: str | None = None


UNTOLD = HomeNetwork()


def home_network(channel: Channel) -> HomeNetwork:
    """At an AT port whose SIM is ready. Nothing that the modem does not tell is an error. PortLost when it goes away."""
    try:
        imsi = _imsi(channel.ask("AT+CIMI", _DEADLINE_S))  # 27.007 clause 5.6
        if imsi is None:
            return UNTOLD
        registered = _operator(channel, 2)
        digits = mnc_digits(_file(channel.ask(_MNC_LENGTH, _DEADLINE_S)))
        at_home = registered if registered and imsi.startswith(registered) else imsi[:5]
        plmn = at_home if digits is None else imsi[: 3 + digits]
        name = provider_name(_file(channel.ask(_PROVIDER, _DEADLINE_S)))
        return HomeNetwork(plmn, name or (_operator(channel, 0) if registered == plmn else None))
    except NoAnswer:
        return UNTOLD


def mnc_digits(file: bytes) -> int | None:
    """EF-AD → 2 or 3; None where the card does not tell."""
    return file[3] & 0x0F if len(file) >= 4 and file[3] & 0x0F in (2, 3) else None


def provider_name(file: bytes) -> str | None:
    """EF-SPN → the name, of the GSM alphabet (3GPP TS 23.038; its letters that are ASCII's) or of UCS2 (TS 102 221 annex A)."""
    text = file[1:]
    if text[:1] == b"\x80":
        even = text[1 : 1 + (len(text) - 1) // 2 * 2]
        name = even.decode("utf-16-be", "ignore").partition("\uffff")[0]
    else:
        name = "".join(chr(byte) for byte in text.partition(b"\xff")[0] if 0x20 <= byte < 0x7F)
    return "".join(c for c in name if c.isprintable()).strip() or None


def _imsi(response: Response) -> str | None:
    for line in response.lines if response.final.ok else ():
        text = values(line)[0] if prefix(line) and values(line) else line.strip().strip('"')
        if re.fullmatch(r"[0-9]{6,15}", text):
            return text
    return None


def _file(response: Response) -> bytes:
    """The content that ``+CRSM: 144,0,"HEX"`` tells (27.007 clause 8.18); empty when it tells none."""
    for line in response.lines if response.final.ok else ():
        told = values(line) if prefix(line) else ()
        if len(told) >= 3 and told[0] in ("144", "145") and re.fullmatch(r"(?:[0-9A-Fa-f]{2})+", told[2]):
            return bytes.fromhex(told[2])
    return b""


def _operator(channel: Channel, form: int) -> str | None:
    """``+COPS?`` (27.007 clause 7.3); ``form`` 0: its name, 2: its MCC and MNC."""
    channel.ask(f"AT+COPS=3,{form}", _DEADLINE_S)
    answer = channel.ask("AT+COPS?", _DEADLINE_S)
    for line in answer.lines if answer.final.ok else ():
        told = values(line) if prefix(line) else ()
        if len(told) >= 3 and told[1] == str(form) and told[2].strip():
            return told[2].strip()
    return None
