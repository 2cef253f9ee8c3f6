"""Options of a measured connection's sockets: asked for by who receives and who sends the payload, whichever end that is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tandem.experiment.parameters import Parameter
from tandem.mptcp import sockets

SOCKET_OPTIONS = (
    Parameter("receive_buffer_bytes", "int", "SO_RCVBUF at the payload's receiver; by default tuned", "B", minimum=4096, maximum=2**30),
    Parameter("send_buffer_bytes", "int", "SO_SNDBUF at the payload's sender; by default tuned", "B", minimum=4096, maximum=2**30),
    Parameter("congestion_control", "str", "at the sender; by default the system's"),
)  # fmt: skip
"""An experiment that moves bytes takes these among its parameters. The kernel doubles what is asked of a buffer and bounds it by
``net.core.rmem_max`` and ``wmem_max``: what came of it is told by both ends."""


@dataclass(frozen=True, slots=True)
class SocketOptions:
    """As asked; None leaves it to the kernel. An accepted connection's window scale is its listener's, so the endpoint's receive buffer
    holds the window down, but cannot raise it."""

    receive_buffer_bytes: int | None = None
    send_buffer_bytes: int | None = None
    congestion_control: str | None = None

    def here(self, *, sends: bool, both_families: bool = False, by_orders: bool = False) -> sockets.Options:
        """This end's part; ``sends``: whether this end does."""
        return sockets.Options(
            receive_buffer_bytes=None if sends else self.receive_buffer_bytes,
            send_buffer_bytes=self.send_buffer_bytes if sends else None,
            congestion_control=self.congestion_control if sends else None,
            both_families=both_families,
            by_orders=by_orders,
        )

    def there(self, *, sends: bool) -> dict[str, dict[str, Any]]:
        """The endpoint's part, as a session is asked for it (docs/reference/endpoint-api.md): ``options``, or nothing. ``sends``:
        whether the endpoint does."""
        asked = (
            {"send_buffer_bytes": self.send_buffer_bytes, "congestion_control": self.congestion_control}
            if sends
            else {"receive_buffer_bytes": self.receive_buffer_bytes}
        )
        given = {name: value for name, value in asked.items() if value is not None}
        return {"options": given} if given else {}

    def told(self) -> dict[str, Any]:
        """For the run's ``environment``."""
        return {
            "receive_buffer_asked_bytes": self.receive_buffer_bytes,
            "send_buffer_asked_bytes": self.send_buffer_bytes,
            "congestion_control_asked": self.congestion_control,
        }


def read_socket_options(checked: Mapping[str, Any]) -> SocketOptions:
    """From parameters that are checked one by one."""
    return SocketOptions(
        checked["receive_buffer_bytes"], checked["send_buffer_bytes"], checked["congestion_control"] or None
    )
