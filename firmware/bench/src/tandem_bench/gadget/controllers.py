"""The machine's USB device controllers, as /sys/class/udc shows them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tandem_bench.gadget.actions import ROOT
from tandem_bench.gadget.description import GadgetError

CLASS = Path("/sys/class/udc")


@dataclass(frozen=True, slots=True)
class Controller:
    """``driver``: name of the kernel's driver. ``taken_by``: the gadget that is bound to it, None when it is free."""

    name: str
    driver: str
    taken_by: str | None


def controllers(folder: Path = CLASS, root: Path = ROOT) -> list[Controller]:
    """All there are, by name."""
    bound = {}
    for gadget in sorted(root.iterdir()) if root.is_dir() else []:
        try:
            bound[(gadget / "UDC").read_text(encoding="ascii").strip()] = gadget.name
        except OSError:
            continue  # being made or taken away just now: it is bound to nothing
    found = []
    for entry in sorted(folder.iterdir()) if folder.is_dir() else []:
        link = entry / "device" / "driver"
        driver = link.resolve().name if link.exists() else entry.name.partition(".")[0]
        found.append(Controller(entry.name, driver, bound.get(entry.name)))
    return found


def choose(wanted: str | None, found: list[Controller]) -> Controller:
    """The one named ``wanted``, or the first that is free; GadgetError when there is none."""
    if not found:
        raise GadgetError(
            "no USB device controller; hint: on a Raspberry Pi dtoverlay=dwc2,dr_mode=peripheral, in a VM modprobe dummy_hcd num=2"
        )
    if wanted is None:
        free = next((one for one in found if one.taken_by is None), None)
        if free is None:
            raise GadgetError(f"every controller is taken: {', '.join(f'{c.name} by {c.taken_by}' for c in found)}")
        return free
    named = next((one for one in found if one.name == wanted), None)
    if named is None:
        raise GadgetError(f"no controller {wanted!r}; there are: {', '.join(c.name for c in found)}")
    if named.taken_by is not None:
        raise GadgetError(f"{wanted} is taken by the gadget {named.taken_by}; hint: tandem-bench gadget clear")
    return named
