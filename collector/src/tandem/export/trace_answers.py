"""What the server says of a trace, read (server/spec/ingest-api.md, "Traces"). Pure."""

from __future__ import annotations

from dataclasses import dataclass

from tandem.export.gateway import Answer
from tandem.export.sending import UNKNOWN_WAIT_S, Later, not_now
from tandem.schema.trace import Offer, Receipt, TraceError, read_receipt


@dataclass(frozen=True, slots=True)
class Receiving:
    """Send from byte ``offset`` of the stream on. ``fault``: what was not as offered, None when nothing was."""

    offset: int
    fault: str | None = None


class UnknownError(Exception):
    """The server has no such offer: make it again."""


class RefusedError(Exception):
    """The server will not take this file, whenever it is sent; one line."""


def read_state(answer: Answer, offer: Offer, probe: str) -> Receiving | Receipt:
    """What an answer to an offer, to a part of the stream or to a question means. UnknownError, RefusedError, or Later when it settles
    nothing. A receipt that comes back is one for this file of this probe: its name, bytes and hash are the offer's."""
    told = answer.content if isinstance(answer.content, dict) else {}
    if answer.status in (200, 409, 422) and told.get("state") == "receiving":
        return Receiving(_offset(told.get("offset"), offer), None if answer.status == 200 else answer.error)
    if answer.status == 200 and told.get("state") == "received":
        return _receipt(told.get("receipt"), offer, probe)
    if answer.status == 404:
        raise UnknownError
    if answer.status in (400, 409, 413):
        raise RefusedError(answer.error)
    if answer.status == 200:
        raise Later("an answer that does not say how far a trace is", UNKNOWN_WAIT_S)
    raise not_now(answer)


def _offset(told: object, offer: Offer) -> int:
    if type(told) is not int or not 0 <= told <= offer.stream_bytes:
        raise Later(f"an offset that {offer.name} has not", UNKNOWN_WAIT_S)
    return told


def _receipt(told: object, offer: Offer, probe: str) -> Receipt:
    try:
        receipt = read_receipt(told)
    except TraceError as error:
        raise Later(f"a receipt that cannot be read: {error}", UNKNOWN_WAIT_S) from error
    if (receipt.probe, receipt.name, receipt.bytes, receipt.sha256) != (probe, offer.name, offer.bytes, offer.sha256):
        raise Later(f"a receipt that is not for {offer.name}", UNKNOWN_WAIT_S)
    return receipt
