"""ZTE's ``/goform/goform_get_cmd_process?multi_data=1``: one flat JSON object of strings.

Source: public readers of the web interface of MF79U, MF283, MC801A, MC888 and U50, and answers of theirs as published. What a
model does not know is an empty string; names differ between models, so several are tried for a quantity.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from tandem.at.dialogue import Response
from tandem.modem.base import Driver, Identity, Reading
from tandem.modem.scales import code, decimal, hexadecimal, plmn, whole, within

MAX_CHARACTERS = 65536

_RATS = {
    "ENDC": "NR-NSA", "EN-DC": "NR-NSA", "NSA": "NR-NSA", "5G_NSA": "NR-NSA", "NR5G-NSA": "NR-NSA",
    "SA": "NR-SA", "5G_SA": "NR-SA", "NR5G-SA": "NR-SA",
    "LTE": "LTE", "4G": "LTE", "4G+": "LTE", "LTE-NSA": "LTE", "LTE_NSA": "LTE", "LTE_CA": "LTE",
    "WCDMA": "WCDMA", "UMTS": "WCDMA", "HSDPA": "WCDMA", "HSUPA": "WCDMA", "HSPA": "WCDMA", "HSPA+": "WCDMA",
    "DC-HSPA+": "WCDMA", "3G": "WCDMA",
    "GSM": "GSM", "GPRS": "GSM", "EDGE": "GSM", "2G": "GSM",
}  # fmt: skip
"""``network_type``. ``LTE-NSA``: a cell that could add NR and has not."""

_STATES = {"no service": "no_service", "no_service": "no_service", "limited service": "limited",
           "limited_service": "limited", "searching": "searching"}  # fmt: skip
_BAND = re.compile(r"(?:(?:LTE|WCDMA|NR5G)[ _]?)?(?:BAND)?[ _]?[BN]?([0-9]{1,4})\Z", re.IGNORECASE)
_HEXADECIMAL_MODELS = re.compile(r"\s*U[0-9]{2}|.*MC[0-9]{3}", re.IGNORECASE)
"""Models whose PCI is known to be printed in hexadecimal, in a model's name or a firmware's."""


def told(response: Response) -> dict[str, str]:
    """The fields of one answer that are strings or numbers; empty when it is no JSON object."""
    text = "\n".join(response.lines)
    if len(text) > MAX_CHARACTERS:
        return {}
    try:
        found = json.loads(text, parse_int=str, parse_float=str, parse_constant=str)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {str(name): value.strip() for name, value in found.items() if isinstance(value, str)}


def fault(response: Response) -> str | None:
    """``referer_missing`` when every field is empty: the server answers 200 to a request without a Referer and tells nothing.
    ``not_json`` when it is another page (a login page, for example); None when it answered."""
    found = told(response)
    if not found:
        return "not_json" if response.lines else None
    return None if any(found.values()) else "referer_missing"


def decode(responses: Sequence[Response], identity: Identity) -> Reading:
    """What the answers tell together. A registered modem's state is ``unknown``: no field tells whether RRC is connected."""
    fields: dict[str, str] = {}
    for response in responses:
        fields |= {name: value for name, value in told(response).items() if value}
    word = fields.get("network_type", "")
    rat = _RATS.get(word.upper())
    if rat is None and _level(fields, "lte_rsrp") is not None:
        rat = "LTE"
    state = _STATES.get(word.lower(), "unknown")
    names = (identity.model, fields.get("model_name", ""), fields.get("wa_inner_version", ""))
    sixteens = any(_HEXADECIMAL_MODELS.match(name) for name in names)
    if rat in ("GSM", "WCDMA"):
        return _older(fields, rat)
    if rat == "NR-SA":
        return _standalone(fields)
    if rat is None:
        return Reading(state=state)
    return _lte(fields, rat, sixteens)


def _lte(fields: Mapping[str, str], rat: str, sixteens: bool) -> Reading:
    nr = rat == "NR-NSA"
    return Reading(
        rat=rat,
        rsrp_dbm=_level(fields, "lte_rsrp"),
        rsrq_db=_number(fields, -50, 25, "lte_rsrq"),
        sinr_db=_number(fields, -40, 60, "lte_snr", "lte_sinr"),
        rssi_dbm=_number(fields, -130, -10, "lte_rssi"),
        plmn=_network(fields),
        tac=_area(fields, 0xFFFF),
        eci=_eci(fields),
        pci=_pci(fields.get("lte_pci", ""), 503, True if sixteens else None),
        earfcn=code(fields.get("wan_active_channel", ""), 0, 262143),
        band=_band(fields, "wan_active_band", "lte_ca_pcell_band", "lte_band"),
        bandwidth_mhz=_bandwidth(fields, 20, "lte_ca_pcell_bandwidth", "bandwidth"),
        nr_rsrp_dbm=_level(fields, "nr5g_rsrp", "Z5g_rsrp") if nr else None,
        nr_rsrq_db=_number(fields, -50, 25, "nr5g_rsrq", "Z5g_rsrq") if nr else None,
        nr_sinr_db=_number(fields, -40, 60, "nr5g_snr", "nr5g_sinr", "Z5g_SINR") if nr else None,
        nr_pci=_pci(fields.get("nr5g_pci", ""), 1007, False) if nr else None,
        nr_arfcn=code(fields.get("nr5g_action_channel", ""), 1, 3279165) if nr else None,
        nr_band=_band(fields, "nr5g_action_band") if nr else None,
    )


def _standalone(fields: Mapping[str, str]) -> Reading:
    cell = fields.get("nr5g_cell_id", "")
    tens = code(cell, 1, 0xFFFFFFFFE)
    sixteens = hexadecimal(cell)
    likely = {one for one in (tens, sixteens) if one is not None and 0 < one < 0xFFFFFFFFF}
    return Reading(
        rat="NR-SA",
        rsrp_dbm=_level(fields, "nr5g_rsrp", "Z5g_rsrp"),
        rsrq_db=_number(fields, -50, 25, "nr5g_rsrq", "Z5g_rsrq"),
        sinr_db=_number(fields, -40, 60, "nr5g_snr", "nr5g_sinr", "Z5g_SINR"),
        rssi_dbm=_number(fields, -130, -10, "nr5g_rssi"),
        plmn=_network(fields),
        tac=_area(fields, 0xFFFFFF),
        eci=likely.pop() if len(likely) == 1 else None,
        pci=_pci(fields.get("nr5g_pci", ""), 1007, False),
        earfcn=code(fields.get("nr5g_action_channel", ""), 1, 3279165),
        band=_band(fields, "nr5g_action_band"),
        bandwidth_mhz=_bandwidth(fields, 400, "nr5g_bandwidth"),
    )


def _older(fields: Mapping[str, str], rat: str) -> Reading:
    """2G and 3G. Their cell's number is not read: nothing says in which base it is printed there."""
    wcdma = rat == "WCDMA"
    return Reading(
        rat=rat,
        rssi_dbm=_number(fields, -130, -10, "rssi"),
        rscp_dbm=_number(fields, -140, -10, "rscp", "rscp_1") if wcdma else None,
        ecno_db=_number(fields, -60, 10, "ecio", "ecio_1") if wcdma else None,
        plmn=_network(fields),
    )


def _number(fields: Mapping[str, str], lowest: float, highest: float, *names: str) -> float | None:
    found = (within(decimal(fields.get(name, "")), lowest, highest) for name in names)
    return next((one for one in found if one is not None), None)


def _level(fields: Mapping[str, str], *names: str) -> float | None:
    """A RSRP. −44 and 0 stand for none on some models; 0 is out of range, and −44 is the end of LTE's own scale."""
    return _number(fields, -157, -45, *names)


def _network(fields: Mapping[str, str]) -> str | None:
    """The registered network; ``mdm_mcc`` and ``mdm_mnc`` are the modem's home and differ when it roams."""
    return plmn(fields.get("rmcc", ""), fields.get("rmnc", ""))


def _eci(fields: Mapping[str, str]) -> int | None:
    """``cell_id``: hexadecimal, as every public reader takes it, unless ``enodeb_id`` or its size says that it is decimal."""
    text = fields.get("cell_id", "")
    readings = [one for one in (hexadecimal(text), whole(text)) if one is not None and 0 < one < 0xFFFFFFF]
    station = fields.get("enodeb_id", "")
    stations = {whole(station), hexadecimal(station)} - {None}
    if stations:
        readings = [one for one in readings if one >> 8 in stations]
    return readings[0] if readings else None


def _pci(text: str, highest: int, sixteens: bool | None) -> int | None:
    """Printed in hexadecimal by some models, in decimal by others. ``sixteens`` None: it is not known which; a letter or a
    reading that cannot be decides, and where both can be it is None."""
    tens, hexes = code(text, 0, highest), hexadecimal(text)
    hexes = hexes if hexes is not None and hexes <= highest else None
    if tens is None or hexes is None or tens == hexes:
        return hexes if tens is None else tens
    return None if sixteens is None else hexes if sixteens else tens


def _area(fields: Mapping[str, str], highest: int) -> int | None:
    """``tac_code`` or ``lac_code``: a letter means hexadecimal, a size decimal; what may be either is None."""
    text = fields.get("tac_code", "") or fields.get("lac_code", "")
    likely = {one for one in (whole(text), hexadecimal(text)) if one is not None and 0 < one < highest - 1}
    return likely.pop() if len(likely) == 1 else None


def _band(fields: Mapping[str, str], *names: str) -> int | None:
    found = (_BAND.match(fields.get(name, "")) for name in names)
    return next((int(match.group(1)) for match in found if match and int(match.group(1))), None)


def _bandwidth(fields: Mapping[str, str], highest: float, *names: str) -> float | None:
    """``20.0``, ``20`` or ``20MHz``."""
    found = (within(decimal(fields.get(name, "").removesuffix("MHz").strip()), 1.4, highest) for name in names)
    return next((one for one in found if one is not None), None)


FIELDS = (
    "model_name,wa_inner_version,network_type,rmcc,rmnc,cell_id,enodeb_id,tac_code,lac_code,rssi,rscp,ecio,lte_rsrp,lte_rsrq,lte_rssi,lte_snr,lte_pci,"
    "wan_active_band,wan_active_channel,lte_band,lte_ca_pcell_band,lte_ca_pcell_bandwidth,bandwidth,"
    "Z5g_rsrp,Z5g_rsrq,Z5g_SINR,nr5g_rsrp,nr5g_rsrq,nr5g_snr,nr5g_rssi,nr5g_pci,nr5g_cell_id,nr5g_action_band,"
    "nr5g_action_channel,nr5g_bandwidth"
)
"""What is asked for in one request; names that a model does not know are left out or empty in its answer."""

# The Referer, without which every field is empty, is the transport's. Never known by what an AT port says, unless it is named so; a web
# server is known by which family's pages it answers.
DRIVER = Driver(
    "zte_web",
    poll=(f"GET /goform/goform_get_cmd_process?multi_data=1&isTest=false&cmd={FIELDS}",),
    decode=decode,
    knows=("zte web",),
    setup=(),
    transport="http",
    fault=fault,
    reboot_command="POST /goform/goform_set_cmd_process isTest=false&goformId=REBOOT_DEVICE",
)
