"""Socket buffers of a measured connection: asked for by who receives and who sends the payload, whichever end that is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tandem.experiment.parameters import Parameter

BUFFERS = (
    Parameter("receive_buffer_bytes", "int", "SO_RCVBUF at the payload's receiver; by default tuned", "B", minimum=4096, maximum=2**30),
    Parameter("send_buffer_bytes", "int", "SO_SNDBUF at the payload's sender; by default tuned", "B", minimum=4096, maximum=2**30),
)  # fmt: skip
"""An experiment that moves bytes takes these among its parameters. The kernel doubles what is asked and bounds it by
``net.core.rmem_max`` and ``wmem_max``: what came of it is told by both ends."""


@dataclass(frozen=True, slots=True)
class Buffers:
    """As asked, in bytes; None leaves the kernel's automatic tuning on. An accepted connection's window scale is its listener's, so the
    endpoint's receive buffer holds the window down, but cannot raise it."""

    receive_bytes: int | None = None
    send_bytes: int | None = None

    def here(self, *, sends: bool) -> int | None:
        """This end's part."""
        return self.send_bytes if sends else self.receive_bytes

    def there(self, *, sends: bool) -> dict[str, int]:
        """The endpoint's part, as options of a session (``server/spec/endpoint-api.md``). ``sends``: whether the endpoint does."""
        name, asked = ("send_buffer_bytes", self.send_bytes) if sends else ("receive_buffer_bytes", self.receive_bytes)
        return {} if asked is None else {name: asked}

    def told(self) -> dict[str, int | None]:
        """For the run's ``environment``."""
        return {"receive_buffer_asked_bytes": self.receive_bytes, "send_buffer_asked_bytes": self.send_bytes}


def read_buffers(checked: Mapping[str, Any]) -> Buffers:
    """From parameters that are checked one by one."""
    return Buffers(checked["receive_buffer_bytes"], checked["send_buffer_bytes"])
