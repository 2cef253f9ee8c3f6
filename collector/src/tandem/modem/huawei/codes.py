"""The codes of Huawei's ^HCSQ, and the lower edges of their bins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tandem.modem.bins import as_read, scaled
from tandem.modem.scalars import at


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
        return scaled(self.rssi_code, 1, -121, 96)

    @property
    def rsrp_dbm(self) -> float | None:
        """−141 + v: 0 is below −140 dBm, 97 from −44 dBm up."""
        return scaled(self.rsrp_code, 1, -141, 97)

    @property
    def sinr_db(self) -> float | None:
        """−20.2 + v/5: 0 is below −20 dB, 251 from 30 dB up."""
        return scaled(self.sinr_code, 0.2, -20.2, 251)

    @property
    def rsrq_db(self) -> float | None:
        """−20 + v/2 of LTE: 0 is below −19.5 dB, 34 from −3 dB up. NR's scale is another, and not known."""
        return None if self.mode == "NR" else scaled(self.rsrq_code, 0.5, -20, 34)

    @property
    def rscp_dbm(self) -> float | None:
        """−121 + v, as RSSI."""
        return scaled(self.rscp_code, 1, -121, 96)

    @property
    def ecno_db(self) -> float | None:
        """−32.5 + v/2: 0 is below −32 dB, 65 from 0 dB up."""
        return scaled(self.ecno_code, 0.5, -32.5, 65)


_COLUMNS = {
    "LTE": ("rssi_code", "rsrp_code", "sinr_code", "rsrq_code"),
    "NR": ("rsrp_code", "sinr_code", "rsrq_code"),
    "WCDMA": ("rssi_code", "rscp_code", "ecno_code"),
    "GSM": ("rssi_code",),
}


def codes(found: Sequence[str]) -> Codes:
    """``^HCSQ: "<mode>",<codes>``. 255 is not known; what is beyond a table is a code without a quantity."""
    mode = at(found, 0).upper()
    read = {name: as_read(at(found, i)) for i, name in enumerate(_COLUMNS.get(mode, ()), 1)}
    return Codes(mode, **read)
