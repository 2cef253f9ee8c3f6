"""What can go wrong when a modem is asked something."""

from __future__ import annotations


class AtError(Exception):
    """Any failure of an AT exchange. The channel raises nothing else for what a modem or its port may do."""


class NoAnswer(AtError):  # noqa: N818 - the field's word for it; it is a result of a poll as much as an error
    """No final result within the deadline."""


class PortLost(AtError):  # noqa: N818 - as above
    """The port cannot be opened, or it went away (unplugged, renumbered, closed at the other end)."""


class CommandError(AtError):
    """The modem answered with an error. ``code``: ``error``, ``cme_error 10``, ``cms_error 500``, ``unsupported`` …"""

    def __init__(self, command: str, code: str) -> None:
        super().__init__(f"{command}: {code}")
        self.command = command
        self.code = code
