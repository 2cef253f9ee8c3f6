"""HiLink's ``/api/device/signal``, ``/api/monitoring/status`` and ``/api/net/current-plmn``.

Source: public readers of the web interface of E3372h, B525 and H168, and answers of theirs as published. Quantities carry
their unit (``-95dBm``, ``12dB``, ``20MHz``); at the ends of a scale a sign stands before them (``>=-51dBm``) and the end of the
scale is taken. Fields that a model does not have are empty or absent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from xml.parsers import expat

from tandem.at.dialogue import Response
from tandem.modem.base import Driver, Identity, Reading
from tandem.modem.scales import code, hexadecimal, plmn, whole, within

MAX_CHARACTERS = 65536
MAX_ELEMENTS = 512


class _RefusedError(Exception):
    """The document has something that no answer of a stick has."""


def flat(text: str) -> tuple[str, dict[str, str]]:
    """The root's name and the texts of the elements right under it, stripped. ("", {}) when it is no such document."""
    if len(text) > MAX_CHARACTERS:
        return "", {}
    path: list[str] = []
    root, found = [""], dict[str, str]()

    def start(name: str, _attributes: dict[str, str]) -> None:
        path.append(name)
        if len(path) == 1:
            root[0] = name
        if len(path) == 2:
            found[name] = ""
        if len(path) > 8 or len(found) > MAX_ELEMENTS:
            raise _RefusedError

    def end(_name: str) -> None:
        path.pop()

    def characters(data: str) -> None:
        if len(path) == 2:
            found[path[1]] += data

    def refuse(*_declaration: object) -> None:
        raise _RefusedError

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, characters
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = refuse
    try:
        parser.Parse(text, True)
    except (expat.ExpatError, _RefusedError, UnicodeError):
        return "", {}
    return root[0], {name: value.strip() for name, value in found.items()}


_NUMBER = re.compile(r"(?:[<>]=?)?\s*([-+]?[0-9]{1,5}(?:\.[0-9]{1,3})?)\s*(?:dBm|dB|MHz)?\Z", re.IGNORECASE)
_BAND = re.compile(r"[BN]?([0-9]{1,4})\Z", re.IGNORECASE)
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
    """Why the stick told nothing: ``token_missing`` (125002: asked without a session), ``login_needed`` and others by name,
    ``error <code>`` for a code without one; None when it answered."""
    if response.final.code.startswith(_REFUSED):
        number = response.final.code.removeprefix(_REFUSED)
    else:
        root, found = flat("\n".join(response.lines))
        if root != "error":
            return None
        number = found.get("code", "")
    return _FAULTS.get(number, f"error {number}" if number.isascii() and number.isdigit() else "error")


def decode(responses: Sequence[Response], identity: Identity) -> Reading:
    """What the pages tell together. A registered stick's state is ``unknown``: no page tells whether RRC is connected."""
    told: dict[str, str] = {}
    for response in responses:
        root, found = flat("\n".join(response.lines))
        if root == "response":
            told |= {name: value for name, value in found.items() if value}
    rat = _rat(told)
    if rat in ("GSM", "WCDMA"):
        return _older(told, rat)
    if rat == "NR-SA":
        return _standalone(told)
    return _lte(told, rat)


def _rat(told: Mapping[str, str]) -> str | None:
    """By the signal page's mode and quantities, else by the status page."""
    nr = _number(told, "nrrsrp") is not None
    found = _MODES.get(told.get("mode", ""))
    if found is None:
        found = _NETWORK_TYPES.get(told.get("CurrentNetworkTypeEx", "")) or _NETWORK_TYPES.get(
            told.get("CurrentNetworkType", "")
        )
    if nr and _number(told, "rsrp") is not None:
        return "NR-NSA"
    return "NR-SA" if nr else found


def _state(told: Mapping[str, str]) -> str:
    """By ``ServiceStatus`` of the status page: 0 none, 1 restricted, 2 service, and a network type 0 none."""
    service = told.get("ServiceStatus")
    if service == "1":
        return "limited"
    if service == "0" or (told.get("CurrentNetworkType") == "0" and service != "2"):
        return "no_service"
    return "unknown"


def _lte(told: Mapping[str, str], rat: str | None) -> Reading:
    return Reading(
        state=_state(told),
        rat=rat,
        rsrp_dbm=within(_number(told, "rsrp"), -156, -30),
        rsrq_db=within(_number(told, "rsrq"), -50, 25),
        sinr_db=within(_number(told, "sinr"), -40, 60),
        rssi_dbm=within(_number(told, "rssi"), -130, -10),
        plmn=_network(told),
        tac=_area(told.get("tac", ""), 0xFFFF),
        eci=_eci(told),
        pci=code(told.get("pci", ""), 0, 503),
        earfcn=_channel(told.get("earfcn", ""), 262143),
        band=_band(told.get("band", "")),
        bandwidth_mhz=within(_number(told, "dlbandwidth"), 1.4, 20),
        nr_rsrp_dbm=within(_number(told, "nrrsrp"), -157, -30),
        nr_rsrq_db=within(_number(told, "nrrsrq"), -50, 25),
        nr_sinr_db=within(_number(told, "nrsinr"), -40, 60),
        nr_arfcn=_channel(told.get("nrearfcn", ""), 3279165),
    )


def _standalone(told: Mapping[str, str]) -> Reading:
    cell = told.get("cell_id", "")
    nci = whole(cell) if cell.isdigit() else hexadecimal(cell)
    return Reading(
        state=_state(told),
        rat="NR-SA",
        rsrp_dbm=within(_number(told, "nrrsrp"), -157, -30),
        rsrq_db=within(_number(told, "nrrsrq"), -50, 25),
        sinr_db=within(_number(told, "nrsinr"), -40, 60),
        rssi_dbm=within(_number(told, "nrrssi"), -130, -10),
        plmn=_network(told),
        tac=_area(told.get("tac", ""), 0xFFFFFF),
        eci=nci if nci is not None and 0 < nci < 0xFFFFFFFFF else None,
        pci=code(told.get("pci", ""), 0, 1007),
        earfcn=_channel(told.get("nrearfcn", ""), 3279165),
        band=_band(told.get("bandInfo", "")),
        bandwidth_mhz=within(_number(told, "nrdlbandwidth"), 5, 400),
    )


def _older(told: Mapping[str, str], rat: str) -> Reading:
    """2G and 3G: a location area is decimal where it can be nothing else, as ``_area``."""
    cell = code(told.get("cell_id", ""), 1, 0xFFFF if rat == "GSM" else 0xFFFFFFE)
    wcdma = rat == "WCDMA"
    return Reading(
        state=_state(told),
        rat=rat,
        rssi_dbm=within(_number(told, "rssi"), -130, -10),
        rscp_dbm=within(_number(told, "rscp"), -140, -10) if wcdma else None,
        ecno_db=within(_number(told, "ecio"), -60, 10) if wcdma else None,
        plmn=_network(told),
        lac=_area(told.get("lac", ""), 0xFFFF),
        ci=cell,
    )


def _number(told: Mapping[str, str], name: str) -> float | None:
    match = _NUMBER.match(told.get(name, ""))
    return float(match.group(1)) if match else None


def _network(told: Mapping[str, str]) -> str | None:
    """``Numeric`` of a registered network (``State`` 0), else ``plmn`` of the signal page."""
    text = told.get("Numeric", "") if told.get("State", "0") == "0" else ""
    text = text or told.get("plmn", "")
    return plmn(text[:3], text[3:])


def _eci(told: Mapping[str, str]) -> int | None:
    """``cell_id`` is decimal. Where ``enodeb_id`` is there too and is not its front, one of the two is not what it seems."""
    cell, station = code(told.get("cell_id", ""), 1, 0xFFFFFFE), whole(told.get("enodeb_id", ""))
    return cell if cell is None or station is None or station == cell >> 8 else None


def _area(text: str, highest: int) -> int | None:
    """A location or tracking area: decimal on 4G sticks and routers, hexadecimal on 5G ones, and nothing says which.

    A letter means hexadecimal; what would be too great in hexadecimal is decimal; what may be either is None.
    """
    tens, sixteens = (whole(text) if text.isdigit() else None), hexadecimal(text)
    likely = [one for one in (tens, sixteens) if one is not None and 0 < one < highest - 1]
    return likely[0] if len(set(likely)) == 1 else None


def _band(text: str) -> int | None:
    match = _BAND.match(text)
    return int(match.group(1)) or None if match else None


def _channel(text: str, highest: int) -> int | None:
    """``1300``, or ``DL:1300 UL:19300``."""
    match = _CHANNEL.match(text)
    return code(match.group(1), 0, highest) if match else None


# Session and token (``GET /api/webserver/SesTokInfo``) are the transport's. Never known by what an AT port says, unless it is named so;
# a web server is known by which family's pages it answers.
DRIVER = Driver(
    "hilink",
    poll=("GET /api/device/signal", "GET /api/monitoring/status", "GET /api/net/current-plmn"),
    decode=decode,
    knows=("hilink",),
    setup=(),
    transport="http",
    fault=fault,
    reboot_command='POST /api/device/control <?xml version="1.0" encoding="UTF-8"?><request><Control>1</Control></request>',
)
