"""``tandem``, with an account of where its processor time goes: the other side of ``bench_collector_cpu.py``.

usage: collector_account.py OUT [--profile] TANDEM_ARGUMENTS...

At each SIGUSR1 the account so far is added to OUT as a line of JSON: ``threads`` (seconds by thread's name, without the names of
paths and runs), ``children`` (seconds by program, once awaited) and ``total``. With --profile, each thread's profile lies beside OUT
at the end; a profile itself costs several times what it measures.
"""

from __future__ import annotations

import cProfile
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

_NAME = re.compile(
    r"poller|card|recovery|capture|tcpdump|exporter|traces|paths|steering|round-trips|position|status|campaign queue|run|log|MainThread"
)
_lock = threading.Lock()
_ended: Counter[str] = Counter()
_children: Counter[str] = Counter()
_programs: dict[int, str] = {}


def component(thread: threading.Thread) -> str:
    """What a thread is, whatever path or run it is for."""
    match = _NAME.match(thread.name)
    return match[0] if match else "pair"


def seconds(thread: threading.Thread) -> float:
    """Of a living thread (proc(5): schedstat, ns on the processor)."""
    try:
        return int(Path(f"/proc/self/task/{thread.native_id}/schedstat").read_text().split()[0]) / 1e9
    except FileNotFoundError:
        return 0.0  # it ended just now, and has told itself


def account() -> dict[str, Any]:
    with _lock:
        threads = Counter(_ended)
        for thread in threading.enumerate():
            threads[component(thread)] += seconds(thread)
        times = os.times()
        total = times.user + times.system + times.children_user + times.children_system
        return {"threads": dict(threads), "children": dict(_children), "total": total}


def count_threads(profiles: Path | None) -> None:
    """Have each thread tell, at its end, what it took."""
    begin = threading.Thread._bootstrap_inner  # type: ignore[attr-defined]

    def counted(self: threading.Thread) -> None:
        profile = cProfile.Profile() if profiles is not None else None
        if profile is not None:
            profile.enable()
        try:
            begin(self)
        finally:
            if profile is not None and profiles is not None:
                profile.disable()
                profile.dump_stats(profiles.with_name(f"{component(self)}-{self.native_id}.prof"))
            with _lock:
                _ended[component(self)] += time.thread_time()

    threading.Thread._bootstrap_inner = counted  # type: ignore[attr-defined]


def count_children() -> None:
    """Learn what each child took when it is awaited."""
    begin = subprocess.Popen.__init__

    def begun(self: subprocess.Popen[bytes], args: Any, *rest: Any, **more: Any) -> None:
        begin(self, args, *rest, **more)
        words = [str(arg) for arg in args]
        _programs[self.pid] = "experiment" if "-m" in words else Path(words[0]).name

    def awaited(pid: int, options: int) -> tuple[int, int]:
        done, status, usage = os.wait4(pid, options)
        if done:
            with _lock:
                _children[_programs.get(done, "other")] += usage.ru_utime + usage.ru_stime
        return done, status

    subprocess.Popen.__init__ = begun  # type: ignore[method-assign]
    # Popen.wait asks os.waitpid; Popen.poll keeps it as a default (3.11) or in a holder of its own (later).
    poll = subprocess.Popen._internal_poll  # type: ignore[attr-defined]
    poll.__defaults__ = tuple(awaited if kept is os.waitpid else kept for kept in poll.__defaults__)
    if hasattr(subprocess, "_del_safe"):
        subprocess._del_safe.waitpid = awaited
    os.waitpid = awaited


def main(out: Path, arguments: list[str]) -> int:
    profiles = out if "--profile" in arguments[:1] else None
    count_threads(profiles)
    count_children()

    def tell(_number: int, _frame: FrameType | None) -> None:
        with out.open("a") as file:
            print(json.dumps(account()), file=file)

    signal.signal(signal.SIGUSR1, tell)
    out.with_suffix(".pid").write_text(str(os.getpid()))
    from tandem.cli.main import main as tandem  # not earlier: what loading takes is the collector's too

    if profiles is None:
        return tandem(arguments)
    profile = cProfile.Profile()
    try:
        return profile.runcall(tandem, arguments[1:])
    finally:
        profile.dump_stats(out.with_name("MainThread.prof"))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
