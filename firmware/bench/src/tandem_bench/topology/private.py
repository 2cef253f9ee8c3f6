"""Run the rest of the program in mount, pid and network namespaces of its own.

Three processes: the *outer* one, which the user sees, only waits and passes signals on; *init*, the first process of the
new pid namespace, reaps; the *program* goes on with its work. When the outer one dies, even by SIGKILL, the kernel kills
init, and with init everything in the namespace. What was mounted goes with the last process.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import sys
import threading
from typing import NoReturn

from tandem_bench.requirements import MachineError

_CLONE_NEWNS, _CLONE_NEWPID, _CLONE_NEWNET = 0x0002_0000, 0x2000_0000, 0x4000_0000
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REC, _MS_PRIVATE = 2, 4, 8, 0x4000, 0x4_0000
_PR_SET_PDEATHSIG = 1
_FORWARDED = frozenset(
    {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH}
)
_LACKS = 3  # exit status: the machine lacks something


def enter() -> None:
    """Return in the new namespaces, as another process. MachineError when the kernel refuses; call before any thread starts.

    The caller's process never returns from here: it ends with the exit status of the new one (128 + n after signal n).
    Signals sent to it arrive in the new one. /proc shows the new pid namespace; mounts made inside stay inside.
    """
    if threading.active_count() > 1:
        raise RuntimeError("private.enter() forks: call it before threads start")
    if "SUDO_UID" in os.environ:
        # sudo, killed by SIGKILL, cannot pass that on: die with it.
        _call("prctl", _PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    sys.stdout.flush()
    sys.stderr.flush()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {*_FORWARDED, signal.SIGCHLD})
    alive_read, alive_write = os.pipe()  # its writing end is the outer process's life
    try:
        _call("unshare", _CLONE_NEWNS | _CLONE_NEWPID | _CLONE_NEWNET)
    except OSError as error:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        raise MachineError(
            f"cannot make namespaces: {error.strerror}; hint: run as root, not in a confined container"
        ) from None
    init = os.fork()
    if init:
        os.close(alive_read)
        _pass_on(init)
    _become_init(alive_read, alive_write)
    program = os.fork()
    if program:
        _pass_on(program)
    os.close(alive_read)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _become_init(alive_read: int, alive_write: int) -> None:
    os.close(alive_write)
    _call("prctl", _PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if select.select([alive_read], [], [], 0)[0]:
        os._exit(_LACKS)  # the outer process died before we asked to be told
    # A session of our own: Ctrl-C at the terminal then reaches the outer process alone, which passes it on once.
    os.setsid()
    try:
        _call("mount", None, b"/", None, _MS_REC | _MS_PRIVATE, None)
        _call("mount", b"proc", b"/proc", b"proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC, None)
    except OSError as error:
        print(
            f"cannot mount in the new namespace: {error.strerror}; hint: run as root, not in a confined container, "
            "and in a chroot bind its folder onto itself first (mount --bind FOLDER FOLDER)",
            file=sys.stderr,
        )
        os._exit(_LACKS)


def _pass_on(child: int) -> NoReturn:
    """Wait for ``child``, reap whatever else ends, pass signals on; end with the child's status."""
    while True:
        arrived = signal.sigwaitinfo({*_FORWARDED, signal.SIGCHLD})
        if arrived.si_signo != signal.SIGCHLD:
            with contextlib.suppress(ProcessLookupError):  # it ended meanwhile: its SIGCHLD follows
                os.kill(child, arrived.si_signo)
            continue
        # Several ends may be told by one signal.
        while (ended := _reap()) is not None:
            if ended[0] == child:
                status = os.waitstatus_to_exitcode(ended[1])
                os._exit(status if status >= 0 else 128 - status)


def _reap() -> tuple[int, int] | None:
    try:
        pid, status = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return None
    return (pid, status) if pid else None


def _call(name: str, *arguments: int | bytes | None) -> None:
    """A function of the C library that returns 0 or sets errno (os.unshare is Python 3.12's; mount is in none)."""
    function = getattr(ctypes.CDLL(None, use_errno=True), name)
    converted = [ctypes.c_ulong(a) if isinstance(a, int) else ctypes.c_char_p(a) for a in arguments]
    if function(*converted) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
