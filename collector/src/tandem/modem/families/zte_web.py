"""ZTE's ``/goform/goform_get_cmd_process?multi_data=1``: one flat JSON object of strings.

Source: public readers of the web interface of MF79U, MF283, MC801A, MC888 and U50, and answers of theirs as published. What a
model does not know is an empty string; names differ between models, so several are tried for a quantity.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from tandem.at.dialogue import Response
from tandem.modem.base import Driver, Identity, Reading, device
from tandem.modem.scales import (
    code,
    decimal,
    either_base,
    filled,
    hexadecimal,
    labelled,
    technology_named,
    whole,
    with_secondary,
    within,
)

MAX_CHARACTERS = 65536

_STATES = {"no service": "no_service", "no_service": "no_service", "limited service": "limited",
           "limited_service": "limited", "searching": "searching"}  # fmt: skip
_HEXADECIMAL_MODELS = re.compile(r"\s*U[0-9]{2}|.*MC[0-9]{3}", re.IGNORECASE)
"""Models whose PCI is known to be printed in hexadecimal, in a model's name or a firmware's."""


def fields_of(response: Response) -> dict[str, str]:
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
    found = fields_of(response)
    if not found:
        return "not_json" if response.lines else None
    return None if any(found.values()) else "referer_missing"


def decode(responses: Sequence[Response], identity: Identity) -> Reading:
    """What the answers tell together. A registered modem's state is ``unknown``: no field tells whether RRC is connected."""
    fields: dict[str, str] = {}
    for response in responses:
        fields |= {name: value for name, value in fields_of(response).items() if value}
    # −44 and 0 stand for no RSRP on some models; 0 is out of range, and −44 is the end of LTE's own scale.
    none = [name for name in fields if name.endswith("rsrp") and within(decimal(fields[name]), -157, -45) is None]
    fields = {name: text for name, text in fields.items() if name not in none}
    word = fields.get("network_type", "")
    rat = technology_named(word) or ("LTE" if "lte_rsrp" in fields else None)
    names = (identity.model, fields.get("model_name", ""), fields.get("wa_inner_version", ""))
    sixteens = any(_HEXADECIMAL_MODELS.match(name) for name in names)
    if rat in ("GSM", "WCDMA"):  # their cell's number is not read: nothing says in which base it is printed there
        return labelled(rat, _WCDMA if rat == "WCDMA" else _GSM, fields)
    if rat is None:
        return Reading(state=_STATES.get(word.lower(), "unknown"))
    nr = labelled("NR-SA", _NR, fields, pci=_pci(fields.get("nr5g_pci", ""), 1007, False))
    area = fields.get("tac_code", "") or fields.get("lac_code", "")
    if rat == "NR-SA":
        ids = {"tac": either_base(area, 0xFFFFFE), "eci": either_base(fields.get("nr5g_cell_id", ""), 0xFFFFFFFFF)}
        return filled(nr, labelled(rat, _STANDALONE, fields, **ids))
    pci = _pci(fields.get("lte_pci", ""), 503, True if sixteens else None)
    reading = labelled("LTE", _LTE, fields, tac=either_base(area, 0xFFFE), eci=_eci(fields), pci=pci)
    return with_secondary(reading, nr) if rat == "NR-NSA" else reading


_GSM = "mcc=rmcc mnc=rmnc rssi_dbm=rssi"
"""The registered network; ``mdm_mcc`` and ``mdm_mnc`` are the modem's home and differ when it roams."""
_WCDMA = f"{_GSM} rscp_dbm=rscp|rscp_1 ecno_db=ecio|ecio_1"
_LTE = (
    "mcc=rmcc mnc=rmnc rsrp_dbm=lte_rsrp rsrq_db=lte_rsrq sinr_db=lte_snr|lte_sinr rssi_dbm=lte_rssi earfcn=wan_active_channel"
    " band=wan_active_band|lte_ca_pcell_band|lte_band bandwidth_mhz=lte_ca_pcell_bandwidth|bandwidth"
)
_NR = (
    "rsrp_dbm=nr5g_rsrp|Z5g_rsrp rsrq_db=nr5g_rsrq|Z5g_rsrq sinr_db=nr5g_snr|nr5g_sinr|Z5g_SINR earfcn=nr5g_action_channel"
    " band=nr5g_action_band"
)
_STANDALONE = "mcc=rmcc mnc=rmnc rssi_dbm=nr5g_rssi bandwidth_mhz=nr5g_bandwidth"


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


FIELDS = (
    "model_name,wa_inner_version,network_type,rmcc,rmnc,cell_id,enodeb_id,tac_code,lac_code,rssi,rscp,ecio,lte_rsrp,lte_rsrq,lte_rssi,lte_snr,lte_pci,"
    "wan_active_band,wan_active_channel,lte_band,lte_ca_pcell_band,lte_ca_pcell_bandwidth,bandwidth,"
    "Z5g_rsrp,Z5g_rsrq,Z5g_SINR,nr5g_rsrp,nr5g_rsrq,nr5g_snr,nr5g_rssi,nr5g_pci,nr5g_cell_id,nr5g_action_band,"
    "nr5g_action_channel,nr5g_bandwidth"
)
"""What is asked for in one request; names that a model does not know are left out or empty in its answer."""

# The Referer, without which every field is empty, is the transport's. Never known by what an AT port says, unless it is named so; a web
# server is known by which family's pages it answers.
# These have a network function only (CDC Ethernet or RNDIS) and are routers at 192.168.0.1.
DRIVER = Driver(
    "zte_web",
    poll=(f"GET /goform/goform_get_cmd_process?multi_data=1&isTest=false&cmd={FIELDS}",),
    decode=decode,
    knows=("zte web",),
    setup=(),
    transport="http",
    fault=fault,
    reboot_command="POST /goform/goform_set_cmd_process isTest=false&goformId=REBOOT_DEVICE",
    devices=(
        # 19d2:1403 is the same stick with RNDIS.
        device(
            "19d2:1405",
            "MF823, MF831, MF79U, MF833V on web firmware",
            network=0,
            switched_from="1225",
            mode_switch="usb_modeswitch by its own data file; some firmware answers a GET of /goform/goform_process?goformId=MODE_SWITCH",
            address="192.168.0.1",
        ),
    ),
)
