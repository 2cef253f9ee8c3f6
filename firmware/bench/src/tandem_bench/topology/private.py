"""A place of our own: this program again in new mount, process and network namespaces.

Nothing made inside can outlive it: the inner program is the first process of its namespace and dies with the outer one, whatever
kills that, and everything else dies with the inner one; network namespaces and mounts go when their last process goes.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from tandem_bench.topology.requirements import EnvironmentLacks, check

CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET = 0x00020000, 0x20000000, 0x40000000  # sched.h
PR_SET_PDEATHSIG = 1  # prctl.h
MNT_DETACH = 2  # sys/mount.h
NETNS = Path("/run/netns")

_libc = ctypes.CDLL(None, use_errno=True)


def _die_with_parent() -> None:
    if _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise EnvironmentLacks(f"prctl: {os.strerror(ctypes.get_errno())}")


def run_inside(action: Callable[[], int]) -> int:
    """Call ``action`` in new namespaces and return its status; 128 + N when it was ended by signal N.

    SIGINT, SIGTERM and SIGHUP are passed on to it. EnvironmentLacks when this machine cannot (see ``requirements``). Must be
    called before any thread is started.
    """
    check()
    if "SUDO_UID" in os.environ:
        # sudo killed by SIGKILL cannot pass that on: die with it.
        _die_with_parent()
    if _libc.unshare(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET) != 0:
        raise EnvironmentLacks(f"new namespaces: {os.strerror(ctypes.get_errno())}; a container needs CAP_SYS_ADMIN")
    made = not NETNS.exists()
    alive, held = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(held)
        _inner(action, alive)
    os.close(alive)
    status = _wait(child)
    if made:
        # The mount point: an empty folder that `ip netns add` would have left too.
        # We share the mount namespace with the child that has ended, so its mount on it goes first. No umount(8): once the
        # process namespace's first process is gone, this process can start no other.
        _libc.umount2(os.fsencode(NETNS), MNT_DETACH)
        with contextlib.suppress(OSError):
            NETNS.rmdir()
    return status


def _inner(action: Callable[[], int], alive: int) -> None:
    """The first process of the namespace: never returns."""
    status = 70
    try:
        _die_with_parent()
        # The parent may have died between fork and prctl: then nobody holds the pipe's other end any more.
        if select.select([alive], [], [], 0)[0]:
            os._exit(status)
        os.close(alive)
        _private_mounts()
        status = action()
    except EnvironmentLacks as error:
        os.write(2, f"tandem-bench: {error}\n".encode())
        status = 3
    except BaseException:  # noqa: BLE001  # the process ends here: whatever it was must be seen before
        # Printed here, since os._exit below skips the interpreter's own end.
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _wait(child: int) -> int:
    def pass_on(number: int, _frame: FrameType | None) -> None:
        try:
            os.kill(child, number)
        except ProcessLookupError:
            return  # it ended meanwhile: waitpid says how

    before = {number: signal.signal(number, pass_on) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        _, status = os.waitpid(child, 0)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _mount(*args: str) -> None:
    done = subprocess.run(["mount", *args], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise EnvironmentLacks(f"mount {' '.join(args)}: {done.stderr.strip()}")


def _private_mounts() -> None:
    """A /proc of this process namespace, and /run/netns and /etc of our own, so that names and files touch nobody else's."""
    _mount("--make-rprivate", "/")
    _mount("-t", "proc", "proc", "/proc")
    NETNS.mkdir(exist_ok=True)
    _mount("-t", "tmpfs", "-o", "mode=0755,size=64m", "tandem-bench", str(NETNS))
    # A copy of /etc: `ip netns exec` looks for resolv.conf below /etc/netns, which must not be made on the host.
    copy = NETNS / ".etc"
    copy.mkdir()
    _mount("-t", "tmpfs", "-o", "mode=0755,size=256m", "tandem-bench", str(copy))
    done = subprocess.run(["cp", "-a", "/etc/.", str(copy)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise EnvironmentLacks(f"copying /etc: {(done.stderr.strip().splitlines() or ['?'])[-1]}")
    _mount("--move", str(copy), "/etc")
    copy.rmdir()
    resolver = Path("/etc/resolv.conf")
    resolver.unlink(missing_ok=True)  # often a link to a place that does not exist here
    resolver.write_text("# each namespace has its own below /etc/netns\n")
