"""A path made backup by MP_PRIO: the order, whether it arrived, and that nothing stays so.

The kernel sends MP_PRIO once for each subflow and never again (facts of Linux 6.1 to 6.18, measured): when that packet is lost, the server
goes on as before, and giving the same order again sends nothing. Whether it arrived is seen by what the path receives; if it
did not, the opposite order and then the order are given.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Sequence

from tandem.mptcp.iproute import IpError
from tandem.mptcp.path_manager import PathManager

SETTLE_S, WINDOW_S = 0.5, 0.5
"""An order takes a third of a second and what is queued for the path still comes; then windows of this length are judged."""
PATIENCE_S = 3.0
"""The order counts as lost when no window in so long agreed with it."""
MOST_TOGGLES = 3
_QUIET = 0.02
"""A window agrees with ``backup`` when the path received less than this share of it all; acknowledgements carry no payload."""
_GUARD_END_S = 10.0


class Backup:
    """Orders of one collector. Needs CAP_NET_ADMIN. While any path is backup, a small program waits for this one's end: it takes the
    order back when the collector is killed."""

    def __init__(self, manager: PathManager) -> None:
        self._manager = manager
        self._guards: dict[int, subprocess.Popen[bytes]] = {}

    def order(self, number: int, *, backup: bool, again: bool = False) -> None:
        """Make the endpoint backup, or an equal of the others again; ``again``: the order was lost. IpError when the kernel refuses."""
        if backup and number not in self._guards:
            undo = self._manager.undo_backup(number)
            if undo:
                try:
                    self._guards[number] = _guard(undo)
                except OSError as error:
                    raise IpError(f"endpoint {number}: no guard against a crash: {error.strerror}") from error
        try:
            if again:  # the opposite first, since an order that changes nothing sends nothing
                self._manager.set_backup(number, not backup)
            self._manager.set_backup(number, backup)
        except BaseException:
            self._release(number)
            raise
        if not backup:
            self._release(number)  # only now: until it is done, a crash must undo it

    def close(self) -> None:
        for number in list(self._guards):
            self._release(number)

    def _release(self, number: int) -> None:
        """The guard does its work, once more where that is done already: the same way as after a crash."""
        guard = self._guards.pop(number, None)
        if guard is not None and guard.stdin is not None:
            guard.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                guard.wait(_GUARD_END_S)


def _guard(undo: Sequence[str]) -> subprocess.Popen[bytes]:
    """A program that runs ``undo`` when its standard input ends. In a session of its own, so that a terminal's ^C leaves it alone."""
    script = 'trap "" INT TERM HUP; read -r _; exec "$@"'
    return subprocess.Popen(
        ["/bin/sh", "-c", script, "steering-guard", *undo],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


class Confirmation:
    """Whether one order reached the server, for as long as it holds: one that was lost while the path carried nothing anyway shows
    only when it carries again. Feed bytes received so far, by path, with their time. Pure."""

    def __init__(self, path: str, at_ns: int, *, backup: bool) -> None:
        self.path, self.backup, self.toggles, self.reported = path, backup, 0, False
        """``reported``: the caller's mark that it has the answer."""
        self._given(at_ns)

    def _given(self, at_ns: int) -> None:
        self._from_ns = at_ns + round(SETTLE_S * 1e9)
        self._until_ns = at_ns + round(PATIENCE_S * 1e9)
        self._start: tuple[int, int, int] | None = None
        self._moved = self.reported = False

    def toggled(self, at_ns: int) -> None:
        """The order was given again."""
        self.toggles += 1
        self._given(at_ns)

    def received(self, at_ns: int, mine: int, every: int) -> bool | None:
        """Payload of this path and of all paths: True when the server follows, False when the order was lost, None while that is open.
        While nothing moves it stays open (a pause of the transfer says nothing), as does backup while no other path carries anything: the
        server then takes the backup path because the others fail."""
        if at_ns < self._from_ns:
            return None
        if self._start is None or mine < self._start[1] or every < self._start[2]:
            self._start = at_ns, mine, every  # the first, or another connection's count
            return None
        began_ns, mine_before, every_before = self._start
        if at_ns - began_ns >= WINDOW_S * 1e9:
            self._start = at_ns, mine, every
            got, whole = mine - mine_before, every - every_before
            if whole > (got if self.backup else 0):
                self._moved = True
                if (got <= _QUIET * whole) is self.backup:
                    self._moved, self._until_ns = False, at_ns + round(PATIENCE_S * 1e9)
                    return True
        return False if self._moved and at_ns >= self._until_ns else None
