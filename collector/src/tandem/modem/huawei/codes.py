"""The codes of Huawei's ^HCSQ, and the lower edges of their bins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tandem.modem.scalars import at, code


@dataclass(frozen=True)
class Codes:
    """One ^HCSQ: the mode, its codes as read, and their quantities in dBm and dB."""

    mode: str = ""
    rssi_code: int | None = None
    rsrp_code: int | None = None
    sinr_code: int | None = None
    rsrq_code: int | None = None
    rscp_code: int | None = None
    ecno_code: int | None = None

    @property
    def rssi_dbm(self) -> float | None:
        """−121 + v: 0 is below −120 dBm, 96 from −25 dBm up."""
        return _scaled(self.rssi_code, 1, -121)

    @property
    def rsrp_dbm(self) -> float | None:
        """−141 + v: 0 is below −140 dBm, 97 from −44 dBm up."""
        return _scaled(self.rsrp_code, 1, -141)

    @property
    def sinr_db(self) -> float | None:
        """−20.2 + v/5: 0 is below −20 dB, 251 from 30 dB up."""
        return _scaled(self.sinr_code, 0.2, -20.2)

    @property
    def rsrq_db(self) -> float | None:
        """−20 + v/2: 0 is below −19.5 dB, 34 from −3 dB up."""
        return _scaled(self.rsrq_code, 0.5, -20)

    @property
    def rscp_dbm(self) -> float | None:
        """−121 + v, as RSSI."""
        return _scaled(self.rscp_code, 1, -121)

    @property
    def ecno_db(self) -> float | None:
        """−32.5 + v/2: 0 is below −32 dB, 65 from 0 dB up."""
        return _scaled(self.ecno_code, 0.5, -32.5)


_COLUMNS = {
    "LTE": ("rssi_code", "rsrp_code", "sinr_code", "rsrq_code"),
    "NR": ("rsrp_code", "sinr_code", "rsrq_code"),
    "WCDMA": ("rssi_code", "rscp_code", "ecno_code"),
    "GSM": ("rssi_code",),
}
_HIGHEST = {"rssi_code": 96, "rsrp_code": 97, "sinr_code": 251, "rsrq_code": 34, "rscp_code": 96, "ecno_code": 65}


def codes(found: Sequence[str]) -> Codes:
    """``^HCSQ: "<mode>",<codes>``. 255, and what is beyond a table, is not known."""
    mode = at(found, 0).upper()
    read = {name: code(at(found, i), 0, _HIGHEST[name]) for i, name in enumerate(_COLUMNS.get(mode, ()), 1)}
    return Codes(mode, **read)


def _scaled(found: int | None, step: float, offset: float) -> float | None:
    return None if found is None else round(offset + step * found, 1)
