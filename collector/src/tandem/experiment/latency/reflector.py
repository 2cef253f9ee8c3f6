"""What the answer to a session says of the server's reflector (docs/reference/endpoint-api.md)."""

from __future__ import annotations

from dataclasses import dataclass

from tandem.experiment.control import ControlError, Session
from tandem.experiment.latency import clocks


@dataclass(frozen=True, slots=True)
class Reflector:
    """``owner``: the session's id as datagrams have it, 16 bytes; ``clock``: the server's, None where it tells none."""

    port: int
    owner: bytes
    clock: clocks.Clock | None


def reflector_of(session: Session) -> Reflector:
    """The reflector that serves ``session``; ControlError when there is none."""
    told = session.answer.get("reflector")
    if not isinstance(told, dict):
        raise ControlError("the server has no reflector", retry=False)
    port = told.get("port")
    try:
        owner = bytes.fromhex(session.id)
    except ValueError:
        owner = b""
    if not isinstance(port, int) or isinstance(port, bool) or not 0 < port < 65536 or len(owner) != 16:
        raise ControlError("the server's reflector cannot be understood", retry=False)
    return Reflector(port, owner, clocks.read(told.get("clock")))
