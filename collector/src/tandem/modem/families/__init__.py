"""The drivers there are: every module beside this one has its ``DRIVER``."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from tandem.modem.base import Driver, Identity

FALLBACK = "generic"
"""The family that is asked last; it takes every modem."""

AUTO = "auto"
"""In a configuration: let the modem's own answers decide."""


class UnknownDriver(ValueError):  # noqa: N818 - names what is wrong
    """A configuration names a family that there is not."""


@cache
def drivers() -> Mapping[str, Driver]:
    """All drivers by name, sorted. The module's name is the driver's name."""
    found: dict[str, Driver] = {}
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        found[module.name] = importlib.import_module(f"{__name__}.{module.name}").DRIVER
    return dict(sorted(found.items()))


def check_name(name: str) -> None:
    """UnknownDriver unless ``name`` is ``auto`` or a family's name."""
    if name != AUTO and name not in drivers():
        raise UnknownDriver(f"unknown driver {name!r}; known: {', '.join((AUTO, *drivers()))}")


def check_transport(name: str, transport: str) -> None:
    """UnknownDriver when the family ``name`` cannot be asked by ``transport`` (``at`` or ``http``)."""
    check_name(name)
    if name != AUTO and drivers()[name].transport != transport:
        other = 'a web server: write port = "http://192.168.8.1"' if transport == "at" else "an AT port"
        raise UnknownDriver(f"the driver {name!r} asks {other}")


def choose(name: str, identity: Identity) -> Driver:
    """The driver called ``name``; with ``auto`` the first that knows the modem, else the standard's."""
    check_name(name)
    known = drivers()
    if name != AUTO:
        return known[name]
    return next((d for d in known.values() if d.name != FALLBACK and d.matches(identity)), known[FALLBACK])
