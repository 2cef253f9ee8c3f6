"""One gadget in the kernel: made, plugged in and out, taken away."""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tandem_bench.gadget import actions
from tandem_bench.gadget.controllers import Controller
from tandem_bench.gadget.description import CONTROLLERS, Endpoints, Function, Gadget, GadgetError, fits


class Device:
    """``make`` first, ``remove`` last. The network device stays while the gadget is unplugged: only its carrier goes."""

    def __init__(self, gadget: Gadget, controller: Controller, root: Path = actions.ROOT) -> None:
        fits(gadget, controller.driver)
        self.gadget, self.controller, self._root = gadget, controller, root
        self.plugged = False

    @property
    def endpoints(self) -> tuple[Endpoints, Endpoints | None]:
        """What it needs, and what the controller has (None: not known)."""
        return self.gadget.endpoints, CONTROLLERS.get(self.controller.driver)

    def make(self) -> None:
        """Describe it to the kernel, not yet plugged in. GadgetError with nothing left behind."""
        made: list[actions.Action] = []
        try:
            for action in actions.build(self.gadget):
                actions.perform([action], self._root)
                made.append(action)
        except GadgetError:
            there = {action.path for action in made}
            actions.perform([undo for undo in actions.teardown(self.gadget) if undo.path in there], self._root)
            raise

    def plug(self) -> None:
        """Bind it to the controller; the host sees a new device."""
        if not self.plugged:
            with _alone(self._root):
                actions.perform([actions.bind(self.gadget, self.controller.name)], self._root)
            self.plugged = True

    def unplug(self) -> None:
        """Unbind it; whoever has its ports open, on either side, sees a hang-up."""
        if self.plugged:
            actions.perform([actions.unbind(self.gadget)], self._root)
            self.plugged = False

    def remove(self) -> None:
        """Unplug it and take its description away."""
        self.unplug()
        actions.perform(actions.teardown(self.gadget), self._root)

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


def clear(names: list[str], root: Path = actions.ROOT) -> list[str]:
    """Take away the gadgets of these names whatever state a killed bench left them in; those that were there."""
    found = []
    for name in names:
        folder = root / name
        if not folder.is_dir():
            continue
        found.append(name)
        with contextlib.suppress(OSError):  # not bound
            (folder / "UDC").write_text("\n", encoding="ascii")
        configuration = folder / actions.CONFIGURATION
        links = [path for path in configuration.iterdir() if path.is_symlink()] if configuration.is_dir() else []
        for link in links:
            link.unlink()
        functions = sorted((folder / "functions").iterdir()) if (folder / "functions").is_dir() else []
        for path in (configuration / actions.LANGUAGE, configuration, *functions, folder / actions.LANGUAGE, folder):
            if path.is_dir():
                path.rmdir()
    return found
