"""Makes a program that knows only TCP open Multipath TCP sockets, as ``mptcpize run`` does where that is installed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

_SHIM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/socket.h>
#include <netinet/in.h>
int socket(int family, int type, int protocol) {
    int (*real)(int, int, int) = dlsym(RTLD_NEXT, "socket");
    int stream = (type & 0xf) == SOCK_STREAM && (family == AF_INET || family == AF_INET6);
    return real(family, type, stream && (protocol == 0 || protocol == IPPROTO_TCP) ? 262 : protocol);
}
"""


def as_multipath(folder: Path) -> list[str] | None:
    """What to put before a command; None where there is neither ``mptcpize`` nor a C compiler."""
    if shutil.which("mptcpize"):
        return ["mptcpize", "run"]
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    library = folder / "as_multipath.so"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), "-x", "c", "-", "-ldl"],
        input=_SHIM,
        text=True,
        check=True,
    )
    return ["env", f"LD_PRELOAD={library}"]
