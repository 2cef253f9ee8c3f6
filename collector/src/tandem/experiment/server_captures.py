"""What became of the captures that this process asked the server for: one entry a session, for the run's manifest. Pure but for ``asked``.

The server's answer comes from outside: what is not as the specification says (docs/reference/endpoint-api.md, ``capture``) reads as none.
"""

from __future__ import annotations

from typing import Any

from tandem.schema.manifest import ServerCapture
from tandem.schema.trace import is_sha256, server_capture

asked: dict[str, ServerCapture] = {}
"""By session: told with the result (``base.main``). A session that was never ended by its run keeps what it began with."""

LEFT_OPEN = "the run did not end its session; the server may have kept one"
NO_ANSWER = "the server did not answer when the session ended; it may have kept one"
_LONGEST = 300


def not_made(session: str | None, why: str) -> ServerCapture:
    """The entry of a session without one."""
    return ServerCapture(
        session=session,
        name=None,
        bytes=None,
        sha256=None,
        packets=None,
        packets_dropped=None,
        truncated=False,
        why=" ".join(why.split())[:_LONGEST],
    )


def of_answer(run: str, session: str, answer: dict[str, Any] | None) -> ServerCapture:
    """The entry of a session that was ended. ``answer``: what the server said then, None: nothing."""
    if answer is None:
        return not_made(session, NO_ANSWER)
    told = answer.get("capture")
    if not isinstance(told, dict):
        return not_made(session, "the server made none and does not say why")
    said = told.get("error")
    why = said if isinstance(said, str) else None
    size, sha256 = _count(told.get("bytes")), told.get("sha256")
    if told.get("name") != server_capture(run, session) or size is None or not is_sha256(sha256):
        elsewhere = "the server kept none among the run's files; hint: update the server"
        return not_made(session, why or elsewhere)
    return ServerCapture(
        session=session,
        name=server_capture(run, session),
        bytes=size,
        sha256=str(sha256),
        packets=_count(told.get("packets")),
        packets_dropped=_count(told.get("packets_dropped")),
        truncated=told.get("truncated") is True,
        why=None if why is None else " ".join(why.split())[:_LONGEST],
    )


def _count(value: object) -> int | None:
    return value if type(value) is int and 0 <= value < 2**63 else None
