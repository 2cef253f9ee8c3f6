"""Numbers, codes and rows in the answers of modems → quantities; None instead of an exception and of what stands for "not known"."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tandem.modem.base import Reading

_WHOLE = re.compile(r"[-+]?[0-9]{1,18}\Z")
_DECIMAL = re.compile(r"(?:[<>]=?)?\s*([-+]?[0-9]{1,9}(?:\.[0-9]{0,9})?)\s*(?:dBm?|MHz)?\Z", re.IGNORECASE)
_HEX = re.compile(r"(?:0[xX])?([0-9A-Fa-f]{1,16})\Z")
_BAND = re.compile(r"(?:.*[A-Za-z _])?([0-9]{1,4})\Z")


def at(values: Sequence[str], index: int) -> str:
    """The value at ``index``; empty when the line is shorter."""
    return values[index] if 0 <= index < len(values) else ""


def whole(text: str) -> int | None:
    return int(text) if _WHOLE.match(text) else None


def decimal(text: str) -> float | None:
    """A decimal number, perhaps with its unit behind it, or before it the sign of the end of a scale (``>=-51dBm``)."""
    match = _DECIMAL.match(text)
    return float(match.group(1)) if match else None


def hexadecimal(text: str) -> int | None:
    """A hexadecimal number, with or without 0x; also when all its digits are decimal ones."""
    match = _HEX.match(text)
    return int(match.group(1), 16) if match else None


def code(text: str, lowest: int, highest: int) -> int | None:
    """A whole number within the codes of a table; None outside (99, 255 and the like mean "not known")."""
    value = whole(text)
    return value if value is not None and lowest <= value <= highest else None


def within(value: float | None, lowest: float, highest: float) -> float | None:
    return value if value is not None and lowest <= value <= highest else None


def first(*found: Any) -> Any:  # noqa: ANN401 - numbers of either kind
    """The first that is there."""
    return next((one for one in found if one is not None), None)


def below_zero(text: str) -> float | None:
    """A level that some print without its sign; it is never zero or above."""
    found = decimal(text)
    return -abs(found) if found else None


def plmn(mcc: str, mnc: str) -> str | None:
    """MCC and MNC as five or six digits (3GPP TS 23.003 clause 2.2). An MNC printed as a number gets its zero back."""
    if re.fullmatch(r"[0-9]{3}", mcc) and re.fullmatch(r"[0-9]{1,3}", mnc) and mcc != "000":
        return mcc + mnc.zfill(2)
    return None


def area_code(found: int | None, highest: int = 0xFFFF) -> int | None:
    """A location or tracking area (``highest`` 0xFFFFFF on 5G); 0, FFFE and FFFF mean none (TS 23.003 clauses 4.1, 19.4.2.3).

    What is too large stays: it is no code for "none", and the schema's check leaves it out and counts it.
    """
    if found is None or found <= 0 or found in (0xFFFE, 0xFFFF, highest - 1, highest):
        return None
    return found


_ALL_ONES = {"GSM": 0xFFFF, "NR-SA": 0xFFFFFFFFF}


def cell_identity(found: int | None, rat: str | None) -> int | None:
    """A cell identity: 16 bits on 2G, 28 on 3G and LTE, 36 on NR-SA; all ones and more mean none."""
    return found if found is not None and 0 <= found < _ALL_ONES.get(rat or "", 0xFFFFFFF) else None


def either_base(text: str, below: int) -> int | None:
    """A number of 1 and more that some print in decimal and others in hexadecimal: a letter means hexadecimal, what would be too great in
    one base is of the other, what may be either is None."""
    possible = {one for one in (whole(text), hexadecimal(text)) if one is not None and 0 < one < below}
    return possible.pop() if len(possible) == 1 else None


_TECHNOLOGIES = {
    "LTE": ("LTE", "4G", "4G+", "LTE-A", "LTE+", "LTE_CA", "LTE-NSA", "LTE_NSA", "FDD LTE", "TDD LTE"),
    "NR-NSA": ("NR5G-NSA", "NSA", "5G_NSA", "ENDC", "EN-DC"),
    "NR-SA": ("NR5G-SA", "NR5G", "SA", "5G_SA", "FDD NR5G", "TDD NR5G"),
    "WCDMA": ("WCDMA", "UMTS", "HSDPA", "HSUPA", "HSPA", "HSPA+", "DC-HSPA+", "3G", "HSDPA/HSUPA"),
    "GSM": ("GSM", "GPRS", "EDGE", "GPRS/EDGE", "2G"),
}
"""``LTE-NSA`` is a cell that could add NR and has not."""


def technology_named(text: str) -> str | None:
    """The technology of a maker's word for it, in any case."""
    word = text.strip().upper()
    return next((rat for rat, words in _TECHNOLOGIES.items() if word in words), None)


# --- scales ----------------------------------------------------------------------------------------------------------

Scale = tuple[float, float, int]
"""Step, offset and highest code of a table whose lowest is 0: the lower edge of a code's bin is offset + step · code."""

CSQ: Scale = (2, -113, 31)
"""+CSQ's RSSI in dBm, 3GPP TS 27.007 clause 8.5."""
CESQ: Mapping[str, Scale] = {
    "rssi_dbm": (1, -111, 63), "rscp_dbm": (1, -121, 96), "ecno_db": (0.5, -24.5, 49), "rsrp_dbm": (1, -141, 97),
    "rsrq_db": (0.5, -20, 34),
}  # fmt: skip
CESQ_NR: Mapping[str, Scale] = {"rsrp_dbm": (1, -157, 126), "rsrq_db": (0.5, -43.5, 126), "sinr_db": (0.5, -23.5, 127)}
"""+CESQ's, clause 8.69, which many makers' own commands print too."""


def scaled(found: int | None, scale: Scale) -> float | None:
    """The quantity of a code, to a tenth and always a float; None outside the table."""
    step, offset, highest = scale
    return None if found is None or not 0 <= found <= highest else round(float(offset) + step * found, 1)


def fifths(found: int | None) -> float | None:
    """SINR in dB as several makers code it: v/5 − 20."""
    return None if found is None else round(found / 5 - 20, 1)


_LTE_MHZ = (1.4, 3.0, 5.0, 10.0, 15.0, 20.0)
_LTE_BLOCKS = (6, 15, 25, 50, 75, 100)
_NR_INDEX = (5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 100.0, 200.0, 400.0)
NR_MHZ = (*_NR_INDEX, 35.0, 45.0)
"""3GPP TS 38.101-1 table 5.3.5-1 and 38.101-2; Qualcomm's index knows neither 35 nor 45."""


def bandwidth_mhz(text: str, how: str = "mhz", nr: bool = False) -> float | None:
    """A channel bandwidth: ``index``, a maker's of LTE (0 to 5) or Qualcomm's of NR (0 to 14); ``blocks`` of LTE (3GPP TS 36.101 table
    5.6-1); ``mhz``, perhaps without a fraction."""
    found = decimal(text)
    index: dict[float, float] = dict(enumerate(_NR_INDEX if nr else _LTE_MHZ))
    blocks: dict[float, float] = dict(zip(_LTE_BLOCKS, _LTE_MHZ, strict=True))
    plain = {round_: width for width in (NR_MHZ if nr else _LTE_MHZ) for round_ in (width, float(int(width)))}
    return None if found is None else {"index": index, "blocks": blocks}.get(how, plain).get(found)


# --- cells -----------------------------------------------------------------------------------------------------------

_LEVELS = {
    "rsrp_dbm": (-157, -30), "rsrq_db": (-50, 25), "sinr_db": (-40, 60), "rssi_dbm": (-130, -10), "rscp_dbm": (-140, -10),
    "ecno_db": (-60, 10),
}  # fmt: skip


def cell(rat: str | None, columns: str, row: Sequence[str], **more: Any) -> Reading:  # noqa: ANN401 - of named
    """The reading of a row: ``columns`` names each column as ``named`` has it, ``-`` one that is not read."""
    return named(rat, dict(zip(columns.split(), (*row, *[""] * len(columns)), strict=False)), **more)


def labelled(rat: str | None, labels: str, answered: Mapping[str, str], **more: Any) -> Reading:  # noqa: ANN401 - as above
    """The reading of labelled texts: ``labels`` has words ``field=label``, or ``field=label|another`` where names differ."""
    texts = {}
    for word in labels.split():
        name, _, mine = word.partition("=")
        texts[name] = next((answered[label] for label in mine.split("|") if answered.get(label)), "")
    return named(rat, texts, **more)


def named(
    rat: str | None,
    texts: Mapping[str, str],
    scales: Mapping[str, Scale] | None = None,
    **more: Any,  # noqa: ANN401 - as above
) -> Reading:
    """A cell of ``rat`` from texts under the names of ``Reading``'s fields; ``more``: fields as they are.

    Areas and cells are hexadecimal, with ``:d`` decimal; channels, PCI and band decimal, with ``:x`` hexadecimal. A level with
    ``:code`` is a code of ``scales``, else of +CESQ's. A bandwidth is in MHz, with ``:index`` or ``:blocks`` as ``bandwidth_mhz`` has it.
    A cell of zeros is what a modem without a cell prints. ``mcc`` and ``mnc`` together, or ``plmn``, are the network.
    """
    found: dict[str, Any] = {"rat": rat}
    nr = rat == "NR-SA"
    tables = scales or (CESQ_NR if nr else CESQ)
    for word, text in texts.items():
        name, _, how = word.partition(":")
        if how == "code":
            number = code(text, 0, 254)
            number = None if number == 99 and name == "rssi_dbm" else number
            found[name.rpartition("_")[0] + "_code"] = number
            found[name] = scaled(number, tables[name]) if name in tables else None
        elif name in _LEVELS:
            found[name] = within(decimal(text), *_LEVELS[name])
        elif name in ("tac", "lac"):
            found[name] = area_code((whole if how == "d" else hexadecimal)(text), 0xFFFFFF if nr else 0xFFFF)
        elif name in ("eci", "ci"):
            found[name] = cell_identity((whole if how == "d" else hexadecimal)(text), rat) or None
        elif name == "pci":
            found[name] = _number(text, how, 0, 1007 if nr else 503)
        elif name == "earfcn":
            found[name] = _number(text, how, *((1, 3279165) if nr else (0, 262143)))
        elif name == "band":
            label = _BAND.match(text)
            found[name] = code(label.group(1), 1, 1024 if nr else 255) if label else None
        elif name == "bandwidth_mhz":
            found[name] = bandwidth_mhz(text, how, nr)
        elif name == "sinr_code":
            found[name] = code(text, -3000, 3000)  # −3276 and −32768 are none
        elif name == "plmn":
            found[name] = plmn(text[:3], text[3:])
    if "mcc" in texts:
        found["plmn"] = plmn(texts["mcc"], texts["mnc"])
    return Reading(**{**found, **more})


def _number(text: str, how: str, lowest: int, highest: int) -> int | None:
    found = (hexadecimal if how == "x" else whole)(text)
    return found if found is not None and lowest <= found <= highest else None


_SECONDARY = ("rsrp_dbm", "rsrq_db", "sinr_db", "rsrp_code", "rsrq_code", "sinr_code", "pci", "band")


def with_secondary(anchor: Reading, nr: Reading) -> Reading:
    """The LTE anchor with the quantities of ``nr``, a standalone cell's, as its secondary cell's: NR-NSA."""
    secondary: dict[str, Any] = {f"nr_{name}": getattr(nr, name) for name in _SECONDARY}
    return replace(anchor, rat="NR-NSA", nr_arfcn=nr.earfcn, plmn=anchor.plmn or nr.plmn, **secondary)


_PARTNERS = {f"{nr}{name}_{unit}": f"{nr}{name}_code" for nr in ("", "nr_") for name, unit in (
    ("rssi", "dbm"), ("rsrp", "dbm"), ("rsrq", "db"), ("sinr", "db"), ("rscp", "dbm"), ("ecno", "db"))}  # fmt: skip
_PARTNERS |= {coded: name for name, coded in _PARTNERS.items()}
"""A quantity and the code it came from: they are filled together or not at all."""


def filled(reading: Reading, further: Reading) -> Reading:
    """The reading, with what it does not have taken from ``further``."""
    missing: dict[str, Any] = {
        name: value
        for name, value in vars(further).items()
        if value is not None and getattr(reading, name) is None and getattr(reading, _PARTNERS.get(name, name)) is None
    }
    return replace(reading, **missing) if missing else reading
