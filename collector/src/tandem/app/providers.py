"""Access points as Debian's mobile-broadband-provider-info publishes them: MCC and MNC → the one APN for the internet, where it is one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

FILE = Path("/usr/share/mobile-broadband-provider-info/serviceproviders.xml")


class ProvidersError(OSError):
    """The list cannot be read: one line with its hint."""


@dataclass(frozen=True, slots=True)
class AccessPoint:
    """``user`` and ``password``: as published; None where there is none, or more than one."""

    apn: str
    user: str | None = None
    password: str | None = None


@dataclass(frozen=True, slots=True)
class Published:
    """Of one network: who sells it, and all that its SIMs may connect to the internet with."""

    names: tuple[str, ...] = ()
    access_points: tuple[AccessPoint, ...] = ()

    @property
    def name(self) -> str | None:
        """Where one provider alone sells it."""
        return self.names[0] if len(self.names) == 1 else None

    @property
    def apns(self) -> tuple[str, ...]:
        """Each once."""
        return tuple(dict.fromkeys(one.apn for one in self.access_points))

    @property
    def access_point(self) -> AccessPoint | None:
        """Where there is one APN."""
        if len(self.apns) != 1:
            return None
        keys = set(self.access_points)
        return keys.pop() if len(keys) == 1 else AccessPoint(self.apns[0])


class Providers:
    """The list, read once."""

    def __init__(self, file: Path = FILE) -> None:
        try:
            self._root = ElementTree.parse(file).getroot()  # noqa: S314 - a file of the distribution
        except FileNotFoundError:
            raise ProvidersError(f"{file}: not there; hint: apt install mobile-broadband-provider-info") from None
        except (OSError, ElementTree.ParseError) as error:
            raise ProvidersError(
                f"{file}: {error}; hint: apt install --reinstall mobile-broadband-provider-info"
            ) from error

    def of(self, plmn: str) -> Published:
        """Of a home network, as ``24405``."""
        names: list[str] = []
        points: list[AccessPoint] = []
        for provider in self._root.iter("provider"):
            gsm = provider.find("gsm")
            if gsm is None or plmn not in (f"{n.get('mcc')}{n.get('mnc')}" for n in gsm.findall("network-id")):
                continue
            names.append((provider.findtext("name") or "").strip())
            points.extend(
                AccessPoint(apn.get("value", ""), apn.findtext("username") or None, apn.findtext("password") or None)
                for apn in gsm.findall("apn")
                if any(usage.get("type") == "internet" for usage in apn.findall("usage"))
            )
        return Published(tuple(dict.fromkeys(name for name in names if name)), tuple(p for p in points if p.apn))
