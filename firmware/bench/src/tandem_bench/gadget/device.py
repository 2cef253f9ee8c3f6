"""Gadgets in the kernel, by configfs (Documentation/usb/gadget_configfs): controllers found; a gadget made, plugged in and out, removed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tandem_bench.gadget.description import Function, Gadget, GadgetError, fits

Verb = Literal["mkdir", "write", "link", "unlink", "rmdir"]
ROOT = Path("/sys/kernel/config/usb_gadget")
CLASS = Path("/sys/class/udc")
LANGUAGE = "strings/0x409"
"""US English: the only language of the strings."""
CONFIGURATION = "configs/c.1"


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


# --- a gadget as actions, in the order that the kernel wants: pure but for ``perform`` ---------------------------------


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
            raise GadgetError(f"{path}: {error.strerror}{_hint(action, error)}") from None


def _hint(action: Action, error: OSError) -> str:
    if action.verb == "mkdir" and isinstance(error, FileExistsError):
        return "; hint: another bench has this gadget, or one was killed: tandem-bench gadget clear"
    if action.verb == "mkdir":
        return "; hint: modprobe libcomposite, mount configfs, be root"
    if action.path.endswith("/UDC"):
        return "; hint: a controller that is free, with endpoints enough (tandem-bench gadget list)"
    return ""


# --- one gadget ------------------------------------------------------------------------------------------------------


class Device:
    """``make`` first, ``remove`` last. The network device stays while the gadget is unplugged: only its carrier goes."""

    def __init__(self, gadget: Gadget, controller: Controller, root: Path = ROOT) -> None:
        fits(gadget, controller.driver)
        self.gadget, self.controller, self._root = gadget, controller, root
        self.plugged = False

    def make(self) -> None:
        """Describe it to the kernel, not yet plugged in. GadgetError with nothing left behind."""
        made: list[Action] = []
        try:
            for action in build(self.gadget):
                perform([action], self._root)
                made.append(action)
        except GadgetError:
            there = {action.path for action in made}
            perform([undo for undo in teardown(self.gadget) if undo.path in there], self._root)
            raise

    def plug(self) -> None:
        """Bind it to the controller; the host sees a new device."""
        if not self.plugged:
            with _alone(self._root):
                perform([bind(self.gadget, self.controller.name)], self._root)
            self.plugged = True

    def unplug(self) -> None:
        """Unbind it; whoever has its ports open, on either side, sees a hang-up."""
        if self.plugged:
            perform([unbind(self.gadget)], self._root)
            self.plugged = False

    def remove(self) -> None:
        """Unplug it and take its description away."""
        self.unplug()
        perform(teardown(self.gadget), self._root)

    def terminals(self) -> tuple[Path, ...]:
        """Our ends of its AT ports, in order."""
        return tuple(Path(f"/dev/ttyGS{self._attribute(port, 'port_num')}") for port in self.gadget.ports)

    def interface(self) -> str | None:
        """Our network device, once it was plugged in; None when it has none."""
        network = self.gadget.network
        return None if network is None else self._attribute(network, "ifname")

    def move_interface(self, netns_pid: int) -> str | None:
        """Put our network device into the namespace of that process; its name."""
        name = self.interface()
        if name is not None:
            done = subprocess.run(
                ["ip", "link", "set", name, "netns", str(netns_pid)], capture_output=True, text=True, check=False
            )
            if done.returncode != 0:
                raise GadgetError(f"{name} cannot be moved: {done.stderr.strip()}")
        return name

    def _attribute(self, function: Function, name: str) -> str:
        file = self._root / self.gadget.name / "functions" / function.folder / name
        try:
            return file.read_text(encoding="ascii").strip()
        except OSError as error:
            raise GadgetError(f"{file}: {error.strerror}") from None


@contextlib.contextmanager
def _alone(root: Path) -> Iterator[None]:
    """No other process binds a gadget meanwhile. The kernel's ACM and ECM functions fill in one set of descriptors for all
    gadgets and copy it: two that are bound at once get each other's interface numbers and endpoints (seen with kernel 6.1)."""
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def clear(names: list[str], root: Path = ROOT) -> list[str]:
    """Take away the gadgets of these names whatever state a killed bench left them in; those that were there."""
    found = []
    for name in names:
        folder = root / name
        if not folder.is_dir():
            continue
        found.append(name)
        with contextlib.suppress(OSError):  # not bound
            (folder / "UDC").write_text("\n", encoding="ascii")
        configuration = folder / CONFIGURATION
        links = [path for path in configuration.iterdir() if path.is_symlink()] if configuration.is_dir() else []
        for link in links:
            link.unlink()
        functions = sorted((folder / "functions").iterdir()) if (folder / "functions").is_dir() else []
        for path in (configuration / LANGUAGE, configuration, *functions, folder / LANGUAGE, folder):
            if path.is_dir():
                path.rmdir()
    return found
