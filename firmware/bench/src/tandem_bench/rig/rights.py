"""What each program of the rehearsal may do: the collector NET_ADMIN and NET_RAW, the endpoint NET_RAW, everything else nothing.

The rehearsal itself is root, since namespaces need it. Its programs are not: they run as the user who called sudo, or, where
root called, as root stripped of every capability (a checkout below /root cannot be read by anybody else).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

COLLECTOR = ("net_admin", "net_raw")
_ENDPOINT = ("net_raw",)
_AS_ROOT = ("setgid", "setuid")


@dataclass(frozen=True)
class Owner:
    """The user to whom the results belong and as whom the programs run."""

    uid: int
    gid: int

    @classmethod
    def of_caller(cls) -> Owner:
        """Who called: sudo's caller, else the user of this process."""
        return cls(int(os.environ.get("SUDO_UID", os.getuid())), int(os.environ.get("SUDO_GID", os.getgid())))

    @property
    def endpoint(self) -> tuple[str, ...]:
        """What the endpoint's captures take; as root tcpdump sets its user and groups anew, also to stay what it is."""
        return _ENDPOINT + (_AS_ROOT if self.uid == 0 else ())

    def give(self, path: Path) -> None:
        """Make the owner own ``path`` (file or folder, not what is in it)."""
        os.chown(path, self.uid, self.gid)


def confined(argv: Sequence[str], owner: Owner, capabilities: Sequence[str] = ()) -> list[str]:
    """``argv`` behind setpriv: as ``owner``, with ``capabilities`` (names without ``cap_``) and no way to gain more."""
    kept = ",".join(["-all", *(f"+{name}" for name in capabilities)])
    ambient = ["--ambient-caps", kept] if capabilities else []
    return [
        "setpriv",
        f"--reuid={owner.uid}",
        f"--regid={owner.gid}",
        "--clear-groups",
        "--no-new-privs",
        # Without this, a program that root starts would get every capability of the bounding set at exec.
        "--securebits=+noroot,+noroot_locked",
        "--inh-caps",
        kept,
        *ambient,
        "--bounding-set",
        kept,
        "--",
        *argv,
    ]
