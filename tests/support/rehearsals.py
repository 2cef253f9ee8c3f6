"""Runs ``tandem-bench demo`` as a user does and looks at what it leaves behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

DEMO = [sys.executable, "-m", "tandem_bench", "demo"]


def demo(*args: str, cwd: Path, timeout: float = 600) -> subprocess.CompletedProcess[str]:
    """A whole rehearsal; its output as text."""
    return subprocess.run([*DEMO, *args], cwd=cwd, capture_output=True, text=True, timeout=timeout, check=False)


def started(*args: str, cwd: Path) -> subprocess.Popen[str]:
    """A rehearsal that goes on in the background, in a session of its own."""
    return subprocess.Popen(
        [*DEMO, *args], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def processes_naming(text: str) -> list[str]:
    """Command lines of running processes that hold ``text`` (a folder of this test)."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            try:
                command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue  # it ended while we looked
            if text in command:
                found.append(command)
    return found


def wait_until(condition: Callable[[], bool], seconds: float, what: str) -> None:
    """Return once ``condition`` holds; fail after ``seconds``."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.1)


def end(process: subprocess.Popen[str], number: signal.Signals, timeout: float = 240) -> tuple[int, str, str]:
    """Send a signal to the rehearsal only; its status and output."""
    process.send_signal(number)
    out, err = process.communicate(timeout=timeout)
    return process.returncode, out, err


def lines_of(text: str) -> Sequence[str]:
    return [line for line in text.splitlines() if line.strip()]
