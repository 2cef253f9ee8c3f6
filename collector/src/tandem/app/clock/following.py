"""How a boot's epochs follow what a source says. Pure.

CLOCK_MONOTONIC is never stepped, so one offset holds for a boot, except as far as it is slewed and its quartz drifts. What records
went out with (``Epoch.used``) never changes: a record that has to be sent again goes out with the same time, and stays one point.
"""

from __future__ import annotations

from tandem.app.clock.boots import DRIFT, Boot, Epoch
from tandem.app.clock.chrony import FAST_SLEW
from tandem.app.clock.reading import Reading

TOLERANCE_NS = 20_000_000
"""A difference up to this, or to the reading's error, is followed within an epoch and stated in its error."""

EPOCHS_AT_ONE_TOLERANCE = 32
"""After so many epochs of one boot the tolerance doubles: a clock that cannot be kept still costs exactness, which is stated, not disk."""

DISCIPLINED_DRIFT = 6e-4
"""A clock that is being disciplined may be led so much (the kernel's loop: 500 ppm) beside its quartz's drift."""

BETTER = 4
"""An epoch in use is followed by a better one when its error falls to this part."""

WORTH_NS = 50_000_000
"""No error below this is worth a new epoch."""


def follow(boot: Boot, said: Reading, now_ns: int) -> None:
    """Take ``said`` into the boot's epochs: confirm the last, mend it while it is unused, or begin a new one after ``now_ns``
    (CLOCK_MONOTONIC): what was made until now may have gone out."""
    start_ns = max(now_ns, said.monotonic_ns) + 1
    while boot.epochs and not boot.epochs[-1].used and not _both_right(boot.epochs[-1], said):
        # Nobody has seen it yet: what was wrong is as if it had never been said.
        start_ns = boot.epochs.pop().from_ns
    if not boot.epochs:
        boot.epochs.append(_epoch(0, said))
        return
    last = boot.epochs[-1]
    away_ns = abs(said.offset_ns - last.offset_ns)
    error_ns, known_ns = said.error_ns or 0, last.error_ns or 0
    slewed = said.slewing or last.slewed
    tolerance_ns = max(TOLERANCE_NS << (len(boot.epochs) // EPOCHS_AT_ONE_TOLERANCE), error_ns)
    reach_ns = int((said.monotonic_ns - last.first_ns) * (FAST_SLEW if slewed else DRIFT))
    better = last.used and known_ns > WORTH_NS and BETTER * (error_ns + away_ns) < known_ns
    if not last.used and error_ns + reach_ns < known_ns:
        mended = _epoch(last.from_ns, said)  # better than what was said, even for the epoch's very beginning
        mended.first_ns, mended.error_ns, mended.slewed = last.first_ns, error_ns + reach_ns, slewed
        boot.epochs[-1] = mended
    elif away_ns > tolerance_ns or better or (last.source == "system") != (said.source == "system"):
        boot.epochs.append(_epoch(start_ns, said))
    else:
        gap_ns = max(0, said.monotonic_ns - last.until_ns)
        last.until_ns = max(last.until_ns, said.monotonic_ns)
        last.source, last.slewed = said.source, slewed
        if said.error_ns is not None:
            last.error_ns = max(known_ns, error_ns + away_ns + int(gap_ns * DRIFT / 2))


def _both_right(last: Epoch, said: Reading) -> bool:
    """Whether the epoch and the reading can both be true, as far as the clock can have been led meanwhile."""
    gap_ns = max(0, said.monotonic_ns - last.until_ns)
    moved_ns = gap_ns * (FAST_SLEW if said.slewing or last.slewed else DISCIPLINED_DRIFT)
    return abs(said.offset_ns - last.offset_ns) <= (said.error_ns or 0) + (last.error_ns or 0) + moved_ns


def _epoch(from_ns: int, said: Reading) -> Epoch:
    return Epoch(
        from_ns, said.monotonic_ns, said.monotonic_ns, said.offset_ns, said.error_ns, said.source, said.slewing
    )
