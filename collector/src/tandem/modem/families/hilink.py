"""HiLink's ``/api/device/signal``, ``/api/monitoring/status`` and ``/api/net/current-plmn``.

Source: public readers of the web interface of E3372h, B525 and H168, and answers of theirs as published. Quantities carry
their unit (``-95dBm``, ``12dB``, ``20MHz``); at the ends of a scale a sign stands before them (``>=-51dBm``) and the end of the
scale is taken. Fields that a model does not have are empty or absent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

from tandem.at.dialogue import Response
from tandem.modem.base import Driver, Identity, Reading, device
from tandem.modem.scales import cell_identity, code, decimal, either_base, hexadecimal, labelled, whole, with_secondary

MAX_CHARACTERS = 65536


def flat(text: str) -> tuple[str, dict[str, str]]:
    """The root's name and the texts of the elements right under it, stripped. ("", {}) when it is no such document."""
    if len(text) > MAX_CHARACTERS or "<!DOCTYPE" in text:  # no answer has one; without it no entity can be declared
        return "", {}
    try:
        root = ElementTree.fromstring(text)  # noqa: S314 - short, and without entities
    except (ElementTree.ParseError, UnicodeError, ValueError):
        return "", {}
    return root.tag, {one.tag: "".join((one.text or "", *(inner.tail or "" for inner in one))).strip() for one in root}


_CHANNEL = re.compile(r"(?:DL:)?\s*([0-9]{1,7})(?:\s.*)?\Z")

_MODES = {"0": "GSM", "2": "WCDMA", "7": "LTE", "12": "NR-SA"}
"""``mode`` of the signal page. Firmware with NR prints ``nrrsrp`` too, which tells NSA."""

_NETWORK_TYPES = {
    **dict.fromkeys(("1", "2", "3"), "GSM"),
    **dict.fromkeys(("4", "5", "6", "7", "9", "17", "18", "41", "42", "43", "44", "45", "46", "64", "65"), "WCDMA"),
    **dict.fromkeys(("19", "101", "1011"), "LTE"),
}
"""``CurrentNetworkType`` and ``CurrentNetworkTypeEx`` of the status page."""

_FAULTS = {"125001": "token_wrong", "125002": "token_missing", "125003": "token_wrong", "100002": "not_supported",
           "100001": "system_error", "100003": "login_needed", "100004": "busy", "100005": "wrong_format",
           "100006": "wrong_parameter", "101001": "no_sim", "108003": "somebody_is_logged_in"}  # fmt: skip
"""The codes of an ``error`` document."""

_REFUSED = "stick_error_"
"""Before the code, in the final result of a page that the transport saw to be an ``error`` document."""


def fault(response: Response) -> str | None:
    """Why the stick reported nothing: ``token_missing`` (125002: asked without a session), ``login_needed`` and others by name,
    ``error <code>`` for a code without one; None when it answered."""
    if response.final.code.startswith(_REFUSED):
        number = response.final.code.removeprefix(_REFUSED)
    else:
        root, found = flat("\n".join(response.lines))
        if root != "error":
            return None
        number = found.get("code", "")
    return _FAULTS.get(number, f"error {number}" if number.isascii() and number.isdigit() else "error")


_LTE = "rsrp_dbm=rsrp rsrq_db=rsrq sinr_db=sinr rssi_dbm=rssi pci=pci earfcn=earfcn band=band bandwidth_mhz=dlbandwidth plmn=plmn"
_NR = "rsrp_dbm=nrrsrp rsrq_db=nrrsrq sinr_db=nrsinr earfcn=nrearfcn"
_STANDALONE = f"{_NR} rssi_dbm=nrrssi pci=pci band=bandInfo bandwidth_mhz=nrdlbandwidth plmn=plmn"


def decode(responses: Sequence[Response], identity: Identity) -> Reading:
    """What the pages tell together. A registered stick's state is ``unknown``: no page tells whether RRC is connected."""
    reported: dict[str, str] = {}
    for response in responses:
        root, found = flat("\n".join(response.lines))
        if root == "response":
            reported |= {name: value for name, value in found.items() if value}
    if reported.get("State", "0") == "0" and "Numeric" in reported:  # of a network that it is registered with
        reported["plmn"] = reported["Numeric"]
    for name in ("earfcn", "nrearfcn"):  # ``1300``, or ``DL:1300 UL:19300``
        channel = _CHANNEL.match(reported.get(name, ""))
        reported[name] = channel.group(1) if channel else ""
    # An area is decimal on 4G sticks and routers, hexadecimal on 5G ones, and nothing says which.
    rat, state, text = _rat(reported), _state(reported), reported.get("cell_id", "")
    if rat in ("GSM", "WCDMA"):
        levels = "rscp_dbm=rscp ecno_db=ecio" if rat == "WCDMA" else ""
        ids: dict[str, Any] = {
            "lac": either_base(reported.get("lac", ""), 0xFFFE),
            "ci": cell_identity(whole(text), rat) or None,
        }
        return labelled(rat, f"rssi_dbm=rssi plmn=plmn {levels}", reported, state=state, **ids)
    tac = either_base(reported.get("tac", ""), 0xFFFFFE if rat == "NR-SA" else 0xFFFE)
    if rat == "NR-SA":
        nci = cell_identity(whole(text) if text.isdigit() else hexadecimal(text), rat) or None
        return labelled(rat, _STANDALONE, reported, state=state, tac=tac, eci=nci)
    reading = labelled(rat, _LTE, reported, state=state, tac=tac, eci=_eci(reported))
    return with_secondary(reading, labelled("NR-SA", _NR, reported)) if rat == "NR-NSA" else reading


def _rat(reported: Mapping[str, str]) -> str | None:
    """By the signal page's mode and quantities, else by the status page."""
    if decimal(reported.get("nrrsrp", "")) is not None:
        return "NR-SA" if decimal(reported.get("rsrp", "")) is None else "NR-NSA"
    types = (_NETWORK_TYPES.get(reported.get(name, "")) for name in ("CurrentNetworkTypeEx", "CurrentNetworkType"))
    return _MODES.get(reported.get("mode", "")) or next((found for found in types if found), None)


def _state(reported: Mapping[str, str]) -> str:
    """By ``ServiceStatus`` of the status page: 0 none, 1 restricted, 2 service, and a network type 0 none."""
    service = reported.get("ServiceStatus")
    if service == "1":
        return "limited"
    if service == "0" or (reported.get("CurrentNetworkType") == "0" and service != "2"):
        return "no_service"
    return "unknown"


def _eci(reported: Mapping[str, str]) -> int | None:
    """``cell_id`` is decimal. Where ``enodeb_id`` is there too and is not its front, one of the two is not what it seems."""
    cell, station = code(reported.get("cell_id", ""), 1, 0xFFFFFFE), whole(reported.get("enodeb_id", ""))
    return cell if cell is None or station is None or station == cell >> 8 else None


# Session and token (``GET /api/webserver/SesTokInfo``) are the transport's. Never known by what an AT port says, unless it is named so;
# a web server is known by which family's pages it answers.
# HiLink firmware has a network function only (CDC Ethernet or RNDIS): no port, the stick is a router at 192.168.8.1. It starts as
# storage and is switched by usb_modeswitch.
DRIVER = Driver(
    "hilink",
    poll=("GET /api/device/signal", "GET /api/monitoring/status", "GET /api/net/current-plmn"),
    decode=decode,
    knows=("hilink",),
    setup=(),
    transport="http",
    fault=fault,
    reboot_command='POST /api/device/control <?xml version="1.0" encoding="UTF-8"?><request><Control>1</Control></request>',
    devices=(
        # All have the same MAC address, subnet and USB serial number: told apart by USB path only.
        device(
            "12d1:14dc",
            "E3372h, E8372h, E3372s with HiLink firmware",
            network=0,
            switched_from="1f01",
            mode_switch="usb_modeswitch -J",
            address="192.168.8.1",
        ),
        device(
            "12d1:14db",
            "E3131h, E3372h on older firmware",
            network=0,
            switched_from="1f01 14fe",
            mode_switch="usb_modeswitch -J",
            address="192.168.8.1",
        ),
    ),
)
