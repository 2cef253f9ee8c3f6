"""Which of the two links: ours between TUN devices, or the kernel's netem."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Literal, Protocol, Self

from tandem_bench.link import netem
from tandem_bench.link.build import LinkMissingError, find_binary
from tandem_bench.link.emulator import LinkProcess, LinkSpec, Quantity, Scope
from tandem_bench.link.netem import NetemLink

Backend = Literal["tun", "netem"]
CHOICES = ("auto", "tun", "netem")


class Link(Protocol):
    """A running link. Errors are LinkError."""

    @property
    def pid(self) -> int:
        """Of the process that works for it."""
        ...

    def start(self) -> Self:
        """Return when both devices are up and shaped."""
        ...

    def set(self, scope: Scope, quantity: Quantity, value: float | str) -> None:
        """Let it be so until it is cleared."""
        ...

    def clear(self, scope: Scope, quantity: Quantity) -> None:
        """Let the timeline speak again."""
        ...

    def poll(self) -> int | None:
        """Exit status when it has ended by itself."""
        ...

    def stop(self) -> int | None:
        """End it and its devices."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def choose(wish: str) -> Backend:
    """``tun``, ``netem``, or for ``auto`` the first of them that works here: tun, which is exact and keeps a log.

    LinkMissingError, one line with the mend, when the one asked for cannot work. Trying netem needs root.
    """
    if wish != "netem":
        try:
            find_binary()
        except LinkMissingError as error:
            missing = str(error)
        else:
            if Path("/dev/net/tun").exists():
                return "tun"
            missing = "/dev/net/tun is missing; hint: modprobe tun"
        if wish == "tun":
            raise LinkMissingError(missing)
    why = netem.lack()
    if why is None:
        return "netem"
    raise LinkMissingError(why if wish == "netem" else f"{missing}; nor netem: {why}")


def make(spec: LinkSpec, backend: Backend) -> Link:
    """A link, not started."""
    return LinkProcess(spec) if backend == "tun" else NetemLink(spec)
