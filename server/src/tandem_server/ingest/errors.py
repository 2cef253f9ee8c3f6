"""What goes wrong with a request becomes a status here (docs/reference/probe-api.md), and nowhere else."""

from __future__ import annotations

import errno
import logging
import math
import random
import sqlite3
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from tandem.schema.trace import TraceError
from tandem_server.http.body import Busy, TooMuch, Unreadable
from tandem_server.http.context import PROBE, exception_handlers
from tandem_server.http.rates import DaySpent, NoRoom
from tandem_server.ingest.meter import NOBODY_READS
from tandem_server.registry import BadCode, KeyTaken, LedgerConflict, NameTaken, TooManyUnfinished
from tandem_server.store import StoreDown, TooManyRefused
from tandem_server.uploads.service import BadBytes, NoOffer, Refused, TooLarge, TooLong
from tandem_server.uploads.service import Busy as TraceBusy
from tandem_server.uploads.store import TraceStoreDown, TraceStoreFull

_LOG = logging.getLogger("tandem.gateway")
_SOON_S, _LATER_S, _MUCH_LATER_S, _LATEST_S = 1, 5, 30, 3600


class NotNow(Exception):  # noqa: N818  (an answer, no accident)
    """The request cannot be answered now: 503. ``later_s``: after which it may come again; with ``spread`` each at another time."""

    def __init__(self, why: str, later_s: int, *, spread: bool = True) -> None:
        super().__init__(why)
        self.later_s, self.spread = later_s, spread


class TooFast(Exception):  # noqa: N818  (an answer, no accident)
    """More than a probe may bring in a time: 429. ``wait_s``: until it may come again."""

    def __init__(self, why: str, wait_s: float) -> None:
        super().__init__(why)
        self.wait_s = wait_s


def later(why: str, seconds: int, *, spread: bool = True) -> JSONResponse:
    """503. With ``spread`` those refused at one moment come back over ``seconds`` to three times as long."""
    wait_s = random.randint(seconds, 3 * seconds) if spread else seconds
    return _answer(503, why, wait_s)


def registry_down(error: sqlite3.Error) -> JSONResponse:
    """503."""
    _LOG.warning("registry: %s", error)
    return later("the registry does not answer now", _LATER_S)


def handlers(body_s: float) -> dict[Any, Callable[[Request, Any], Awaitable[Response]]]:
    """Starlette's exception handlers, looked up by an exception's own class first. ``body_s``: within which a body must come."""
    answers: dict[type[Exception], Callable[[Any], Response]] = {
        Unreadable: lambda error: _answer(400, error),
        TraceError: lambda error: _answer(400, error),
        Refused: lambda error: _answer(400, error),
        TooLong: lambda error: _answer(400, error),
        LedgerConflict: lambda error: _answer(400, error),
        # One answer for all of them. The edge counts it, as it counts wrong tokens.
        BadCode: _bad_code,
        NoOffer: lambda _: _answer(404, "this probe has offered no such trace"),
        TimeoutError: lambda _: _answer(408, f"the body did not come within {body_s:g} s"),
        NameTaken: lambda error: _answer(409, error),
        KeyTaken: lambda _: _answer(409, "another probe has this WireGuard key; make a new one"),
        TooMuch: lambda error: _answer(413, error),
        TooManyRefused: lambda error: _answer(413, error),
        TooLarge: lambda error: _answer(413, error),
        BadBytes: lambda error: JSONResponse({"state": "receiving", "offset": error.offset, "error": error.why}, 422),
        DaySpent: lambda error: _answer(429, error, min(math.ceil(error.left_s), _LATEST_S)),
        TooFast: lambda error: _answer(429, error, math.ceil(error.wait_s)),
        TooManyUnfinished: lambda error: _answer(429, error, _LATEST_S),
        ClientDisconnect: lambda _: Response(status_code=NOBODY_READS),
        Busy: lambda error: later(str(error), _SOON_S),
        NotNow: lambda error: later(str(error), error.later_s, spread=error.spread),
        StoreDown: lambda _: later("the database does not take records now", _LATER_S),
        sqlite3.Error: lambda _: later("the registry does not answer now", _LATER_S),
        TraceBusy: lambda error: later(str(error), _LATER_S, spread=False),
        TraceStoreDown: lambda _: later("the store takes no traces now", _MUCH_LATER_S, spread=False),
        TraceStoreFull: lambda _: _answer(507, "no room for traces now", _MUCH_LATER_S),
        NoRoom: lambda _: _answer(507, "the server has no room now", _MUCH_LATER_S),
        OSError: _disk_down,
    }

    return exception_handlers(answers, _log)


_LOGGED = (StoreDown, sqlite3.Error, TraceStoreDown, OSError, BadBytes)
_NOT_LOGGED = (TooManyRefused, TimeoutError, DaySpent)


def _log(request: Request, error: Exception) -> None:
    if isinstance(error, _LOGGED) and not isinstance(error, _NOT_LOGGED):
        whose = request.scope.get("state", {}).get(PROBE, "without a token")
        _LOG.warning("%s: %s: %s", whose, type(error).__name__, error)


def _answer(status: int, error: Exception | str, later_s: int | None = None) -> JSONResponse:
    headers = None if later_s is None else {"Retry-After": str(later_s)}
    return JSONResponse({"error": str(error)}, status, headers)


def _bad_code(error: BadCode) -> JSONResponse:
    if error.why is not None:
        _LOG.warning("enrolment: %s", error.why)
    return JSONResponse({"error": "no good code"}, 401, {"WWW-Authenticate": "Invitation"})


def _disk_down(error: OSError) -> JSONResponse:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return _answer(507 if full else 503, "the disk takes nothing now", _MUCH_LATER_S)
