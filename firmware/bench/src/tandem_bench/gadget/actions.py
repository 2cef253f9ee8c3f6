"""A gadget as actions on configfs, in the order that the kernel wants (Documentation/usb/gadget_configfs). Pure but for ``perform``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tandem_bench.gadget.description import Gadget, GadgetError

Verb = Literal["mkdir", "write", "link", "unlink", "rmdir"]
ROOT = Path("/sys/kernel/config/usb_gadget")
LANGUAGE = "strings/0x409"
"""US English: the only language of the strings."""
CONFIGURATION = "configs/c.1"


@dataclass(frozen=True, slots=True)
class Action:
    """``path`` is relative to the root. ``value``: the text to write, or the path (relative to the root) that a link leads to."""

    verb: Verb
    path: str
    value: str = ""


def build(gadget: Gadget) -> list[Action]:
    """Everything but the binding to a controller."""
    base = gadget.name
    actions = [Action("mkdir", base)]
    device = {
        "idVendor": f"0x{gadget.ids.vendor:04x}",
        "idProduct": f"0x{gadget.ids.product:04x}",
        "bcdDevice": "0x0100",
        "bcdUSB": "0x0200",
        # Interface association: the host must take two interfaces for one function (USB ECN of 2003).
        "bDeviceClass": "0xef",
        "bDeviceSubClass": "0x02",
        "bDeviceProtocol": "0x01",
    }
    actions += [Action("write", f"{base}/{name}", value) for name, value in device.items()]
    actions.append(Action("mkdir", f"{base}/{LANGUAGE}"))
    texts = {"serialnumber": gadget.serial, "manufacturer": gadget.ids.manufacturer, "product": gadget.ids.model}
    actions += [Action("write", f"{base}/{LANGUAGE}/{name}", value) for name, value in texts.items()]
    for function in gadget.functions:
        folder = f"{base}/functions/{function.folder}"
        actions.append(Action("mkdir", folder))
        if function == gadget.network:
            actions += [
                Action("write", f"{folder}/host_addr", gadget.host_mac),
                Action("write", f"{folder}/dev_addr", gadget.device_mac),
                Action("write", f"{folder}/ifname", gadget.interface),
            ]
    actions += [
        Action("mkdir", f"{base}/{CONFIGURATION}"),
        Action("mkdir", f"{base}/{CONFIGURATION}/{LANGUAGE}"),
        Action("write", f"{base}/{CONFIGURATION}/{LANGUAGE}/configuration", "AT and network"),
        Action("write", f"{base}/{CONFIGURATION}/MaxPower", str(gadget.max_power_ma)),
    ]
    # Interfaces are numbered in the order of these links: the AT ports get 0 and 2.
    actions += [
        Action("link", f"{base}/{CONFIGURATION}/{function.folder}", f"{base}/functions/{function.folder}")
        for function in gadget.functions
    ]
    return actions


def teardown(gadget: Gadget) -> list[Action]:
    """Undo ``build``, in reverse; configfs removes attributes by itself."""
    base = gadget.name
    backwards = gadget.functions[::-1]
    return [
        *(Action("unlink", f"{base}/{CONFIGURATION}/{function.folder}") for function in backwards),
        Action("rmdir", f"{base}/{CONFIGURATION}/{LANGUAGE}"),
        Action("rmdir", f"{base}/{CONFIGURATION}"),
        *(Action("rmdir", f"{base}/functions/{function.folder}") for function in backwards),
        Action("rmdir", f"{base}/{LANGUAGE}"),
        Action("rmdir", base),
    ]


def bind(gadget: Gadget, controller: str) -> Action:
    """Plug it in."""
    return Action("write", f"{gadget.name}/UDC", controller)


def unbind(gadget: Gadget) -> Action:
    """Pull it out. A line break: an empty write does not reach the kernel."""
    return Action("write", f"{gadget.name}/UDC", "\n")


def perform(actions: Iterable[Action], root: Path = ROOT, remove: Callable[[Path], None] = Path.rmdir) -> None:
    """Carry them out below ``root``. GadgetError with path and reason at the first that the kernel refuses."""
    for action in actions:
        path = root / action.path
        try:
            if action.verb == "mkdir":
                path.mkdir(parents=True)
            elif action.verb == "write":
                path.write_text(action.value, encoding="ascii")
            elif action.verb == "link":
                path.symlink_to(root / action.value)
            elif action.verb == "unlink":
                path.unlink()
            else:
                remove(path)
        except OSError as error:
            raise GadgetError(f"{path}: {error.strerror}{_mend(action, error)}") from None


def _mend(action: Action, error: OSError) -> str:
    if action.verb == "mkdir" and isinstance(error, FileExistsError):
        return "; hint: another bench has this gadget, or one was killed: tandem-bench gadget clear"
    if action.verb == "mkdir":
        return "; hint: modprobe libcomposite, mount configfs, be root"
    if action.path.endswith("/UDC"):
        return "; hint: a controller that is free, with endpoints enough (tandem-bench gadget list)"
    return ""
