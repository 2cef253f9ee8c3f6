"""Where in time a boot lay whose clock nobody ever vouched for: between the boots before and after it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from tandem.app.clock.boots import Boot, Epoch
from tandem.app.clock.reading import PLAUSIBLE_UTC_NS

WIDEST_NS = 3_600_000_000_000
"""One hour either way: a boot that can be placed no better is not placed; its records go into quarantine with what is known."""

SLACK_NS = 60_000_000_000
"""So much may a boot seem to overlap its neighbours before its epochs are taken for wrong."""


class UnplacedError(ValueError):
    """Nobody can tell when it was, or not well enough; one line with what is known."""


def limits(boots: Sequence[Boot], number: int) -> tuple[int | None, int | None]:
    """Least and most offset (UTC less CLOCK_MONOTONIC) that ``boots[number]`` can have had; None: nothing known. Boots follow each
    other, so it began after the one before was last seen, and was over before the next one began."""
    least = most = None
    between_ns = 0
    for earlier in reversed(boots[:number]):
        if earlier.epochs:
            last = earlier.epochs[-1]
            least = earlier.seen_ns + last.offset_ns - (last.error_at(earlier.seen_ns) or 0) + between_ns
            break
        between_ns += earlier.seen_ns
    between_ns = boots[number].seen_ns
    for later in boots[number + 1 :]:
        if later.epochs:
            first = later.epochs[0]
            most = first.offset_ns + (first.error_at(0) or 0) - between_ns
            break
        between_ns += later.seen_ns
    return least, most


def place(boots: Sequence[Boot], number: int) -> Epoch:
    """The epoch of a boot without one; UnplacedError when its neighbours leave more than ``WIDEST_NS``."""
    boot = boots[number]
    least, most = limits(boots, number)
    if most is None:
        raise UnplacedError(f"no clock was ever synchronised in boot {boot.id}, nor since")
    if least is None:
        least = PLAUSIBLE_UTC_NS
    least = min(least, most)  # their errors overlap: there was hardly a moment between them
    # With a battery the system's clock was right; without one it stood at the last shutdown, which is the least that it can be.
    shown = boot.system_offset_ns
    offset_ns = shown if shown is not None and least <= shown <= most else (least + most) // 2
    error_ns = max(offset_ns - least, most - offset_ns)
    if error_ns > WIDEST_NS:
        raise UnplacedError(
            f"the clock was never synchronised in boot {boot.id}, which began between {_words(least)} and {_words(most)}"
        )
    return Epoch(0, 0, boot.seen_ns, offset_ns, error_ns, "neighbours")


def misplaced(boots: Sequence[Boot], number: int) -> bool:
    """Whether a boot's unused epochs contradict the order of boots: it would have ended after a later one began, or begun before an
    earlier one was over. Whoever vouched for its clock was wrong then. Boots by whose epochs records went out, and the last, are
    taken as right."""
    boot = boots[number]
    if not boot.epochs or boot.used:
        return False
    sure = [b if b.used or n == len(boots) - 1 else replace(b, epochs=[]) for n, b in enumerate(boots)]
    least, most = limits(sure, number)
    first, last = boot.epochs[0], boot.epochs[-1]
    too_late = most is not None and last.offset_ns - (last.error_ns or 0) > most + SLACK_NS
    too_early = least is not None and first.offset_ns + (first.error_ns or 0) < least - SLACK_NS
    return too_late or too_early


def drop_contradicted(boot: Boot) -> bool:
    """Drop epochs that nobody has used and that the server's clock did not agree with, or that are far from the used ones of their boot,
    with which it did; whether there were any."""
    used = [epoch.offset_ns for epoch in boot.epochs if epoch.used]

    def holds(epoch: Epoch) -> bool:
        near = not used or min(abs(epoch.offset_ns - offset_ns) for offset_ns in used) <= SLACK_NS
        return epoch.used or (near and not epoch.doubted)

    left = [epoch for epoch in boot.epochs if holds(epoch)]
    dropped, boot.epochs = len(left) < len(boot.epochs), left
    return dropped


def _words(utc_ns: int) -> str:
    try:
        return datetime.fromtimestamp(utc_ns / 1e9, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return f"{utc_ns} ns"
