"""What a stick's web server answers instead of an answer: by name, and what mends it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from tandem.at.dialogue import Response
from tandem.modem.base import Driver, Reading


@runtime_checkable
class WebDriver(Driver, Protocol):
    """A family with a web server that names its faults."""

    @property
    def reboot_command(self) -> str:
        """``POST /path body`` that makes the device start anew."""
        ...

    def fault(self, response: Response) -> str | None:
        """Why one page told nothing, by name (``login_needed``, ``busy`` …); None when it answered. Pure; never raises."""
        ...


SESSION_FAULTS = ("token_missing", "token_wrong", "referer_missing", "not_json")
"""A session that ended looks so: tokens are refused, fields are empty, a login page comes instead. A new session may mend it."""

_MENDED_BY_RESTART = (*SESSION_FAULTS, "busy", "system_error")
"""Others (``login_needed``, ``wrong_parameter``, ``not_supported``, ``no_sim`` …) are as they are after a restart too."""


def page_fault(driver: Driver | None, response: Response) -> str | None:
    """The fault of one page, by the family's name for it, else as the transport told it (``http_404``); None when it answered."""
    named = driver.fault(response) if isinstance(driver, WebDriver) else None
    return named or (None if response.final.ok else response.final.code)


def session_ended(driver: Driver | None, answers: Sequence[Response]) -> bool:
    """Whether one of the pages says what a new session may mend."""
    return isinstance(driver, WebDriver) and any(driver.fault(answer) in SESSION_FAULTS for answer in answers)


def poll_failure(driver: Driver | None, answers: Sequence[Response], reading: Reading | None) -> str | None:
    """Why a poll told nothing of the radio: the first page's fault, or of an AT port the first error when all were errors.

    A page that one model does not have fails no poll while the others tell.
    """
    if isinstance(driver, WebDriver):
        if reading is not None and _tells(reading):
            return None
        return next((fault for answer in answers if (fault := page_fault(driver, answer))), None)
    if any(answer.lines or answer.final.ok for answer in answers):
        return None
    return answers[0].final.code if answers else None


def mended_by_restart(failure: str) -> bool:
    """Whether to start the device anew may help against this failure of its polls."""
    return failure in _MENDED_BY_RESTART or failure.startswith("http_5")


def _tells(reading: Reading) -> bool:
    told = (reading.rsrp_dbm, reading.rssi_dbm, reading.rscp_dbm, reading.nr_rsrp_dbm, reading.eci, reading.ci)
    return reading.state != "unknown" or any(value is not None for value in told)
