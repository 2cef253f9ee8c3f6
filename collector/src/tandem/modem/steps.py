"""The steps of the recovery ladder by name, and how one ends that was not done."""

from __future__ import annotations

AT, SESSION, CFUN, REBOOT, USB, POWER = "at", "session", "cfun", "reboot", "usb", "power"

STEPS = (AT, CFUN, USB, POWER)
"""Of a modem with an AT port, or that ModemManager has, in order."""

WEB_STEPS = (SESSION, REBOOT, USB, POWER)
"""Of a stick's web server, in order: a new session, the restart that its own interface offers, and from outside as any other."""

ALL_STEPS = (AT, SESSION, CFUN, REBOOT, USB, POWER)

ANSWER_S = 2.0


class CannotStepError(Exception):
    """This machine or this modem has no such step; nothing was done. The text says why."""


class StepFailedError(Exception):
    """The step was tried and did not work. The text says what was seen."""


class SimLockedError(Exception):
    """The SIM asks for its PIN or PUK: a modem that waits for a person is not to be reset."""
