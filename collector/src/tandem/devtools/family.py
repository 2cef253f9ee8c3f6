"""All that a program started, ended and reaped: also what made a process group or session of its own (crash handlers do).

Its processes are known by a word that only their environment has, a folder's name. Who ends them must have called ``adopt`` before they
were started, so that orphans become its children: nobody else reaps them where process 1 does not.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36
_PAUSE_S = 0.005


def adopt() -> None:
    """From now on the orphans of our children are our children."""
    # Cannot fail since Linux 3.4; without it orphans would be init's, as for any program.
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def members(word: str) -> list[int]:
    """The processes whose environment has ``word``, this one excepted."""
    wanted, found = word.encode(), []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            with contextlib.suppress(OSError):  # gone meanwhile, or another's
                if wanted in (folder / "environ").read_bytes():
                    found.append(int(folder.name))
    return found


def end(leader: int, word: str, patience_s: float = 5.0) -> bool:
    """Kill the group of ``leader`` and all with ``word``, reap them; whether all have ended within ``patience_s``."""
    until_s = time.monotonic() + patience_s
    others: set[int] = set()
    while True:
        alive = members(word)
        others.update(alive)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(leader, signal.SIGKILL)
        for pid in alive:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        whole = _reaped_group(leader)
        for pid in tuple(others):
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        if whole and not alive:
            return True
        if time.monotonic() > until_s:
            return False
        time.sleep(_PAUSE_S)


def _reaped_group(leader: int) -> bool:
    """Take every exit status of the group that there is; True when no child of it is left."""
    while True:
        try:
            pid, _ = os.waitpid(-leader, os.WNOHANG)
        except ChildProcessError:
            return True
        if pid == 0:
            return False
