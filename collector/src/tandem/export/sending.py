"""Bring a batch of lines to the gateway, whatever it answers: halve what is too large, find the line that is unreadable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tandem.export.gateway import Answer
from tandem.export.lines import Line, body

Ask = Callable[[str, str, bytes, dict[str, str]], Answer]
"""Method, path, body, headers; raises ``Later`` when no path brings an answer."""

HEADERS = {"Content-Type": "text/plain; charset=utf-8", "Content-Encoding": "gzip"}
TOKEN_WAIT_S = 30.0
UNKNOWN_WAIT_S = 15.0
BUSY_WAIT_S = 5.0
CLOCK_WAIT_S = 5.0
"""While a clock is wrong: chronyd sets it within seconds of having the network."""


@dataclass
class Later(Exception):  # noqa: N818  no error: everything is kept and tried again
    """Not now: try again in ``wait_s`` seconds. ``reason`` for people."""

    reason: str
    wait_s: float


def send(lines: Sequence[Line], ask: Ask, reject: Callable[[int, str], None]) -> int:
    """Send all ``lines``; ``reject`` is called with number and reason for each that is not wanted. How many were accepted.

    Later when it has to be tried again as a whole: what was accepted until then is accepted again, which changes nothing.
    """
    accepted = 0
    waiting = [tuple(lines)] if lines else []
    while waiting:
        part = waiting.pop()
        answer = ask("POST", "/v1/records", body(part), HEADERS)
        if answer.status == 200:
            refused = _refused(answer.content, len(part))
            for number, reason in refused.items():
                reject(part[number].seq, reason)
            accepted += len(part) - len(refused)
        elif answer.status in (400, 413):
            if len(part) == 1:
                reject(part[0].seq, answer.error)
            else:
                middle = len(part) // 2
                waiting += [part[middle:], part[:middle]]
        else:
            raise not_now(answer)
    return accepted


def not_now(answer: Answer) -> Later:
    """What an answer that settles nothing means."""
    if answer.status in (401, 403):
        return Later(f"{answer.error}; hint: give the probe a good token (tandem-server probe rotate)", TOKEN_WAIT_S)
    if answer.status in (408, 429) or answer.status >= 500:
        return Later(answer.error, answer.retry_after_s if answer.retry_after_s is not None else BUSY_WAIT_S)
    return Later(f"{answer.error}: that is no gateway of this version", UNKNOWN_WAIT_S)


def _refused(content: Any, sent: int) -> dict[int, str]:  # noqa: ANN401  JSON from outside
    """Line and reason of the rejected; Later unless the answer settles exactly the lines sent."""
    odd = Later("an answer that does not settle the batch", UNKNOWN_WAIT_S)
    if not isinstance(content, dict) or not isinstance(content.get("rejected"), list):
        raise odd
    refused: dict[int, str] = {}
    for entry in content["rejected"]:
        if not isinstance(entry, dict) or type(entry.get("line")) is not int or not 0 <= entry["line"] < sent:
            raise odd
        refused[entry["line"]] = str(entry.get("reason", "no reason given"))[:500]
    if content.get("accepted") != sent - len(refused):
        raise odd
    return refused
