"""The two lowest steps of the recovery ladder at a stick's web server: a new session, and the device's own restart."""

from __future__ import annotations

import re
import time

from tandem.modem.http_transport import WebChannel
from tandem.modem.session import Session
from tandem.modem.steps import ANSWER_S, REBOOT, SESSION, CannotStepError, StepFailedError
from tandem.modem.web_faults import WebDriver, page_fault

_DONE = re.compile(r"<response>\s*OK\s*</response>|\"result\"\s*:\s*\"(?:success|0)\"", re.IGNORECASE)
"""HiLink's and goform's way of saying that it will be done."""


def reset_web(session: Session, channel: WebChannel, step: str) -> str:
    """Do ``session`` or ``reboot``; one line of what was done. CannotStepError, StepFailedError; NoAnswer and PortLost as the channel."""
    driver = session.driver
    if driver is None:
        raise CannotStepError("its family is not known: nothing was ever read of it")
    if step == SESSION:
        channel.renew(time.monotonic() + ANSWER_S)
        wrong = page_fault(driver, channel.ask(driver.poll_commands(session.identity)[0], ANSWER_S))
        if wrong is not None:
            raise StepFailedError(f"a new session was taken, and the answer is {wrong}")
        return "a new session was taken, its web server answers"
    if step != REBOOT:
        raise CannotStepError("a stick's web server takes no AT commands")
    if not isinstance(driver, WebDriver):
        raise CannotStepError(f"how a modem of the family {driver.name} is started anew is not known")
    answer = channel.ask(driver.reboot_command, ANSWER_S)
    wrong = page_fault(driver, answer)
    text = " ".join(answer.lines)
    if wrong is not None or not _DONE.search(text):
        raise StepFailedError(f"it does not start anew: {wrong or text[:60] or 'it says nothing'}")
    session.lost()
    return "told to start anew by its web server"
