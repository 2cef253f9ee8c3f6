"""ModemManager as a table: what it answers, what was asked of it, and what it broadcasts."""

import itertools
import time
from collections.abc import Sequence
from typing import Any

from tandem.modem.mm_bus import LOCATION, MODEM, MODEM_3GPP, ROOT, SIGNAL, Call, Refused, Signal

PATH = f"{ROOT}/Modem/4"
DEVICE = "/sys/devices/platform/usb1/1-1/1-1.2"


class FakeBus:
    """A modem, registered on LTE. Change ``properties`` and ``answers`` (by member: a value, a Refused, or None: no reply)."""

    def __init__(self) -> None:
        self.properties: dict[str, dict[str, Any]] = {
            MODEM: {
                "Device": DEVICE, "State": 8, "AccessTechnologies": 1 << 14, "Manufacturer": "QUALCOMM", "Model": "EM7455",
                "Revision": "1", "Sim": f"{ROOT}/SIM/0", "UnlockRequired": 1, "UnlockRetries": {}, "Bearers": [],
            },
            MODEM_3GPP: {"RegistrationState": 1, "OperatorCode": "24405"},
            SIGNAL: {"Rate": 1, "Lte": {"rsrp": -97.0, "rsrq": -10.0, "snr": 11.5, "rssi": -67.0}},
            LOCATION: {"Enabled": 1, "SignalsLocation": False},
        }  # fmt: skip
        self.answers: dict[str, Any] = {
            "GetLocation": {1: "244,05,0,1902E01,1A2B"},
            "GetCellInfo": refused("Unsupported"),
        }
        self.calls: list[Call] = []
        self.broadcasts: list[Signal] = []
        self.closed = False
        self._numbers = itertools.count(1)
        self._replies: dict[int, Any] = {}

    def begin(self, call: Call) -> int:
        number = next(self._numbers)
        self.calls.append(call)
        self._replies[number] = self._answer(call)
        return number

    def _answer(self, call: Call) -> Any:
        if call.member in self.answers:
            return self.answers[call.member]
        if call.member == "GetManagedObjects":
            return {PATH: self.properties}
        if call.member == "GetAll":
            if call.path != PATH or call.body[0] not in self.properties:
                return refused("UnknownMethod", "org.freedesktop.DBus.Error")
            return dict(self.properties[call.body[0]])
        return ()

    def outcome(self, number: int) -> Any:
        return self._replies.pop(number) if self._replies.get(number) is not None else None

    def forget(self, number: int) -> None:
        self._replies.pop(number, None)

    def wait(self, until: float) -> bool:
        time.sleep(max(0.0, until - time.monotonic()))
        return False

    def signals(self) -> Sequence[Signal]:
        taken, self.broadcasts = self.broadcasts, []
        return taken

    def close(self) -> None:
        self.closed = True

    def asked(self, member: str) -> list[Call]:
        return [call for call in self.calls if call.member == member]


def refused(name: str, where: str = "org.freedesktop.ModemManager1.Error.Core") -> Refused:
    return Refused(f"{where}.{name}", "as it says")
